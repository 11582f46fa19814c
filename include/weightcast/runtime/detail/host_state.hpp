// SPDX-License-Identifier: Apache-2.0
#pragma once
// The one state of host_runtime in a process: every handle points to it, so that two copies of it (two
// shared libraries that do not see each other's symbols) end in an error and not in two half-truths.

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <string>

#include <pthread.h>

#include <weightcast/base/byte_count.hpp>
#include <weightcast/base/error.hpp>
#include <weightcast/runtime/detail/host_delay.hpp>
#include <weightcast/runtime/detail/host_memory.hpp>
#include <weightcast/runtime/detail/host_stream.hpp>
#include <weightcast/runtime/host_runtime_settings.hpp>

namespace weightcast::detail {

/// One event, or the place of one that was destroyed. `point` is relaxed: recording an event orders
/// nothing among callers.
struct host_event {
    host_state* state = nullptr;
    std::atomic<std::uint64_t> generation{1};
    std::atomic<std::uint64_t> point{0};
    host_event* next_free = nullptr;
    host_event* made_before = nullptr;
};

/// Streams, events, memory and settings.
class host_state {
  public:
    host_state() {
        ::pthread_atfork(nullptr, nullptr, &after_fork_in_child);
        std::atexit(&at_exit);
    }
    host_state(host_state&&) = delete;

    /// This process was forked from one that used the state: its stream threads are not here.
    static std::atomic<bool>& forked() noexcept;

    // --- settings: relaxed, as they order nothing ---
    int device_count() const noexcept { return device_count_.load(std::memory_order_relaxed); }
    bool poisons() const noexcept { return poison_freed_.load(std::memory_order_relaxed); }
    std::uint64_t limit() const noexcept { return limit_.load(std::memory_order_relaxed); }
    std::uint32_t max_delay_us() const noexcept {
        return delay_us_.load(std::memory_order_relaxed);
    }
    std::uint64_t delay_seed() const noexcept { return seed_.load(std::memory_order_relaxed); }

    void configure(host_runtime_settings const& wanted) {
        std::lock_guard const lock{mutex_};
        if (wanted.device_count < device_count() && is_anything_alive()) {
            throw contract_violation{
                "host_runtime::configure: device_count goes from " +
                std::to_string(device_count()) + " to " + std::to_string(wanted.device_count) +
                ", but streams, events or allocations are alive; it may only grow then"};
        }
        if (live_streams_ == 0) next_order_ = 0;
        device_count_.store(wanted.device_count, std::memory_order_relaxed);
        poison_freed_.store(wanted.poison_freed, std::memory_order_relaxed);
        limit_.store(wanted.device_memory_limit.value, std::memory_order_relaxed);
        delay_us_.store(static_cast<std::uint32_t>(wanted.max_delay.count()),
                        std::memory_order_relaxed);
        seed_.store(wanted.delay_seed, std::memory_order_relaxed);
    }
    host_runtime_settings settings() const noexcept {
        return {device_count(), poisons(), std::chrono::microseconds{max_delay_us()}, delay_seed(),
                byte_count{limit()}};
    }

    // --- streams ---
    host_stream_use create_stream(device where) {
        std::lock_guard const lock{mutex_};
        host_stream& stream = vacant_stream();
        stream.start(where, next_order_);
        ++next_order_;
        ++live_streams_;
        return {&stream, stream.generation()};
    }
    void destroy_stream(host_stream_use use) {
        std::lock_guard const lock{mutex_};
        use.stream->close(use.generation);
        --live_streams_;
    }
    /// The place of a stream that was made last; each leads to the one before it. Places stay.
    host_stream* newest_stream() {
        std::lock_guard const lock{mutex_};
        return newest_stream_;
    }
    /// Calls `visit(stream)` for the places of streams from `first` back until it says false; where it stopped.
    template <class Visit>
    host_stream* visit_streams(host_stream* first, Visit visit) {
        std::lock_guard const lock{mutex_};
        while (first != nullptr && visit(*first)) first = first->made_before;
        return first;
    }

