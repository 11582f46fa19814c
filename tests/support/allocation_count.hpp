// SPDX-License-Identifier: Apache-2.0
// How often the program has called operator new; counts where one of its files includes counting_new.hpp.
#pragma once

#include <atomic>
#include <cstdint>

namespace weightcast::test {

inline std::atomic<std::uint64_t>& allocation_counter() noexcept {
    static std::atomic<std::uint64_t> count{0};
    return count;
}
/// Calls of operator new so far, by all threads.
inline std::uint64_t allocation_count() noexcept {
    return allocation_counter().load(std::memory_order_relaxed);
}

}  // namespace weightcast::test
