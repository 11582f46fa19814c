// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/model is host-only: include it from a .cpp file"
#endif
// Metadata of one parameter: what a sender announces and a receiver checks before any byte moves.

#include <cstdint>
#include <string>
#include <string_view>

#include <weightcast/tensor/concepts.hpp>
#include <weightcast/tensor/tensor_view.hpp>

namespace weightcast {

/// What a sent tensor is to adapters (LoRA): an engine that adds an adapter to its weights must not be sent weights
/// that contain it already.
enum class weight_role : std::uint8_t {
    base,    ///< without any adapter
    merged,  ///< with an adapter's product added
    adapter  ///< of an adapter itself
};

/// "base", "merged", "adapter".
constexpr std::string_view to_string(weight_role role) noexcept {
    switch (role) {
        case weight_role::base: return "base";
        case weight_role::merged: return "merged";
        case weight_role::adapter: return "adapter";
    }
    return "unknown role";
}

/// A checkpoint name with dtype and shape.
struct parameter {
    std::string name{};
    dtype type = dtype::uint8;
    extents shape{};
    weight_role role = weight_role::base;

    /// Bytes that a transfer of it moves. @throws bad_input  when they do not fit in 64 bits
    std::uint64_t bytes() const { return checked_multiply(element_count(shape), item_size(type)); }
    friend bool operator==(parameter const&, parameter const&) = default;
};

/// "bfloat16[2, 3]".
inline std::string describe_type(dtype type, extents const& shape) {
    return std::string{to_string(type)} + to_string(shape);
}

/// The metadata of a tensor under that name.
template <DeviceTensor T>
parameter parameter_of(std::string_view name, T const& tensor,
                       weight_role role = weight_role::base) {
    auto const view = view_of(tensor);
    return {std::string{name}, view.type(), view.shape(), role};
}

}  // namespace weightcast
