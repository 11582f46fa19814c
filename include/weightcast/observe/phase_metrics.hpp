// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/observe is host-only: include it from a .cpp file"
#endif
// Bytes and seconds of each phase, for reports and tables.

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>

#include <weightcast/base/phase.hpp>
#include <weightcast/base/sinks.hpp>

namespace weightcast {

/// What one phase took, over all times that it ran.
struct phase_metric {
    std::uint64_t bytes = 0;   ///< bytes that moved
    double seconds = 0;        ///< from begin to end
    std::uint64_t count = 0;   ///< how often it ran
    std::uint64_t failed = 0;  ///< how often it did not come to its end
};

/// A ProgressSink that adds up. A phase that is still open when the next one begins counts as
/// failed, with the bytes and the time that it had. Belongs to one thread. Cost: a look at the
/// clock a phase.
class phase_metrics {
  public:
    using clock = std::chrono::steady_clock;
    explicit phase_metrics(std::function<clock::time_point()> now = &clock::now)
        : now_{std::move(now)} {}

    void begin(phase where, std::uint64_t) {
        if (open_) close(1);
        open_ = true;
        current_ = where;
        done_ = 0;
        begun_ = now_();
    }
    void advance(std::uint64_t bytes, std::string_view) noexcept { done_ = bytes; }
    void end() {
        if (open_) close(0);
    }
    /// What that phase took so far; an open one is not in it yet.
    phase_metric const& of(phase where) const {
        return metrics_.at(static_cast<std::size_t>(where));
    }

  private:
    void close(std::uint64_t failed) {
        auto& metric = metrics_.at(static_cast<std::size_t>(current_));
        metric.bytes += done_;
        metric.seconds += std::chrono::duration<double>(now_() - begun_).count();
        metric.count += 1;
        metric.failed += failed;
        open_ = false;
    }

    std::function<clock::time_point()> now_;
    std::array<phase_metric, detail::phase_names.size()> metrics_{};
    phase current_ = phase::connect;
    std::uint64_t done_ = 0;
    clock::time_point begun_{};
    bool open_ = false;
};
static_assert(ProgressSink<phase_metrics>);

}  // namespace weightcast
