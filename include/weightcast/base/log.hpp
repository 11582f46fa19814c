// SPDX-License-Identifier: Apache-2.0
#pragma once
// One line at a time to whoever runs the program: what is no error, and must not go by in silence.

#include <cstdio>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

namespace weightcast {

/// Receives one line, without its line end. Called by one thread at a time, from any thread of the
/// library; it must not log itself.
using log_sink = std::function<void(std::string_view)>;

namespace detail {

struct log_state {
    std::mutex mutex;
    log_sink sink;  ///< empty: standard error
};
inline log_state& process_log() {
    // never destroyed: threads of the library may log while the process ends
    static log_state* const state = new log_state;
    return *state;
}

inline void log_to_standard_error(std::string_view line) noexcept {
    std::fprintf(stderr, "weightcast: %.*s\n", static_cast<int>(line.size()), line.data());
}

}  // namespace detail

/// Replaces the sink and returns the one before; an empty sink is standard error.
inline log_sink set_log_sink(log_sink sink) {
    auto& state = detail::process_log();
    std::lock_guard const lock{state.mutex};
    return std::exchange(state.sink, std::move(sink));
}

/// Writes one line to the sink; a sink that throws is passed over, and the line goes to standard error.
inline void log_line(std::string_view line) noexcept {
    auto& state = detail::process_log();
    std::lock_guard const lock{state.mutex};
    try {
        if (state.sink) return state.sink(line);
    } catch (...) {
        detail::log_to_standard_error("the log sink threw");
    }
    detail::log_to_standard_error(line);
}

/// Sets a sink for as long as it lives, then restores the one before.
class [[nodiscard]] scoped_log_sink {
  public:
    explicit scoped_log_sink(log_sink sink) : previous_{set_log_sink(std::move(sink))} {}
    scoped_log_sink(scoped_log_sink const&) = delete;
    scoped_log_sink& operator=(scoped_log_sink const&) = delete;
    ~scoped_log_sink() { set_log_sink(std::move(previous_)); }

  private:
    log_sink previous_;
};

}  // namespace weightcast
