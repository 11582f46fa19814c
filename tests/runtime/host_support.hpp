// SPDX-License-Identifier: Apache-2.0
// What the tests of host_runtime share: a blocked stream, settings for a scope, operations on plain memory.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <thread>

#include <weightcast/runtime/host_runtime.hpp>
#include "laws/runtime_laws.hpp"

namespace weightcast::test {

using runtime = host_runtime;
inline constexpr device host0{device_kind::host, 0};
inline constexpr device host1{device_kind::host, 1};
inline constexpr device host2{device_kind::host, 2};

template <>
class stream_blocker<host_runtime> {
  public:
    explicit stream_blocker(host_stream_ref on) {
        host_runtime::enqueue(on, [this]() noexcept {
            // relaxed while it blocks: it shall order nothing that a test is about
            started_.store(true, std::memory_order_relaxed);
            while (!open_.load(std::memory_order_relaxed)) std::this_thread::yield();
            ended_.store(true, std::memory_order_release);  // the last look at this object
        });
    }
    stream_blocker(stream_blocker&&) = delete;
    ~stream_blocker() {
        open();
        while (!ended_.load(std::memory_order_acquire)) std::this_thread::yield();
    }
    void open() noexcept { open_.store(true, std::memory_order_relaxed); }
    bool started() const noexcept { return started_.load(std::memory_order_relaxed); }
    void wait_until_started() const {
        while (!started()) std::this_thread::yield();
    }

  private:
    std::atomic<bool> started_{false};
    std::atomic<bool> open_{false};
    std::atomic<bool> ended_{false};
};

/// Settings as long as it lives; then those before.
class settings_scope {
  public:
    /// Devices that a test has added stay: something may live on them.
    explicit settings_scope(host_runtime_settings wanted) {
        wanted.device_count = std::max(wanted.device_count, before_.device_count);
        runtime::configure(wanted);
    }
    settings_scope(settings_scope&&) = delete;
    ~settings_scope() { runtime::configure(before_); }

  private:
    host_runtime_settings before_ = runtime::settings();
};

}  // namespace weightcast::test
