// SPDX-License-Identifier: Apache-2.0
#pragma once
// From one strided tensor to another, with the kernels that have one dense side.

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

#include <weightcast/base/error.hpp>
#include <weightcast/kernels/concepts.hpp>
#include <weightcast/kernels/launch.hpp>
#include <weightcast/kernels/strided_region.hpp>
#include <weightcast/tensor/dtype.hpp>
#include <weightcast/tensor/extents.hpp>
#include <weightcast/tensor/tensor_view.hpp>

namespace weightcast {

namespace detail {

/// The tensor at one index of its outermost dimension. @pre  it has one
template <class View>
View outer_slice(View const& view, std::int64_t index) {
    extents shape;
    extents strides;
    for (std::size_t d = 1; d < view.shape().size(); ++d) {
        shape.push_back(view.shape()[d]);
        strides.push_back(view.strides()[d]);
    }
    using byte = std::conditional_t<std::is_const_v<std::remove_pointer_t<typename View::pointer>>,
                                    std::byte const, std::byte>;
    auto const offset =
        static_cast<std::uint64_t>(index * view.strides()[0]) * item_size(view.type());
    return {static_cast<byte*>(view.data()) + offset, view.type(), shape, strides, view.where()};
}

template <KernelRuntime R>
void copy_checked(const_tensor_view<typename R::space> const& from,
                  tensor_view<typename R::space> const& to, typename R::stream_ref stream) {
    auto const bytes = from.bytes();
    if (from.contiguous() && to.contiguous()) {
        R::copy(to.data(), to.where(), from.data(), from.where(), static_cast<std::size_t>(bytes),
                stream);
    } else if (from.contiguous()) {
        kernel_launcher<R>::unpack_async(from.data(), to, 0, bytes, stream);
    } else if (to.contiguous()) {
        kernel_launcher<R>::pack_async(from, 0, bytes, to.data(), stream);
    } else {
        for (std::int64_t i = 0; i < from.shape()[0]; ++i) {
            copy_checked<R>(outer_slice(from, i), outer_slice(to, i), stream);
        }
    }
}

}  // namespace detail

/// Copies a tensor to another of the same dtype and shape on the same device.
/// @throws bad_argument  for other dtypes or shapes, or a destination whose elements overlap; nothing was enqueued
/// Ordering: on the stream, after what it holds; both tensors' memory must stay until the stream is past it.
/// Cost: one launch where the elements of either lie one after the other; else one for each index of the outermost
/// dimensions down to where they do.
template <KernelRuntime R>
void copy_async(const_tensor_view<typename R::space> const& from,
                tensor_view<typename R::space> const& to, typename R::stream_ref stream) {
    if (from.type() != to.type() || from.shape() != to.shape()) {
        throw bad_argument{"a copy from " + std::string{to_string(from.type())} +
                           to_string(from.shape()) + " to " + std::string{to_string(to.type())} +
                           to_string(to.shape()) + "; expected the same dtype and shape"};
    }
    if (from.bytes() == 0) return;
    detail::check_destination(to.layout());
    detail::copy_checked<R>(from, to, stream);
}

}  // namespace weightcast
