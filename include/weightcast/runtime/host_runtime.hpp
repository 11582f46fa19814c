// SPDX-License-Identifier: Apache-2.0
#pragma once
// host_runtime: N virtual devices with truly asynchronous streams on a machine without a GPU.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <string>
#include <type_traits>

#include <weightcast/base/deadline.hpp>
#include <weightcast/base/error.hpp>
#include <weightcast/runtime/concepts.hpp>
#include <weightcast/runtime/detail/host_calls.hpp>
#include <weightcast/runtime/detail/host_state.hpp>
#include <weightcast/runtime/detail/loaded_code.hpp>
#include <weightcast/runtime/host_handles.hpp>
#include <weightcast/runtime/host_runtime_settings.hpp>
#include <weightcast/tensor/device.hpp>
#include <weightcast/tensor/space.hpp>

namespace weightcast {

/// Virtual devices `host:0` to `host:N-1` in ordinary memory, and streams on device `cpu` as well.
/// Each stream runs on a thread of its own, never on the caller; nothing but streams' own order, events and
/// waits orders its work, so that the thread sanitizer sees a wait that is missing.
/// Every call throws contract_violation for a handle that was destroyed, for one of another copy of the state
/// (see detail/host_state.hpp) and in a process forked from one that used the runtime; the noexcept ones
/// end the process with the sentence, and do nothing in a forked one.
/// Cost: enqueue, record, stream_wait and query allocate nothing once the stream's queue has grown to its
/// depth; each takes one uncontended lock among callers at most.
struct host_runtime {
    using space = host_space;
    using stream_ref = host_stream_ref;
    using event_ref = host_event_ref;
    static constexpr device_kind kind = device_kind::host;

    // --- settings ---

    /// Changes all settings; from then on they hold for what is called. The defaults need no call.
    /// @throws bad_argument        for a device count outside 1 to 64 or a delay outside 0 to 1 minute
    /// @throws contract_violation  for fewer devices while a stream, an event or an allocation is alive
    static void configure(host_runtime_settings const& wanted) {
        detail::check_settings(wanted);
        state().configure(wanted);
    }
    static host_runtime_settings settings() { return state().settings(); }

    // --- devices ---

    static int device_count() { return state().device_count(); }
    /// The calling thread's current device: 0 until it is set, and when its device is no longer there.
    static int current_device() {
        auto const index = detail::current_host_device();
        return index < state().device_count() ? index : 0;
    }
    /// @throws bad_argument  for an index out of range; the current device stays
    static void set_current_device(int index) {
        detail::check_device(state(), {kind, index});
        detail::current_host_device() = index;
    }

    // --- streams ---

    /// A stream of `host:i` or of `cpu`, with a thread of its own.
    /// @throws bad_argument    for another device
    /// @throws system_failure  when the system has no thread to give
    static stream_ref create_stream(device where) {
        auto& s = state();
        detail::check_device(s, where);
        return stream_ref{s.create_stream(where)};
    }
    /// Takes the handle out of use and returns at once: what is queued still runs, then the thread ends.
    /// An operation that is stuck keeps its thread until it ends; nothing else waits for it.
    static void destroy_stream(stream_ref stream) noexcept {
        detail::unless_forked("destroy_stream",
                              [&] { use(stream).stream->state().destroy_stream(stream.use_); });
    }
    static device device_of(stream_ref stream) { return alive(stream).stream->where(); }
    /// Everything put on the stream so far is done. Ordering: a yes orders the caller after it.
    static bool query(stream_ref stream) { return alive(stream).stream->is_done(); }
    /// Waits until everything put on the stream so far is done; false when the deadline passes first.
    static bool wait(stream_ref stream, deadline until) {
        auto const point = use(stream).stream->push_point(stream.use_.generation);
        return point.mark->wait(point.point.generation(), until);
    }
    /// Runs `operation` on the stream's thread, after what was put there before. It is copied byte for byte
    /// and never destroyed, so that what it owns it must free itself when it runs.
    template <class F>
    static void enqueue(stream_ref stream, F operation) {
        static_assert(
            std::is_trivially_copyable_v<F>,
            "host_runtime::enqueue: the operation is kept as bytes, so it must be trivially "
            "copyable: capture pointers and values, no owners");
        static_assert(
            sizeof(F) <= detail::host_operation_capacity,
            "host_runtime::enqueue: the operation is larger than the 320 bytes of a queue's node");
        static_assert(alignof(F) <= alignof(std::max_align_t),
                      "host_runtime::enqueue: the operation is over-aligned");
        static_assert(
            std::is_nothrow_invocable_v<F&>,
            "host_runtime::enqueue: the operation runs on a stream's thread where no one catches: "
            "it must be callable without arguments and noexcept");
        use(stream).stream->push(stream.use_.generation, operation);
    }
    /// Writes the time when the stream comes there; the place must live until then.
    static void timestamp(stream_ref stream, std::chrono::steady_clock::time_point* to) {
        enqueue(stream, [to]() noexcept { *to = std::chrono::steady_clock::now(); });
    }
    /// This stream belongs to a communicator: `wait_device` leaves it out.
    static void mark_communicator_stream(stream_ref stream) {
        alive(stream).stream->of_communicator.store(true, std::memory_order_relaxed);
    }

    // --- events ---

