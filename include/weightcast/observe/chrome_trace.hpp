// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/observe is host-only: include it from a .cpp file"
#endif
// Spans of a transfer in a file that chrome://tracing and ui.perfetto.dev show.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <unistd.h>

#include <weightcast/base/sinks.hpp>

namespace weightcast {

namespace detail {

/// Bytes of the well-formed UTF-8 character that the text begins with; 0 where there is none (cut short, overlong, a
/// surrogate, past U+10FFFF). @pre  the text is not empty
inline std::size_t utf8_length(std::string_view text) {
    auto const byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    auto const lead = byte(0);
    if (lead < 0x80) return 1;
    if (lead < 0xC2 || lead > 0xF4) return 0;
    std::size_t const length = 2U + (lead >= 0xE0 ? 1U : 0U) + (lead >= 0xF0 ? 1U : 0U);
    if (text.size() < length) return 0;
    for (std::size_t i = 1; i < length; ++i) {
        if ((byte(i) & 0xC0U) != 0x80) return 0;
    }
    auto const second = byte(1);
    bool const overlong = (lead == 0xE0 && second < 0xA0) || (lead == 0xF0 && second < 0x90);
    bool const outside = (lead == 0xED && second > 0x9F) || (lead == 0xF4 && second > 0x8F);
    return overlong || outside ? 0 : length;
}

/// The text as a JSON string with its quotes. Bytes that are no UTF-8 become U+FFFD, each one.
inline std::string json_string(std::string_view text) {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string quoted = "\"";
    while (!text.empty()) {
        auto const length = utf8_length(text);
        auto const c = static_cast<unsigned char>(text.front());
        if (length == 0) {
            quoted += "\\ufffd";
        } else if (c == '"' || c == '\\') {
            quoted.append(1, '\\').append(1, text.front());
        } else if (c < 0x20) {
            quoted.append("\\u00").append(1, digits[c >> 4U]).append(1, digits[c & 15U]);
        } else {
            quoted += text.substr(0, length);
        }
        text.remove_prefix(length == 0 ? 1 : length);
    }
    return quoted + "\"";
}

/// Nanoseconds as microseconds with three decimals, whatever the locale is. "-1.500", "0.001".
inline std::string in_microseconds(std::chrono::nanoseconds time) {
    auto const count = time.count();
    auto const size =
        count < 0 ? 0 - static_cast<std::uint64_t>(count) : static_cast<std::uint64_t>(count);
    auto const rest = std::to_string(size % 1000);
    return (count < 0 ? "-" : "") + std::to_string(size / 1000) + "." +
           std::string(3 - rest.size(), '0') + rest;
}

}  // namespace detail

/// How a chrome_trace is bounded, and whose it says that it is.
struct chrome_trace_settings {
    std::size_t max_spans = std::size_t{1} << 18U;  ///< later ones are only counted
    std::int64_t process_id = ::getpid();
    std::string process_name = "weightcast";  ///< with a rank, say, where files are put together
};

/// A TraceSink that keeps spans by track, and writes them as trace events in JSON. Times are those of the steady clock,
/// so that files of several processes of one machine can be put together.
/// Thread-safe. Cost: a lock and a copy of the name a span; about 64 bytes each, and names of over 15 characters.
class chrome_trace {
  public:
    using time_point = std::chrono::steady_clock::time_point;

    /// A TraceSink for one track, copied freely. The trace must outlive it.
    class track_sink {
      public:
        void span(std::string_view name, time_point begin, time_point end) {
            trace_->add(track_, name, begin, end);
        }

      private:
        friend class chrome_trace;
        track_sink(chrome_trace& trace, std::size_t track) noexcept
            : trace_{&trace}, track_{track} {}
        chrome_trace* trace_;
        std::size_t track_;
    };

    explicit chrome_trace(chrome_trace_settings settings = {}) : settings_{std::move(settings)} {}
    chrome_trace(chrome_trace const&) = delete;
    chrome_trace& operator=(chrome_trace const&) = delete;
    ~chrome_trace() = default;

