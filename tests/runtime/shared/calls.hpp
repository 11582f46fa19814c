// SPDX-License-Identifier: Apache-2.0
// What a shared library of these tests offers: a few calls of host_runtime as its own object code makes them.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>

#include <weightcast/runtime/host_runtime.hpp>

namespace shared_calls {

using weightcast::host_runtime;

/// Writes the sentence of what was thrown, or nothing; tells whether it was a contract_violation.
template <class Body>
int told(char* sentence, std::size_t size, Body body) noexcept {
    sentence[0] = 0;
    try {
        body();
        return 0;
    } catch (weightcast::contract_violation const& refusal) {
        std::snprintf(sentence, size, "%s", refusal.what());
        return 1;
    } catch (std::exception const& other) {
        std::snprintf(sentence, size, "%s", other.what());
        return 2;
    }
}

}  // namespace shared_calls

extern "C" {

/// The address of the state that this library uses.
[[gnu::visibility("default")]] void const* shared_state() {
    return &weightcast::detail::shared_host_state();
}

/// A new stream of host:1 and an event recorded on it, after an operation that writes 7 to the word.
[[gnu::visibility("default")]] void shared_begin(std::uint32_t* word, void** stream, void** event) {
    using namespace shared_calls;
    auto const s = host_runtime::create_stream({weightcast::device_kind::host, 1});
    host_runtime::enqueue(s, [word]() noexcept { *word = 7; });
    auto const e = host_runtime::create_event();
    host_runtime::record(e, s);
    *stream = s.native_handle();
    *event = e.native_handle();
}

/// Waits for another library's event, uses its stream, and ends both. 0: done, else what was thrown.
[[gnu::visibility("default")]] int shared_end(std::uint32_t* word, void* stream, void* event,
                                              char* sentence, std::size_t size) {
    using namespace shared_calls;
    return told(sentence, size, [&] {
        auto const s = host_runtime::stream_ref::from_native_handle(stream);
        auto const e = host_runtime::event_ref::from_native_handle(event);
        auto const until = weightcast::deadline::after(std::chrono::seconds{60});
        if (!host_runtime::wait(e, until)) throw weightcast::timeout{"the event is not reached"};
        host_runtime::enqueue(s, [word]() noexcept { *word += 1; });
        if (!host_runtime::wait(s, until)) throw weightcast::timeout{"the stream is not done"};
        host_runtime::destroy_event(e);
        host_runtime::destroy_stream(s);
    });
}

}  // extern "C"
