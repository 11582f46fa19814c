// SPDX-License-Identifier: Apache-2.0
#pragma once
// The concepts of base/ and their explanations in full sentences.

#include <weightcast/base/check.hpp>
#include <weightcast/base/sinks.hpp>

namespace weightcast {

/// Says in full sentences why S is no ProgressSink; true when it is one.
template <class S>
consteval bool explain_progress_sink() {
    static_assert(
        requires(S& s, phase p, std::uint64_t b) { s.begin(p, b); },
        "ProgressSink: the sink needs begin(phase, total_bytes)");
    static_assert(
        requires(S& s, std::uint64_t b, std::string_view t) { s.advance(b, t); },
        "ProgressSink: the sink needs advance(bytes_done, tensor_name)");
    static_assert(requires(S& s) { s.end(); }, "ProgressSink: the sink needs end()");
    return ProgressSink<S>;
}

/// Says in full sentences why S is no TraceSink; true when it is one.
template <class S>
consteval bool explain_trace_sink() {
    static_assert(TraceSink<S>,
                  "TraceSink: the sink needs span(name, begin, end) with steady_clock points");
    return TraceSink<S>;
}

/// Says in full sentences why S is no TrackedTraceSink; true when it is one.
template <class S>
consteval bool explain_tracked_trace_sink() {
    static_assert(TrackedTraceSink<S>,
                  "TrackedTraceSink: the sink needs track(name), returning a TraceSink");
    return TrackedTraceSink<S>;
}

}  // namespace weightcast
