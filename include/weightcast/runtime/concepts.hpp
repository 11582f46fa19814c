// SPDX-License-Identifier: Apache-2.0
#pragma once
// DeviceRuntime: the verbs that the library needs of CUDA, and that host_runtime has on the CPU.

#include <concepts>
#include <cstddef>
#include <cstdint>

#include <weightcast/base/byte_count.hpp>
#include <weightcast/base/deadline.hpp>
#include <weightcast/tensor/device.hpp>
#include <weightcast/tensor/space.hpp>

namespace weightcast {

/// Bytes that stream-ordered allocation holds on one device.
struct memory_counters {
    std::uint64_t active = 0;    ///< allocated and not yet deallocated, counted at the call
    std::uint64_t reserved = 0;  ///< taken from the system, in use or kept for reuse
    std::uint64_t peak = 0;      ///< the highest `active` so far
    friend bool operator==(memory_counters const&, memory_counters const&) = default;
};

template <class R>
concept has_runtime_space = MemorySpace<typename R::space> && requires {
    { R::kind } -> std::convertible_to<device_kind>;
};
template <class R>
concept has_device_selection = requires(int index) {
    { R::device_count() } -> std::same_as<int>;
    { R::current_device() } -> std::same_as<int>;
    R::set_current_device(index);
};
template <class R>
concept has_streams =
    std::copyable<typename R::stream_ref> && requires(device d, typename R::stream_ref stream) {
        { R::create_stream(d) } -> std::same_as<typename R::stream_ref>;
        { R::destroy_stream(stream) } noexcept;
        { R::device_of(stream) } -> std::same_as<device>;
        { R::query(stream) } -> std::same_as<bool>;
    };
template <class R>
concept has_events =
    std::copyable<typename R::event_ref> &&
    requires(typename R::stream_ref stream, typename R::event_ref event, deadline until) {
        { R::create_event() } -> std::same_as<typename R::event_ref>;
        { R::destroy_event(event) } noexcept;
        R::record(event, stream);
        R::stream_wait(stream, event);
        { R::query(event) } -> std::same_as<bool>;
        { R::wait(event, until) } -> std::same_as<bool>;
    };
template <class R>
concept has_stream_ordered_memory =
    requires(std::size_t bytes, device d, void* data, typename R::stream_ref stream) {
        { R::allocate(bytes, d, stream) } -> std::same_as<void*>;
        { R::deallocate(data, stream) } noexcept;
        { R::memory(d) } -> std::same_as<memory_counters>;
    };
template <class R>
concept has_copies =
    requires(void* to, void const* from, device d, std::size_t bytes,
             typename R::stream_ref stream) { R::copy(to, d, from, d, bytes, stream); };
template <class R>
concept has_device_wait = requires(int index, deadline until, typename R::stream_ref stream) {
    { R::wait_device(index, until) } -> std::same_as<bool>;
    R::mark_communicator_stream(stream);
};
template <class R>
concept has_pointer_lookup = requires(void const* p) {
    { R::locate(p) } -> std::same_as<device>;
};

/// A runtime whose streams can tell the time; used where a runtime has it.
/// Semantics: `timestamp(stream, to)` writes to `*to` when the stream comes there; `to` must live until then.
template <class R>
concept has_timestamps =
    requires(typename R::stream_ref stream, std::chrono::steady_clock::time_point* to) {
        R::timestamp(stream, to);
    };

/// Devices, streams, events and memory of one kind of accelerator; all members are static.
/// Semantics: the current device belongs to the calling thread. What is put on a stream runs later, in
/// order, never on the caller. `record` captures what the stream holds at the call; `stream_wait` makes what
/// follows on the stream wait for the event's last record *at the call*. `wait` and `wait_device` return
/// false when the deadline passes first; `wait_device` waits for every stream of that device except those
/// marked by `mark_communicator_stream`. `allocate` gives memory of `d` usable in the order of `stream`;
/// `deallocate` gives it back once the stream has come that far. `locate` answers `cpu` for memory it does not know.
/// A stream may be made on device `cpu` too: a queue over ordinary memory.
/// Laws: tests/laws/runtime_laws.hpp. Models: host_runtime; near-miss: a runtime whose `query` blocks.
template <class R>
concept DeviceRuntime =
    has_runtime_space<R> && has_device_selection<R> && has_streams<R> && has_events<R> &&
    has_stream_ordered_memory<R> && has_copies<R> && has_device_wait<R> && has_pointer_lookup<R>;

/// Says in full sentences why R is no DeviceRuntime; true when it is one.
template <class R>
consteval bool explain_device_runtime() {
    static_assert(has_runtime_space<R>,
                  "DeviceRuntime: the runtime needs `using space` and a constant `kind`");
    static_assert(
        has_device_selection<R>,
        "DeviceRuntime: the runtime needs device_count(), current_device(), set_current_device(int)");
    static_assert(has_streams<R>,
                  "DeviceRuntime: the runtime needs stream_ref, create_stream(device), noexcept "
                  "destroy_stream(stream), device_of(stream), query(stream)");
    static_assert(
        has_events<R>,
        "DeviceRuntime: the runtime needs event_ref, create_event(), noexcept destroy_event(event), "
        "record(event, stream), stream_wait(stream, event), query(event), wait(event, deadline)");
    static_assert(has_stream_ordered_memory<R>,
                  "DeviceRuntime: the runtime needs allocate(bytes, device, stream), noexcept "
                  "deallocate(pointer, stream), memory(device)");
    static_assert(
        has_copies<R>,
        "DeviceRuntime: the runtime needs copy(to, to_device, from, from_device, bytes, stream)");
    static_assert(
        has_device_wait<R>,
        "DeviceRuntime: the runtime needs wait_device(index, deadline) and mark_communicator_stream(stream)");
    static_assert(has_pointer_lookup<R>,
                  "DeviceRuntime: the runtime needs locate(pointer), returning device");
    return DeviceRuntime<R>;
}

}  // namespace weightcast
