// SPDX-License-Identifier: Apache-2.0
#pragma once
// The lock that callers of host_runtime take among themselves for each push; a stream's thread never does.

#include <atomic>
#include <cstdint>

#include <weightcast/runtime/detail/host_futex.hpp>

namespace weightcast::detail {

/// A mutex of a quarter of std::mutex's instructions: a push on a stream is counted in hundreds of them.
class host_caller_lock {
  public:
    void lock() noexcept {
        auto seen = unlocked;
        if (!word_.compare_exchange_strong(seen, locked, std::memory_order_acquire,
                                           std::memory_order_relaxed)) {
            wait();
        }
    }
    void unlock() noexcept {
        if (word_.exchange(unlocked, std::memory_order_release) == contended) futex_wake(&word_, 1);
    }

  private:
    static constexpr std::uint32_t unlocked = 0;
    static constexpr std::uint32_t locked = 1;
    static constexpr std::uint32_t contended = 2;

    void wait() noexcept {
        while (word_.exchange(contended, std::memory_order_acquire) != unlocked) {
            futex_wait(&word_, contended, never);
        }
    }
    std::atomic<std::uint32_t> word_{unlocked};
};

}  // namespace weightcast::detail
