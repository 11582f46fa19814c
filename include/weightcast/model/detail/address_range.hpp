// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/model is host-only: include it from a .cpp file"
#endif
// Where a tensor lies, from its first byte to its last.

#include <cstddef>
#include <cstdint>
#include <utility>

#include <weightcast/tensor/device.hpp>
#include <weightcast/tensor/dtype.hpp>
#include <weightcast/tensor/tensor_view.hpp>

namespace weightcast::detail {

/// Addresses [first, last) of a device, from the first byte to the last one that a tensor touches.
struct address_range {
    device where{};
    std::uintptr_t first = 0;
    std::uintptr_t last = 0;

    std::size_t bytes() const noexcept { return last - first; }
    friend bool operator<(address_range const& a, address_range const& b) noexcept {
        return std::pair{a.where, a.first} < std::pair{b.where, b.first};
    }
};

/// Empty for a tensor without elements, whatever its pointer is.
template <MemorySpace Space>
address_range range_of(tensor_view<Space> const& tensor) {
    if (tensor.bytes() == 0) return {tensor.where(), 0, 0};
    std::uint64_t last = 0;  // index of the last element; validate() made sure that it fits
    for (std::size_t d = 0; d < tensor.shape().size(); ++d) {
        last += static_cast<std::uint64_t>((tensor.shape()[d] - 1) * tensor.strides()[d]);
    }
    auto const first = reinterpret_cast<std::uintptr_t>(tensor.data());
    return {tensor.where(), first, first + (last + 1) * item_size(tensor.type())};
}

}  // namespace weightcast::detail