    /// The track of that name: a row of the picture. Rows come in the order in which they were first asked for.
    /// Cost: linear in the number of tracks; ask once.
    track_sink track(std::string_view name) {
        std::lock_guard const lock{mutex_};
        std::size_t index = 0;
        while (index < tracks_.size() && tracks_[index] != name) ++index;
        if (index == tracks_.size()) tracks_.emplace_back(name);
        return {*this, index};
    }
    /// A span of the track "main". One that ends before it begins has no length.
    void span(std::string_view name, time_point begin, time_point end) {
        track("main").span(name, begin, end);
    }

    /// Spans kept.
    std::size_t size() const {
        std::lock_guard const lock{mutex_};
        return spans_.size();
    }
    /// Spans that came when there were as many as may be.
    std::uint64_t dropped() const {
        std::lock_guard const lock{mutex_};
        return dropped_;
    }

    /// One JSON object: "traceEvents", with the spans in the order in which they came, and the number of those dropped
    /// in "otherData". Spans that come meanwhile are not in it. Whether it was written, the stream says.
    /// Cost: a copy of what is kept, under the lock.
    void write(std::ostream& out) const {
        auto const [tracks, spans, dropped] = copied();
        auto const put = [&](std::string const& text) {
            out.write(text.data(), static_cast<std::streamsize>(text.size()));
        };
        put("{\"displayTimeUnit\":\"ms\",\"otherData\":{\"dropped_spans\":" +
            std::to_string(dropped) + "},\"traceEvents\":[\n" +
            metadata("process_name", 0, settings_.process_name));
        for (std::size_t i = 0; i < tracks.size(); ++i) {
            put(",\n" + metadata("thread_name", i + 1, tracks[i]));
            put(",\n{\"name\":\"thread_sort_index\"," + place("M", i + 1) +
                ",\"args\":{\"sort_index\":" + std::to_string(i) + "}}");
        }
        for (auto const& span : spans) put(",\n" + event_of(span));
        put("\n]}\n");
    }

  private:
    struct kept_span {
        std::string name;
        time_point begin;
        time_point end;
        std::size_t track;
    };
    struct contents {
        std::vector<std::string> tracks;
        std::vector<kept_span> spans;
        std::uint64_t dropped;
    };

    void add(std::size_t track, std::string_view name, time_point begin, time_point end) {
        std::lock_guard const lock{mutex_};
        if (spans_.size() >= settings_.max_spans) {
            ++dropped_;
        } else {
            spans_.push_back({std::string{name}, begin, end, track});
        }
    }
    contents copied() const {
        std::lock_guard const lock{mutex_};
        return {tracks_, spans_, dropped_};
    }
    std::string place(std::string_view kind, std::size_t thread) const {
        return "\"ph\":\"" + std::string{kind} +
               "\",\"pid\":" + std::to_string(settings_.process_id) +
               ",\"tid\":" + std::to_string(thread);
    }
    std::string metadata(std::string_view what, std::size_t thread, std::string_view name) const {
        return "{\"name\":" + detail::json_string(what) + "," + place("M", thread) +
               ",\"args\":{\"name\":" + detail::json_string(name) + "}}";
    }
    std::string event_of(kept_span const& span) const {
        auto const length =
            span.end < span.begin ? time_point::duration::zero() : span.end - span.begin;
        return "{\"name\":" + detail::json_string(span.name) + "," + place("X", span.track + 1) +
               ",\"ts\":" + detail::in_microseconds(span.begin.time_since_epoch()) +
               ",\"dur\":" + detail::in_microseconds(length) + "}";
    }

    chrome_trace_settings const settings_;
    mutable std::mutex mutex_;
    std::vector<std::string> tracks_;
    std::vector<kept_span> spans_;
    std::uint64_t dropped_ = 0;
};
static_assert(TraceSink<chrome_trace>);
static_assert(TraceSink<chrome_trace::track_sink>);

}  // namespace weightcast
