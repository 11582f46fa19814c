// SPDX-License-Identifier: Apache-2.0
#pragma once
// What can be set on host_runtime at run time; the defaults need no call.

#include <chrono>
#include <cstdint>
#include <limits>

#include <weightcast/base/byte_count.hpp>

namespace weightcast {

/// Settings of host_runtime, for the whole process.
struct host_runtime_settings {
    /// Virtual devices `host:0` to `host:device_count - 1`, from 1 to 64.
    int device_count = 4;
    /// Deallocated memory is overwritten, in the stream's order, and closed to the address sanitizer.
    bool poison_freed = false;
    /// Each operation waits up to this long before it runs, so that missing waits show; up to one minute.
    std::chrono::microseconds max_delay{0};
    /// The same seed and the same calls give the same delays.
    std::uint64_t delay_seed = 0;
    /// The most bytes that stream-ordered allocation reserves on one device; the largest value means no limit.
    byte_count device_memory_limit{std::numeric_limits<std::uint64_t>::max()};

    friend bool operator==(host_runtime_settings const&, host_runtime_settings const&) = default;
};

}  // namespace weightcast
