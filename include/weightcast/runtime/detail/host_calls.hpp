// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the calls of host_runtime check before they do anything, and the wait for a whole device.

#include <array>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <string>

#include <weightcast/base/deadline.hpp>
#include <weightcast/base/error.hpp>
#include <weightcast/runtime/detail/host_state.hpp>

namespace weightcast::detail {

[[noreturn]] inline void throw_forked() {
    throw contract_violation{
        "host_runtime: this process was forked from one that uses host_runtime, and threads do not "
        "survive a fork: use the runtime in the parent, or exec a program of its own"};
}
inline void check_not_forked() {
    if (host_state_forked().load(std::memory_order_relaxed)) throw_forked();
}

[[noreturn]] inline void throw_foreign_state() {
    throw contract_violation{
        "host_runtime: this handle belongs to another copy of host_runtime's state. Two object files of this "
        "process do not see each other's symbols of weightcast: link the program with -rdynamic, export "
        "weightcast::detail::shared_host_state from shared libraries (no version script that hides it), and "
        "load libraries that clang built with RTLD_GLOBAL"};
}
inline void check_state(host_state const& of_handle, host_state const& here) {
    if (&of_handle != &here) throw_foreign_state();
}

inline void check_alive(host_event const& event, std::uint64_t generation) {
    if (event.generation.load(std::memory_order_relaxed) != generation) {
        throw contract_violation{
            "host_runtime: this event was destroyed; its handle may not be used"};
    }
}

inline void check_device(host_state const& state, device where) {
    auto const count = state.device_count();
    if (where == cpu_device) return;
    if (where.kind == device_kind::host && where.index >= 0 && where.index < count) return;
    std::string const named = where.is_resolved() ? "" : " without an index";
    throw bad_argument{"host_runtime has no device " + to_string(where) + named +
                       ": it has cpu and host:0 to host:" + std::to_string(count - 1)};
}

inline void check_settings(host_runtime_settings const& wanted) {
    if (wanted.device_count < 1 || wanted.device_count > host_device_limit) {
        throw bad_argument{"host_runtime_settings: device_count is " +
                           std::to_string(wanted.device_count) + ", expected 1 to " +
                           std::to_string(host_device_limit)};
    }
    if (wanted.max_delay < std::chrono::microseconds{0} ||
        wanted.max_delay > std::chrono::minutes{1}) {
        throw bad_argument{"host_runtime_settings: max_delay is " +
                           std::to_string(wanted.max_delay.count()) +
                           " us, expected 0 to 60000000 us"};
    }
}

/// One end of a copy: what is said about it must hold as far as it is known.
inline void check_copy_end(host_state& state, char const* end, void const* p, device said,
                           std::size_t bytes) {
    check_device(state, said);
    if (bytes == 0) return;
    auto const refuse = [&](std::string const& why) {
        throw bad_argument{"host_runtime::copy: the " + std::string{end} + " " + why};
    };
    if (p == nullptr) refuse("is null, for " + std::to_string(bytes) + " bytes");
    auto const place = state.memory().locate(p);
    if (place.freed)
        refuse("lies in memory of " + to_string(place.where) + " that was deallocated");
    if (!place.known) return;
    if (place.where != said) {
        throw device_mismatch{"host_runtime::copy: the " + std::string{end} + " lies on " +
                              to_string(place.where) + ", not on " + to_string(said) +
                              " as the call says"};
    }
    if (bytes > place.bytes_left) {
        refuse("has " + std::to_string(place.bytes_left) + " bytes left in its allocation, for " +
               std::to_string(bytes) + " bytes");
    }
}

/// Runs the body of a call that may not throw: a broken precondition ends the process with its sentence. A
/// forked process has nothing to give back.
template <class Body>
void unless_forked(char const* call, Body body) noexcept {
    if (host_state_forked().load(std::memory_order_relaxed)) return;
    try {
        body();
    } catch (std::exception const& failure) {
        std::fprintf(stderr, "weightcast: host_runtime::%s: %s\n", call, failure.what());
        std::terminate();
    }
}

/// Waits for the points that the device's streams have come to, a batch at a time: nothing is allocated.
inline bool wait_for_device(host_state& state, device where, deadline until) {
    constexpr std::size_t batch = 32;
    std::array<host_mark_ring::issued, batch> points{};
    for (auto* next = state.newest_stream(); next != nullptr;) {
        std::size_t count = 0;
        next = state.visit_streams(next, [&](host_stream& stream) {
            if (count == batch) return false;
            if (stream.is_waited_for(where)) points[count++] = stream.present_point();
            return true;
        });
        for (std::size_t i = 0; i < count; ++i) {
            if (!points[i].mark->wait(points[i].point.generation(), until)) return false;
        }
    }
    return true;
}

}  // namespace weightcast::detail
