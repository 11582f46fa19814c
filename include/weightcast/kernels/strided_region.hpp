// SPDX-License-Identifier: Apache-2.0
#pragma once
// From a tensor's layout to the arguments of the pack bodies: checked, and with as few dimensions
// as it takes.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include <weightcast/base/error.hpp>
#include <weightcast/kernels/pack_body.hpp>
#include <weightcast/tensor/tensor_view.hpp>

namespace weightcast {

namespace detail {

/// One dimension of a region: how many, and how far apart in bytes.
struct region_step {
    std::uint64_t count;
    std::uint64_t stride;
};

}  // namespace detail

/// The layout as runs of contiguous bytes; neighbouring dimensions that step alike become one.
/// @pre the layout is valid and not empty
inline kernels::strided_region region_of(tensor_layout const& layout) {
    std::uint64_t run = item_size(layout.type);
    std::array<detail::region_step, extents::max_rank> steps{};  // innermost first
    std::size_t used = 0;
    for (std::size_t i = layout.shape.size(); i-- > 0;) {
        auto const count = static_cast<std::uint64_t>(layout.shape[i]);
        auto const stride = static_cast<std::uint64_t>(layout.strides[i]) * item_size(layout.type);
        if (count == 1) continue;
        if (used == 0 && stride == run) {
            run *= count;
        } else if (used > 0 && stride == steps[used - 1].count * steps[used - 1].stride) {
            steps[used - 1].count *= count;
        } else {
            steps[used++] = {count, stride};
        }
    }
    kernels::strided_region region{run, static_cast<int>(used), {}, {}};
    for (std::size_t i = 0; i < used; ++i) {
        region.extent[i] = steps[used - 1 - i].count;
        region.stride[i] = steps[used - 1 - i].stride;
    }
    return region;
}

/// Whether each element is sure to have bytes of its own. Layouts whose elements interleave count
/// as unsure, even where they happen not to overlap.
inline bool has_separate_elements(tensor_layout const& layout) {
    if (layout.elements() == 0) return true;
    std::array<detail::region_step, extents::max_rank> steps{};
    std::size_t used = 0;
    for (std::size_t i = 0; i < layout.shape.size(); ++i) {
        if (layout.shape[i] == 1) continue;
        auto const stride = static_cast<std::uint64_t>(layout.strides[i]);
        std::size_t at = used++;  // sorted by stride as they come: at most eight
        for (; at > 0 && steps[at - 1].stride > stride; --at) steps[at] = steps[at - 1];
        steps[at] = {static_cast<std::uint64_t>(layout.shape[i]), stride};
    }
    std::uint64_t reach = 1;  // elements up to and with the last one of the steps so far
    for (std::size_t i = 0; i < used; ++i) {
        if (steps[i].stride < reach) return false;
        reach += (steps[i].count - 1) * steps[i].stride;
    }
    return true;
}

namespace detail {

inline void check_byte_range(tensor_layout const& layout, std::uint64_t first, std::uint64_t last,
                             void const* dense) {
    if (first > last || last > layout.bytes()) {
        throw bad_argument{"bytes [" + std::to_string(first) + ", " + std::to_string(last) +
                           ") are no part of a tensor of " + std::to_string(layout.bytes()) +
                           " bytes"};
    }
    if (dense == nullptr && first != last) throw bad_argument{"packed bytes have no memory"};
}

inline void check_destination(tensor_layout const& layout) {
    if (has_separate_elements(layout)) return;
    throw bad_argument{"elements of a destination of shape " + to_string(layout.shape) +
                       " and strides " + to_string(layout.strides) +
                       " overlap or interleave; expected separate ones"};
}

template <class Arguments, class Strided, class Dense>
Arguments transfer(tensor_layout const& layout, Strided* strided, Dense* dense, std::uint64_t first,
                   std::uint64_t last, std::uint64_t piece_bytes) {
    if (first == last) return Arguments{{1, 0, {}, {}}, nullptr, nullptr, 0, 0, 1};
    return {region_of(layout),
            strided,
            dense,
            first,
            last,
            piece_bytes == 0 ? last - first : piece_bytes};
}

}  // namespace detail

/// Arguments that pack bytes [first, last) of the flattened tensor to `to`; piece_bytes 0 means one
/// piece.
/// @throws bad_argument  for a range outside the tensor or a null destination
template <MemorySpace Space>
kernels::pack_arguments pack_arguments_of(const_tensor_view<Space> const& from, std::uint64_t first,
                                          std::uint64_t last, void* to,
                                          std::uint64_t piece_bytes = 0) {
    detail::check_byte_range(from.layout(), first, last, to);
    return detail::transfer<kernels::pack_arguments>(
        from.layout(), static_cast<unsigned char const*>(from.data()),
        static_cast<unsigned char*>(to), first, last, piece_bytes);
}

/// Arguments that unpack `from` to bytes [first, last) of the flattened tensor.
/// @throws bad_argument  for a range outside the tensor, a null source, or a tensor whose elements
///                       overlap
template <MemorySpace Space>
kernels::unpack_arguments unpack_arguments_of(void const* from, tensor_view<Space> const& to,
                                              std::uint64_t first, std::uint64_t last,
                                              std::uint64_t piece_bytes = 0) {
    detail::check_byte_range(to.layout(), first, last, from);
    detail::check_destination(to.layout());
    return detail::transfer<kernels::unpack_arguments>(
        to.layout(), static_cast<unsigned char*>(to.data()),
        static_cast<unsigned char const*>(from), first, last, piece_bytes);
}

}  // namespace weightcast
