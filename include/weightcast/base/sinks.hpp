// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the library tells while it works: concepts only, so that the data path pays for nothing it does not use.

#include <chrono>
#include <concepts>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include <weightcast/base/phase.hpp>

namespace weightcast {

/// Hears how far a transfer is.
/// Semantics: called on the thread that drives the transfer, never on a stream's; `done` never decreases
/// between two `begin` calls. Near-miss: a sink that blocks; it stalls the transfer it watches.
template <class S>
concept ProgressSink =
    requires(S& sink, phase where, std::uint64_t bytes, std::string_view tensor) {
        sink.begin(where, bytes);
        sink.advance(bytes, tensor);
        sink.end();
    };

/// Hears spans of time for a trace: `span(name, begin, end)`.
template <class S>
concept TraceSink = requires(S& sink, std::string_view name,
                             std::chrono::steady_clock::time_point t) { sink.span(name, t, t); };

/// Keeps spans by track: `track(name)` is a TraceSink. A ProgressSink of a transfer may be one as well: then it hears
/// when each stream came to its work and when it was done with it. Near-miss: a sink whose spans all go to one row.
template <class S>
concept TrackedTraceSink = requires(S& sink, std::string_view name) {
    requires TraceSink<std::remove_cvref_t<decltype(sink.track(name))>>;
};

/// Hears nothing.
struct no_progress {
    constexpr void begin(phase, std::uint64_t) noexcept {}
    constexpr void advance(std::uint64_t, std::string_view) noexcept {}
    constexpr void end() noexcept {}
};
static_assert(ProgressSink<no_progress>);

/// Hears nothing.
struct no_trace {
    constexpr void span(std::string_view, std::chrono::steady_clock::time_point,
                        std::chrono::steady_clock::time_point) noexcept {}
};
static_assert(TraceSink<no_trace>);

}  // namespace weightcast
