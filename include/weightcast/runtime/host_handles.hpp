// SPDX-License-Identifier: Apache-2.0
#pragma once
// The two handles of host_runtime: values that name a stream or an event and own nothing.

#include <cstddef>
#include <cstdint>

#include <weightcast/base/error.hpp>
#include <weightcast/runtime/detail/host_state.hpp>

namespace weightcast {

struct host_runtime;

/// Names a stream of host_runtime. A handle to a destroyed stream is found out: using it throws.
class host_stream_ref {
  public:
    using native_type = void*;

    host_stream_ref(int) = delete;
    host_stream_ref(std::nullptr_t) = delete;

    /// The stream behind a native handle. @throws bad_argument  for a null one
    static host_stream_ref from_native_handle(native_type handle) {
        if (handle == nullptr) {
            throw bad_argument{"host_stream_ref: a null handle names no stream of host_runtime"};
        }
        auto* const stream = static_cast<detail::host_stream*>(handle);
        return host_stream_ref{{stream, stream->generation()}};
    }
    native_type native_handle() const noexcept { return use_.stream; }

    friend bool operator==(host_stream_ref const&, host_stream_ref const&) = default;

  private:
    friend struct host_runtime;
    explicit host_stream_ref(detail::host_stream_use use) noexcept : use_{use} {}
    detail::host_stream_use use_;
};

/// Names an event of host_runtime. A handle to a destroyed event is found out: using it throws.
class host_event_ref {
  public:
    using native_type = void*;

    host_event_ref(int) = delete;
    host_event_ref(std::nullptr_t) = delete;

    /// The event behind a native handle. @throws bad_argument  for a null one
    static host_event_ref from_native_handle(native_type handle) {
        if (handle == nullptr) {
            throw bad_argument{"host_event_ref: a null handle names no event of host_runtime"};
        }
        auto* const event = static_cast<detail::host_event*>(handle);
        return host_event_ref{event, event->generation.load(std::memory_order_relaxed)};
    }
    native_type native_handle() const noexcept { return event_; }

    friend bool operator==(host_event_ref const&, host_event_ref const&) = default;

  private:
    friend struct host_runtime;
    host_event_ref(detail::host_event* event, std::uint64_t generation) noexcept
        : event_{event}, generation_{generation} {}
    detail::host_event* event_;
    std::uint64_t generation_;
};

}  // namespace weightcast
