// SPDX-License-Identifier: Apache-2.0
#pragma once
// Threads of the library take no signals: those belong to the program, and SIGPIPE to nobody.

#include <pthread.h>
#include <signal.h>

#include <thread>
#include <utility>

namespace weightcast::detail {

/// Blocks every signal for the calling thread; threads started meanwhile inherit that. Restores silently.
class [[nodiscard]] signals_blocked {
  public:
    signals_blocked() noexcept {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    signals_blocked(signals_blocked const&) = delete;
    signals_blocked& operator=(signals_blocked const&) = delete;
    ~signals_blocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

  private:
    sigset_t before_{};
};

/// A thread that no signal is delivered to.
template <class F>
std::thread quiet_thread(F run) {
    signals_blocked const blocked;
    return std::thread{std::move(run)};
}

}  // namespace weightcast::detail
