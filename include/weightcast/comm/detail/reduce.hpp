// SPDX-License-Identifier: Apache-2.0
#pragma once
// The arithmetic of an all-reduce, one copy for every transport that has none of its own.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

#include <weightcast/base/error.hpp>
#include <weightcast/comm/transfer_range.hpp>
#include <weightcast/tensor/dtype.hpp>

namespace weightcast::detail {

constexpr bool can_reduce(dtype type) noexcept {
    return type == dtype::int32 || type == dtype::int64 || type == dtype::uint64 ||
           type == dtype::float32 || type == dtype::float64;
}

/// @throws bad_argument  for a type without arithmetic here, or bytes that are no whole elements
inline void check_reducible(dtype type, std::size_t bytes) {
    if (!can_reduce(type)) {
        throw bad_argument{"all_reduce: expected int32, int64, uint64, float32 or float64, got " +
                           std::string{to_string(type)}};
    }
    if (bytes % item_size(type) != 0) {
        throw bad_argument{"all_reduce: " + std::to_string(bytes) +
                           " bytes are no whole number of " + std::string{to_string(type)} +
                           " elements"};
    }
}

/// Integers wrap; of two values that do not compare (NaN) min and max keep the first.
template <class T>
T reduced(T a, T b, reduction how) noexcept {
    if (how == reduction::min) return b < a ? b : a;
    if (how == reduction::max) return a < b ? b : a;
    if constexpr (std::is_integral_v<T>) {
        using unsigned_type = std::make_unsigned_t<T>;
        return static_cast<T>(static_cast<unsigned_type>(a) + static_cast<unsigned_type>(b));
    } else {
        return a + b;
    }
}

template <class T>
void reduce_elements(std::byte* into, std::byte const* from, std::size_t bytes,
                     reduction how) noexcept {
    for (std::size_t at = 0; at + sizeof(T) <= bytes; at += sizeof(T)) {
        T a{};
        T b{};
        std::memcpy(&a, into + at, sizeof(T));  // neither side need be aligned
        std::memcpy(&b, from + at, sizeof(T));
        a = reduced(a, b, how);
        std::memcpy(into + at, &a, sizeof(T));
    }
}

/// into[i] = into[i] (how) from[i] for whole elements of a type that `check_reducible` accepts.
inline void reduce_into(void* into, void const* from, std::size_t bytes, dtype type,
                        reduction how) noexcept {
    auto* const a = static_cast<std::byte*>(into);
    auto const* const b = static_cast<std::byte const*>(from);
    switch (type) {
        case dtype::int32: return reduce_elements<std::int32_t>(a, b, bytes, how);
        case dtype::int64: return reduce_elements<std::int64_t>(a, b, bytes, how);
        case dtype::uint64: return reduce_elements<std::uint64_t>(a, b, bytes, how);
        case dtype::float32: return reduce_elements<float>(a, b, bytes, how);
        case dtype::float64: return reduce_elements<double>(a, b, bytes, how);
        default: return;
    }
}

}  // namespace weightcast::detail
