// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/engine is host-only: include it from a .cpp file"
#endif
// When streams came to the work of a transfer, and when they were done with it.

#include <chrono>
#include <deque>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <weightcast/base/sinks.hpp>
#include <weightcast/runtime/concepts.hpp>
#include <weightcast/runtime/detail/left_behind.hpp>

namespace weightcast::detail {

/// Spans of one transfer. Does nothing, and costs nothing, for a sink without tracks.
/// Streams write into its memory: `take` may be called once they are done; what was not taken is never freed.
template <DeviceRuntime R, class Sink>
class stream_trace {
  public:
    static constexpr bool on = has_timestamps<R> && TrackedTraceSink<Sink>;

    stream_trace() = default;
    stream_trace(stream_trace const&) = delete;
    stream_trace& operator=(stream_trace const&) = delete;
    ~stream_trace() {
        if constexpr (on) {
            if (!spans_->empty()) leave(std::move(spans_));
        }
    }

    /// Returns what `enqueue` does, which puts work on the stream. Where that throws, the span is not kept.
    template <class F>
    decltype(auto) record(char const* track, std::string_view name, typename R::stream_ref stream,
                          F const& enqueue) {
        if constexpr (on) {
            stamps const around{spans_->emplace_back(span{track, std::string{name}, {}, {}}),
                                stream};
            return enqueue();
        } else {
            return enqueue();
        }
    }
    /// Hands the spans over. @pre  the streams are done
    void take(Sink& sink) {
        if constexpr (on) {
            for (auto const& s : *spans_) {
                if (s.end != time_point{}) sink.track(s.track).span(s.name, s.begin, s.end);
            }
            spans_->clear();
        }
    }

  private:
    using time_point = std::chrono::steady_clock::time_point;
    struct span {
        char const* track;
        std::string name;
        time_point begin;
        time_point end;
    };
    // A guard, because what is returned may be a proof, which does not move.
    class stamps {
      public:
        stamps(span& of, typename R::stream_ref stream) : span_{of}, stream_{stream} {
            R::timestamp(stream, &of.begin);
        }
        stamps(stamps const&) = delete;
        stamps& operator=(stamps const&) = delete;
        ~stamps() {
            if (std::uncaught_exceptions() != uncaught_) return;
            try {
                R::timestamp(stream_, &span_.end);
            } catch (...) {  // the span is not kept; the transfer hears of its stream elsewhere
            }
        }

      private:
        span& span_;
        typename R::stream_ref stream_;
        int uncaught_ = std::uncaught_exceptions();
    };
    using spans = std::deque<span>;  // they stay where they are while more come

    static void leave(std::unique_ptr<spans> left) noexcept {
        kept_list only;
        only.keep(std::move(left));
        leave_behind(only);
    }
    std::unique_ptr<spans> spans_ = on ? std::make_unique<spans>() : nullptr;
};

}  // namespace weightcast::detail
