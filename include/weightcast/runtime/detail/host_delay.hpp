// SPDX-License-Identifier: Apache-2.0
#pragma once
// Random delays without a state that threads would share: a number for a seed, a stream and an operation.

#include <cstdint>

namespace weightcast::detail {

/// Microseconds from 0 to `most`, the same for the same arguments: a step of splitmix64.
constexpr std::uint32_t host_delay(std::uint64_t seed, std::uint64_t stream,
                                   std::uint64_t operation, std::uint32_t most) noexcept {
    if (most == 0) return 0;
    std::uint64_t x = seed + 0x9E3779B97F4A7C15U * (stream * 0x100000001B3U + operation + 1);
    x = (x ^ (x >> 30U)) * 0xBF58476D1CE4E5B9U;
    x = (x ^ (x >> 27U)) * 0x94D049BB133111EBU;
    return static_cast<std::uint32_t>((x ^ (x >> 31U)) % (std::uint64_t{most} + 1));
}

}  // namespace weightcast::detail
