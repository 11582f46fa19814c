// SPDX-License-Identifier: Apache-2.0
#pragma once
// Sleeping on a word without ordering anything: a wake-up must not hide a missing wait from a race detector.

#include <bit>
#include <chrono>
#include <climits>
#include <cstdint>
#include <ctime>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <weightcast/base/deadline.hpp>

namespace weightcast::detail {

/// Sleeps while the word holds `expected`, at most until the deadline. May wake early: callers look again.
inline void futex_wait(void const* word, std::uint32_t expected, deadline until) noexcept {
    using namespace std::chrono;
    timespec at{};
    timespec const* limit = nullptr;
    if (until.point() != deadline::clock::time_point::max()) {
        auto const since = until.point().time_since_epoch();
        auto const whole = floor<seconds>(since);
        at.tv_sec = static_cast<std::time_t>(whole.count());
        at.tv_nsec = static_cast<long>(duration_cast<nanoseconds>(since - whole).count());
        limit = &at;
    }
    // BITSET takes an absolute time of CLOCK_MONOTONIC, which is what steady_clock counts.
    ::syscall(SYS_futex, word, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, expected, limit, nullptr,
              FUTEX_BITSET_MATCH_ANY);
}

/// Wakes up to that many of those that sleep on the word.
inline void futex_wake(void const* word, int sleepers = INT_MAX) noexcept {
    ::syscall(SYS_futex, word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, sleepers, nullptr, nullptr, 0);
}

/// Where the low 32 bits of a 64-bit word lie: futexes are 32 bits wide.
inline void const* low_half(void const* word) noexcept {
    auto const* halves = static_cast<std::uint32_t const*>(word);
    return halves + (std::endian::native == std::endian::little ? 0 : 1);
}

/// How often a waiter looks before it sleeps.
inline constexpr int spins_before_sleep = 64;

/// Tells the core that this is a spin.
inline void spin_pause() noexcept {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

/// A deadline that never comes: for the stream threads, which have no caller to report to.
inline constexpr deadline never = deadline::at(deadline::clock::time_point::max());

}  // namespace weightcast::detail
