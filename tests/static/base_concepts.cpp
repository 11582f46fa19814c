// SPDX-License-Identifier: Apache-2.0
// Compiled only: the smallest models of base/'s concepts, and near-misses that lack one thing each.

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include <weightcast/base/concepts.hpp>

namespace {

using namespace weightcast;
using time_point = std::chrono::steady_clock::time_point;

struct progress_archetype {
    progress_archetype() = delete;
    progress_archetype(progress_archetype const&) = delete;
    void begin(phase, std::uint64_t);
    void advance(std::uint64_t, std::string_view);
    void end();
};
static_assert(ProgressSink<progress_archetype>);
static_assert(explain_progress_sink<progress_archetype>());
static_assert(explain_progress_sink<no_progress>());

struct without_begin {
    void advance(std::uint64_t, std::string_view);
    void end();
};
struct without_advance {
    void begin(phase, std::uint64_t);
    void end();
};
struct without_end {
    void begin(phase, std::uint64_t);
    void advance(std::uint64_t, std::string_view);
};
struct advance_without_name {
    void begin(phase, std::uint64_t);
    void advance(std::uint64_t);
    void end();
};
struct only_constant_begin {
    void begin(phase, int) &&;
    void advance(std::uint64_t, std::string_view);
    void end();
};
static_assert(!ProgressSink<without_begin>);
static_assert(!ProgressSink<without_advance>);
static_assert(!ProgressSink<without_end>);
static_assert(!ProgressSink<advance_without_name>);
static_assert(!ProgressSink<only_constant_begin>);
static_assert(!ProgressSink<int>);

struct trace_archetype {
    trace_archetype(trace_archetype const&) = delete;
    void span(std::string_view, time_point, time_point);
};
struct trace_of_durations {
    void span(std::string_view, std::chrono::nanoseconds);
};
struct trace_of_wall_clock {
    void span(std::string_view, std::chrono::system_clock::time_point,
              std::chrono::system_clock::time_point);
};
static_assert(TraceSink<trace_archetype>);
static_assert(explain_trace_sink<trace_archetype>());
static_assert(explain_trace_sink<no_trace>());
static_assert(!TraceSink<trace_of_durations>);
static_assert(!TraceSink<trace_of_wall_clock>);
static_assert(!TraceSink<no_progress>);

struct code_archetype {};
struct code_without_traits {};
struct code_without_text {};
struct code_with_vague_failure {};

}  // namespace

template <>
struct weightcast::code_traits<code_archetype> {
    using error_type = weightcast::system_failure;
    static bool failed(code_archetype) noexcept;
    static std::string text(code_archetype);
};
template <>
struct weightcast::code_traits<code_without_text> {
    using error_type = weightcast::system_failure;
    static bool failed(code_without_text) noexcept;
};
template <>
struct weightcast::code_traits<code_with_vague_failure> {
    using error_type = weightcast::system_failure;
    static int failed(code_with_vague_failure) noexcept;
    static std::string text(code_with_vague_failure);
};

namespace {

static_assert(CheckedCode<code_archetype>);
static_assert(CheckedCode<posix_result>);
static_assert(!CheckedCode<code_without_traits>);
static_assert(!CheckedCode<code_without_text>);
static_assert(!CheckedCode<code_with_vague_failure>);

}  // namespace
