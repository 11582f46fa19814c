// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/io is host-only: include it from a .cpp file"
#endif
// safetensors' names of element types, and its one difference in shapes.

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include <weightcast/base/error.hpp>
#include <weightcast/tensor/dtype.hpp>
#include <weightcast/tensor/extents.hpp>

namespace weightcast {

namespace detail {
/// Row i belongs to the dtype of value i.
inline constexpr std::array<std::string_view, dtype_count> safetensors_names{
    "BOOL", "I8",   "U8",  "I16", "U16",     "I32",     "U32",     "I64", "U64",
    "F16",  "BF16", "F32", "F64", "F8_E4M3", "F8_E5M2", "F8_E8M0", "F4",  "C64",
};
}  // namespace detail

/// The name that safetensors files use.
constexpr std::string_view safetensors_name(dtype type) noexcept {
    return detail::safetensors_names[static_cast<std::size_t>(type)];
}

/// The dtype of that name in a safetensors file, or nothing.
constexpr std::optional<dtype> find_safetensors_dtype(std::string_view name) noexcept {
    for (std::size_t i = 0; i < dtype_count; ++i) {
        if (detail::safetensors_names[i] == name) return static_cast<dtype>(i);
    }
    return std::nullopt;
}

/// Our shape of a tensor that a file has with that one: F4 counts single values there, and bytes of
/// two here, as torch does.
/// @throws bad_input  for an F4 tensor without dimensions, or whose last one is odd
inline extents shape_from_safetensors(dtype type, extents shape) {
    if (type != dtype::float4_e2m1fn_x2) return shape;
    if (shape.empty() || shape[shape.size() - 1] % 2 != 0) {
        throw bad_input{"F4 values come in pairs, but the shape is " + to_string(shape)};
    }
    shape[shape.size() - 1] /= 2;
    return shape;
}

/// The shape that a file has for a tensor of ours.
/// @throws bad_argument  for an F4 tensor that a file cannot describe: one without dimensions
inline extents shape_to_safetensors(dtype type, extents shape) {
    if (type != dtype::float4_e2m1fn_x2) return shape;
    if (shape.empty()) {
        throw bad_argument{"a scalar of float4_e2m1fn_x2 has no safetensors shape"};
    }
    shape[shape.size() - 1] *= 2;
    static_cast<void>(element_count(shape));
    return shape;
}

}  // namespace weightcast
