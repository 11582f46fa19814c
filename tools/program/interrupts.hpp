// SPDX-License-Identifier: Apache-2.0
#pragma once
// Ctrl-C and its kin: our workers go first, then we, by the signal that came.

#include <signal.h>

#include <atomic>
#include <thread>

namespace weightcast::program {

/// While it lives, SIGINT, SIGTERM and SIGHUP, where they are not ignored, end the children of this process
/// before the process itself.
/// Made before any other thread: threads inherit that these signals are not theirs.
class [[nodiscard]] interrupt_guard {
  public:
    interrupt_guard();
    interrupt_guard(interrupt_guard const&) = delete;
    interrupt_guard& operator=(interrupt_guard const&) = delete;
    ~interrupt_guard();

    /// Does not return when a signal has come: what fails from then on is its doing, and no news.
    void yield_to_signal() const noexcept;

  private:
    void watch() noexcept;

    sigset_t watched_;
    sigset_t before_{};
    int signals_ = -1;
    int stop_ = -1;
    std::atomic<bool> interrupted_{false};
    std::thread watcher_;
};

}  // namespace weightcast::program