    static event_ref create_event() {
        auto& event = state().create_event();
        return event_ref{&event, event.generation.load(std::memory_order_relaxed)};
    }
    /// Harmless while streams have yet to reach or to wait for its last record.
    static void destroy_event(event_ref event) noexcept {
        detail::unless_forked("destroy_event", [&] {
            use(event).state->destroy_event(*event.event_, event.generation_);
        });
    }
    /// The event stands for what the stream holds now; an earlier record is forgotten.
    static void record(event_ref event, stream_ref stream) {
        auto& e = use(event);
        auto const point = use(stream).stream->push_point(stream.use_.generation);
        e.point.store(point.point.packed, std::memory_order_relaxed);
    }
    /// What is put on the stream from now on waits for the event's last record; nothing to wait for when
    /// there was none.
    static void stream_wait(stream_ref stream, event_ref event) {
        auto const point = last_record(event);
        auto const target = use(stream);
        if (!point.recorded()) return;
        target.stream->push_wait(target.generation, state().marks().at(point.index()),
                                 point.generation());
    }
    /// The event's last record is reached, or there was none. Ordering: a yes orders the caller after it.
    static bool query(event_ref event) {
        auto const point = last_record(event);
        return !point.recorded() || state().marks().at(point.index()).reached(point.generation());
    }
    /// Waits for that; false when the deadline passes first.
    static bool wait(event_ref event, deadline until) {
        auto const point = last_record(event);
        return !point.recorded() ||
               state().marks().at(point.index()).wait(point.generation(), until);
    }

    // --- memory ---

    /// That many bytes, aligned to 256, of that device, usable in the stream's order; null for none.
    /// @throws out_of_memory  with the numbers; nothing changed
    static void* allocate(std::size_t bytes, device where, stream_ref stream) {
        auto& s = state();
        detail::check_device(s, where);
        auto const on = alive(stream);
        return bytes == 0 ? nullptr : s.memory().allocate(bytes, where, on, s.limit());
    }
    /// Gives it back once the stream has come this far; any stream may do. Null is ignored.
    /// @pre  it came from `allocate` and was not given back: else the process ends with a sentence
    static void deallocate(void* data, stream_ref stream) noexcept {
        detail::unless_forked("deallocate", [&] {
            auto const on = use(stream);
            auto& s = on.stream->state();
            if (data != nullptr) s.memory().deallocate(data, on, s.poisons());
        });
    }
    static memory_counters memory(device where) {
        auto& s = state();
        detail::check_device(s, where);
        return s.memory().counters(where);
    }
    /// Returns to the system what that device keeps for reuse and no stream uses any more.
    static void trim(device where) {
        auto& s = state();
        detail::check_device(s, where);
        s.memory().trim(where);
    }
    /// The device of memory in use, also for pointers into its middle; `cpu` for memory it does not know.
    static device locate(void const* p) {
        auto const place = state().memory().locate(p);
        return place.known ? place.where : cpu_device;
    }
    /// Copies on the stream. The ranges must not overlap.
    /// @throws device_mismatch  when a pointer of ours lies on another device than said
    /// @throws bad_argument     for a null pointer, memory that was deallocated, or a range past its end
    static void copy(void* to, device to_device, void const* from, device from_device,
                     std::size_t bytes, stream_ref stream) {
        auto& s = state();
        detail::check_copy_end(s, "destination", to, to_device, bytes);
        detail::check_copy_end(s, "source", from, from_device, bytes);
        if (bytes == 0 || to == from) return static_cast<void>(alive(stream));
        enqueue(stream, [to, from, bytes]() noexcept { std::memcpy(to, from, bytes); });
    }

    // --- the whole device ---

    /// Waits until everything put so far on the device's streams is done, those of communicators left out;
    /// false when the deadline passes first. @throws bad_argument  for an index out of range
    static bool wait_device(int index, deadline until) {
        auto& s = state();
        detail::check_device(s, {kind, index});
        s.device_waits(index).fetch_add(1, std::memory_order_relaxed);
        return detail::wait_for_device(s, {kind, index}, until);
    }
    /// How often `wait_device` was called for that device.
    static std::uint64_t device_wait_count(int index) {
        auto& s = state();
        detail::check_device(s, {kind, index});
        return s.device_waits(index).load(std::memory_order_relaxed);
    }

  private:
    /// The state. @throws contract_violation  in a forked process
    static detail::host_state& state() {
        detail::check_not_forked();
        detail::keep_this_code_loaded();
        return detail::shared_host_state();
    }
    /// The stream behind a handle of this state; whether it is alive is looked up under its own lock.
    static detail::host_stream_use use(stream_ref stream) {
        detail::check_state(stream.use_.stream->state(), state());
        return stream.use_;
    }
    static detail::host_stream_use alive(stream_ref stream) {
        auto const found = use(stream);
        found.stream->expect_alive(found.generation);
        return found;
    }
    static detail::host_event& use(event_ref event) {
        detail::check_state(*event.event_->state, state());
        detail::check_alive(*event.event_, event.generation_);
        return *event.event_;
    }
    static detail::host_point last_record(event_ref event) {
        return {use(event).point.load(std::memory_order_relaxed)};
    }
};

static_assert(DeviceRuntime<host_runtime>);

}  // namespace weightcast
