// SPDX-License-Identifier: Apache-2.0
#pragma once
// Element types by torch's names. Bytes are moved, never converted, so that every type here is
// exact.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>

#include <weightcast/base/error.hpp>

namespace weightcast {

/// Element types, named as torch names them. `float4_e2m1fn_x2` is two 4-bit values in one byte.
enum class dtype : std::uint8_t {
    bool_,
    int8,
    uint8,
    int16,
    uint16,
    int32,
    uint32,
    int64,
    uint64,
    float16,
    bfloat16,
    float32,
    float64,
    float8_e4m3fn,
    float8_e5m2,
    float8_e8m0fnu,
    float4_e2m1fn_x2,
    complex64,
};

namespace detail {
struct dtype_row {
    std::string_view name;
    std::uint8_t item_size;
    std::uint8_t alignment;
};
inline constexpr std::array<dtype_row, 18> dtype_table{{
    {"bool", 1, 1},
    {"int8", 1, 1},
    {"uint8", 1, 1},
    {"int16", 2, 2},
    {"uint16", 2, 2},
    {"int32", 4, 4},
    {"uint32", 4, 4},
    {"int64", 8, 8},
    {"uint64", 8, 8},
    {"float16", 2, 2},
    {"bfloat16", 2, 2},
    {"float32", 4, 4},
    {"float64", 8, 8},
    {"float8_e4m3fn", 1, 1},
    {"float8_e5m2", 1, 1},
    {"float8_e8m0fnu", 1, 1},
    {"float4_e2m1fn_x2", 1, 1},
    {"complex64", 8, 4},
}};
}  // namespace detail

/// Number of dtypes: values run from 0 to dtype_count - 1.
inline constexpr std::size_t dtype_count = detail::dtype_table.size();

/// torch's name, without the prefix "torch.".
constexpr std::string_view to_string(dtype t) noexcept {
    return detail::dtype_table[static_cast<std::size_t>(t)].name;
}
/// Bytes of one element, as torch's `itemsize`.
constexpr std::size_t item_size(dtype t) noexcept {
    return detail::dtype_table[static_cast<std::size_t>(t)].item_size;
}
/// Alignment in bytes that a CPU needs to read one element in place.
constexpr std::size_t item_alignment(dtype t) noexcept {
    return detail::dtype_table[static_cast<std::size_t>(t)].alignment;
}

/// The dtype of that name ("torch." in front is accepted), or nothing.
constexpr std::optional<dtype> find_dtype(std::string_view name) noexcept {
    if (name.starts_with("torch.")) name.remove_prefix(6);
    for (std::size_t i = 0; i < dtype_count; ++i) {
        if (detail::dtype_table[i].name == name) return static_cast<dtype>(i);
    }
    return std::nullopt;
}
/// The dtype of that name. @throws bad_input  for an unknown one
inline dtype parse_dtype(std::string_view name) {
    if (auto const found = find_dtype(name)) return *found;
    throw bad_input{"unknown dtype '" + std::string{name} + "'"};
}

inline std::ostream& operator<<(std::ostream& out, dtype t) { return out << to_string(t); }

}  // namespace weightcast
