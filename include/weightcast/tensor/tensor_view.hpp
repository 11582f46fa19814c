// SPDX-License-Identifier: Apache-2.0
#pragma once
// The library's own view of a tensor: where it lies, what it holds, how it is laid out. Owns
// nothing.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

#include <weightcast/base/byte_count.hpp>
#include <weightcast/base/error.hpp>
#include <weightcast/tensor/device.hpp>
#include <weightcast/tensor/dtype.hpp>
#include <weightcast/tensor/extents.hpp>
#include <weightcast/tensor/space.hpp>

namespace weightcast {

/// Layout of a tensor in memory: strides in elements, none of them negative.
struct tensor_layout {
    dtype type = dtype::uint8;
    extents shape{};
    extents strides{};

    /// Elements in the tensor.
    std::uint64_t elements() const { return element_count(shape); }
    /// Bytes of its elements, gaps not counted: what a transfer moves.
    std::uint64_t bytes() const { return checked_multiply(elements(), item_size(type)); }
    /// Dense and row-major: its bytes lie one after the other.
    constexpr bool contiguous() const noexcept {
        for (auto const extent : shape) {
            if (extent == 0) return true;
        }
        std::int64_t step = 1;
        for (std::size_t i = shape.size(); i-- > 0;) {
            if (shape[i] != 1 && strides[i] != step) return false;
            step *= shape[i];
        }
        return true;
    }
    friend bool operator==(tensor_layout const&, tensor_layout const&) = default;
};

/// Checks a layout that came from outside.
/// @throws bad_input  for shape and strides of different rank, a negative extent or stride, or an
///                    offset past 2^63 - 1 bytes
inline void validate(tensor_layout const& layout) {
    if (layout.shape.size() != layout.strides.size()) {
        throw bad_input{"a tensor has " + std::to_string(layout.shape.size()) + " extents but " +
                        std::to_string(layout.strides.size()) + " strides"};
    }
    bool const empty = layout.elements() == 0;
    for (auto const stride : layout.strides) {
        if (stride < 0) throw bad_input{"a tensor has a negative stride"};
    }
    if (empty) return;
    std::uint64_t last = 0;
    for (std::size_t i = 0; i < layout.shape.size(); ++i) {
        last = checked_add(last, checked_multiply(static_cast<std::uint64_t>(layout.shape[i] - 1),
                                                  static_cast<std::uint64_t>(layout.strides[i])));
    }
    auto const end = checked_multiply(checked_add(last, 1), item_size(layout.type));
    if (end > static_cast<std::uint64_t>(INT64_MAX)) {
        throw bad_input{"a tensor reaches past 2^63 - 1 bytes"};
    }
}

/// A strided tensor in memory of Space. Byte is `std::byte` (may be written) or `std::byte const`.
/// Lifetime: as its memory's. Copying copies the view.
template <MemorySpace Space, class Byte>
    requires std::same_as<std::remove_const_t<Byte>, std::byte>
class basic_tensor_view {
  public:
    using space = Space;
    using pointer = std::conditional_t<std::is_const_v<Byte>, void const*, void*>;

    basic_tensor_view() = default;
    /// A contiguous tensor. @throws bad_input  for a shape that is none
    basic_tensor_view(pointer data, dtype type, extents shape, device where = cpu_device)
        : basic_tensor_view{data, type, shape, contiguous_strides(shape), where} {}
    /// A strided tensor; strides count elements.
    /// @throws bad_input     for strides that are negative, too many, too few or out of 64 bits
    /// @throws bad_argument  for a null pointer to a tensor that is not empty
    basic_tensor_view(pointer data, dtype type, extents shape, extents strides,
                      device where = cpu_device)
        : data_{data}, layout_{type, shape, strides}, where_{where} {
        validate(layout_);
        if (data_ == nullptr && layout_.elements() != 0) {
            throw bad_argument{"a tensor of shape " + to_string(shape) + " has no memory"};
        }
    }
    /// A view that may be written reads as one that may not.
    template <class Other>
        requires(std::is_const_v<Byte> && !std::is_const_v<Other>)
    basic_tensor_view(basic_tensor_view<Space, Other> const& other) noexcept
        : data_{other.data()}, layout_{other.layout()}, where_{other.where()} {}

    /// The same memory and layout, said to lie in that space and on that device.
    template <MemorySpace Other>
    basic_tensor_view<Other, Byte> relabelled(device where) const noexcept {
        basic_tensor_view<Other, Byte> view;
        view.data_ = data_;
        view.layout_ = layout_;
        view.where_ = where;
        return view;
    }

    pointer data() const noexcept { return data_; }
    tensor_layout const& layout() const noexcept { return layout_; }
    dtype type() const noexcept { return layout_.type; }
    extents const& shape() const noexcept { return layout_.shape; }
    extents const& strides() const noexcept { return layout_.strides; }
    device where() const noexcept { return where_; }
    std::uint64_t bytes() const { return layout_.bytes(); }
    bool contiguous() const noexcept { return layout_.contiguous(); }

  private:
    template <MemorySpace OtherSpace, class OtherByte>
        requires std::same_as<std::remove_const_t<OtherByte>, std::byte>
    friend class basic_tensor_view;
    pointer data_ = nullptr;
    tensor_layout layout_{dtype::uint8, {0}, {1}};
    device where_{};
};

/// A tensor that may be written.
template <MemorySpace Space = host_space>
using tensor_view = basic_tensor_view<Space, std::byte>;
/// A tensor that may only be read.
template <MemorySpace Space = host_space>
using const_tensor_view = basic_tensor_view<Space, std::byte const>;

}  // namespace weightcast
