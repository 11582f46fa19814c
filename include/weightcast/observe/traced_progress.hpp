// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/observe is host-only: include it from a .cpp file"
#endif
// A transfer's progress and its trace, as one sink for an engine.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include <weightcast/base/phase.hpp>
#include <weightcast/base/sinks.hpp>
#include <weightcast/observe/chrome_trace.hpp>

namespace weightcast {

/// Passes progress on to P, and keeps spans in a trace: each phase in the track "phases", and what streams do in tracks
/// of their own ("pack", "broadcast", "unpack", "layer step"). A span of a stream begins when the stream comes to the
/// work, so waiting for another stream is in it. The trace must outlive it.
/// Cost: as chrome_trace; and two small operations on a stream for each chunk.
template <ProgressSink P = no_progress>
class traced_progress {
  public:
    explicit traced_progress(chrome_trace& trace, P progress = {})
        : trace_{&trace}, progress_{std::move(progress)} {}

    void begin(phase where, std::uint64_t bytes) {
        close();
        open_ = where;
        begun_ = std::chrono::steady_clock::now();
        progress_.begin(where, bytes);
    }
    void advance(std::uint64_t bytes, std::string_view tensor) { progress_.advance(bytes, tensor); }
    void end() {
        close();
        progress_.end();
    }
    chrome_trace::track_sink track(std::string_view name) { return trace_->track(name); }

  private:
    void close() {
        if (!open_) return;
        trace_->track("phases").span(to_string(*open_), begun_, std::chrono::steady_clock::now());
        open_.reset();
    }
    chrome_trace* trace_;
    P progress_;
    std::optional<phase> open_{};
    std::chrono::steady_clock::time_point begun_{};
};
static_assert(ProgressSink<traced_progress<>> && TrackedTraceSink<traced_progress<>>);

}  // namespace weightcast