    // --- events ---
    host_event& create_event() {
        std::lock_guard const lock{mutex_};
        if (free_event_ == nullptr) {
            free_event_ = new host_event{.state = this, .made_before = events_};
            events_ = free_event_;
        }
        host_event& event = *free_event_;
        free_event_ = event.next_free;
        event.point.store(0, std::memory_order_relaxed);
        ++live_events_;
        return event;
    }
    void destroy_event(host_event& event, std::uint64_t generation) {
        std::lock_guard const lock{mutex_};
        if (event.generation.load(std::memory_order_relaxed) != generation) {
            throw contract_violation{
                "host_runtime::destroy_event: this event was destroyed already"};
        }
        event.generation.store(generation + 1, std::memory_order_relaxed);
        event.next_free = free_event_;
        free_event_ = &event;
        --live_events_;
    }

    host_mark_directory& marks() noexcept { return marks_; }
    host_memory& memory() noexcept { return memory_; }
    std::atomic<std::uint64_t>& device_waits(int index) noexcept {
        return device_waits_[static_cast<std::size_t>(index)];
    }

  private:
    host_stream& vacant_stream() {
        auto* place = newest_stream_;
        while (place != nullptr && !place->is_vacant()) place = place->made_before;
        if (place != nullptr) return *place;
        auto* const fresh = new host_stream{*this, marks_};
        fresh->made_before = newest_stream_;
        newest_stream_ = fresh;
        return *fresh;
    }
    bool is_anything_alive() {
        return live_streams_ != 0 || live_events_ != 0 || memory_.has_active();
    }

    static void after_fork_in_child() noexcept { forked().store(true, std::memory_order_relaxed); }
    static void at_exit() noexcept;
    void stop() noexcept;

    std::mutex mutex_;  // among callers
    host_stream* newest_stream_ =
        nullptr;  // each leads to the one before it; kept, as the state is
    std::uint64_t next_order_ = 0;
    int live_streams_ = 0;
    host_event* events_ = nullptr;  // the newest of all; kept, as the state is
    host_event* free_event_ = nullptr;
    int live_events_ = 0;

    host_mark_directory marks_;
    host_memory memory_;
    std::array<std::atomic<std::uint64_t>, host_device_limit> device_waits_{};

    std::atomic<int> device_count_{host_runtime_settings{}.device_count};
    std::atomic<bool> poison_freed_{false};
    std::atomic<std::uint64_t> limit_{host_runtime_settings{}.device_memory_limit.value};
    std::atomic<std::uint32_t> delay_us_{0};
    std::atomic<std::uint64_t> seed_{0};
};

/// The state. Made at the first use, never destroyed: streams may run until the process ends.
[[gnu::visibility("default")]] inline host_state& shared_host_state() {
    static auto* const state = new host_state;
    return *state;
}
[[gnu::visibility("default")]] inline std::atomic<bool>& host_state_forked() noexcept {
    static std::atomic<bool> forked{false};
    return forked;
}
/// The calling thread's current device.
[[gnu::visibility("default")]] inline int& current_host_device() noexcept {
    thread_local int index = 0;
    return index;
}

inline std::atomic<bool>& host_state::forked() noexcept { return host_state_forked(); }

inline void host_state::at_exit() noexcept {
    if (!forked().load(std::memory_order_relaxed)) shared_host_state().stop();
}

/// The process ends: no operation begins any more, those that run get a moment to end, and what no one
/// uses goes back to the system. An operation that is stuck is left to the end of the process.
inline void host_state::stop() noexcept {
    using namespace std::chrono_literals;
    auto const until = deadline::after(250ms);
    std::unique_lock lock{mutex_, std::defer_lock};
    while (!lock.try_lock()) {
        if (until.expired()) return;
        spin_pause();
    }
    for (auto* each = newest_stream_; each != nullptr; each = each->made_before) {
        each->gate().close();
    }
    bool quiet = true;
    for (auto* each = newest_stream_; each != nullptr; each = each->made_before) {
        while (!each->is_stopped() && !until.expired()) spin_pause();
        quiet = quiet && each->is_stopped();
    }
    if (quiet) memory_.release_all_free();
}

inline std::uint32_t host_stream::draw_delay(std::uint64_t number) const noexcept {
    return host_delay(state_->delay_seed(), order_, number, state_->max_delay_us());
}

}  // namespace weightcast::detail
