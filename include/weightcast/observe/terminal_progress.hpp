// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/observe is host-only: include it from a .cpp file"
#endif
// A progress bar for people: on a terminal, and silent everywhere else.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>

#include <sys/ioctl.h>
#include <unistd.h>

#include <weightcast/base/phase.hpp>
#include <weightcast/base/sinks.hpp>
#include <weightcast/observe/detail/progress_line.hpp>

namespace weightcast {

/// Whether that descriptor is a terminal that a line can be redrawn on.
inline bool is_terminal(int descriptor) {
    auto const* const kind = std::getenv("TERM");
    return ::isatty(descriptor) == 1 && (kind == nullptr || std::string_view{kind} != "dumb");
}

/// Columns of that terminal; 80 where it does not say.
inline int terminal_columns(int descriptor) {
    struct ::winsize size {};
    if (::ioctl(descriptor, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
    return size.ws_col;
}

/// Where a bar is drawn and how often; the defaults are standard error and ten times a second.
/// `out` must not be set to throw.
struct terminal_settings {
    std::ostream* out = &std::cerr;
    bool interactive = is_terminal(STDERR_FILENO);
    std::function<int()> columns = [] { return terminal_columns(STDERR_FILENO); };
    std::function<std::chrono::steady_clock::time_point()> now = &std::chrono::steady_clock::now;
    std::chrono::milliseconds interval{100};
};

/// A ProgressSink that shows bytes, GB/s and the time left on one line, and a summary when a phase
/// ends. It writes carriage returns and blanks, no escape sequences, and nothing at all where
/// `interactive` is not set. A bar that is dropped before `end` (by an exception) leaves its line,
/// so that what follows starts on its own. Belongs to one thread. Cost: one look at the clock a
/// call, a short write ten times a second.
class terminal_progress {
  public:
    explicit terminal_progress(terminal_settings settings = {}) : settings_{std::move(settings)} {}
    terminal_progress(terminal_progress const&) = delete;
    terminal_progress& operator=(terminal_progress const&) = delete;
    ~terminal_progress() { leave_line(); }

    void begin(phase where, std::uint64_t bytes) {
        if (!settings_.interactive) return;
        leave_line();
        state_ = {to_string(where), {}, 0, bytes, 0};
        begun_ = settings_.now();
        drawn_ = begun_;
        open_ = true;
    }
    void advance(std::uint64_t bytes, std::string_view tensor) {
        if (!open_) return;
        state_.done = bytes;
        auto const now = settings_.now();
        if (now - drawn_ < settings_.interval) return;
        drawn_ = now;
        state_.seconds = std::chrono::duration<double>(now - begun_).count();
        state_.tensor = tensor;  // only while it is drawn: it is the caller's
        draw(detail::progress_line(state_, width()));
        state_.tensor = {};
    }
    void end() {
        if (!open_) return;
        state_.seconds = std::chrono::duration<double>(settings_.now() - begun_).count();
        if (state_.done == 0) {
            erase();
        } else {
            draw(detail::progress_summary(state_, width()));
        }
        leave_line();
    }

  private:
    /// One column is left free: terminals wrap behind the last one.
    std::size_t width() const {
        auto const columns = settings_.columns();
        return columns > 1 ? static_cast<std::size_t>(columns - 1) : 1;
    }
    void draw(std::string line) {
        auto const length = line.size();
        if (length < shown_) line.append(shown_ - length, ' ');
        *settings_.out << '\r' + line << std::flush;
        shown_ = length;
    }
    void erase() {
        if (shown_ == 0) return;
        draw({});
        *settings_.out << '\r' << std::flush;
    }
    void leave_line() noexcept {
        open_ = false;
        if (shown_ == 0) return;
        *settings_.out << '\n' << std::flush;
        shown_ = 0;
    }

    terminal_settings settings_;
    detail::progress_state state_{};
    std::chrono::steady_clock::time_point begun_{};
    std::chrono::steady_clock::time_point drawn_{};
    std::size_t shown_ = 0;  // characters of the line on the terminal
    bool open_ = false;
};
static_assert(ProgressSink<terminal_progress>);

}  // namespace weightcast
