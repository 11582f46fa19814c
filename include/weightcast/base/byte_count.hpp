// SPDX-License-Identifier: Apache-2.0
#pragma once
// A number of bytes that cannot be mixed up with a number of elements.

#include <compare>
#include <cstdint>
#include <limits>

#include <weightcast/base/error.hpp>

namespace weightcast {

/// A number of bytes, 64 bits wide.
struct byte_count {
    std::uint64_t value = 0;
    friend constexpr bool operator==(byte_count, byte_count) = default;
    friend constexpr auto operator<=>(byte_count, byte_count) = default;
};

constexpr byte_count operator""_KiB(unsigned long long n) noexcept { return {n << 10U}; }
constexpr byte_count operator""_MiB(unsigned long long n) noexcept { return {n << 20U}; }
constexpr byte_count operator""_GiB(unsigned long long n) noexcept { return {n << 30U}; }

/// a * b. @throws bad_input when the product does not fit: sizes from outside come through here.
constexpr std::uint64_t checked_multiply(std::uint64_t a, std::uint64_t b) {
    if (b != 0 && a > std::numeric_limits<std::uint64_t>::max() / b) {
        throw bad_input{"a size does not fit in 64 bits"};
    }
    return a * b;
}

/// a + b. @throws bad_input when the sum does not fit.
constexpr std::uint64_t checked_add(std::uint64_t a, std::uint64_t b) {
    if (a > std::numeric_limits<std::uint64_t>::max() - b) {
        throw bad_input{"a size does not fit in 64 bits"};
    }
    return a + b;
}

/// value rounded up to a multiple of alignment (a power of two).
constexpr std::uint64_t align_up(std::uint64_t value, std::uint64_t alignment) {
    return checked_add(value, alignment - 1) & ~(alignment - 1);
}

}  // namespace weightcast
