// SPDX-License-Identifier: Apache-2.0
#include <program/interrupts.hpp>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <thread>

#include <program/child.hpp>

#include <weightcast/base/check.hpp>

namespace weightcast::program {

namespace {

// What our parent has us ignore (nohup, a job in the background) stays ignored: a blocked signal is not.
sigset_t watched_signals() {
    sigset_t set;
    sigemptyset(&set);
    for (int const signal : {SIGINT, SIGTERM, SIGHUP}) {
        struct sigaction now {};
        if (::sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_IGN) continue;
        sigaddset(&set, signal);
    }
    return set;
}

}  // namespace

interrupt_guard::interrupt_guard() : watched_{watched_signals()} {
    signals_ = ::signalfd(-1, &watched_, SFD_CLOEXEC);
    check(posix_result{signals_}, "signalfd");
    stop_ = ::eventfd(0, EFD_CLOEXEC);
    check(posix_result{stop_}, "eventfd");
    pthread_sigmask(SIG_BLOCK, &watched_, &before_);
    watcher_ = std::thread{[this] { watch(); }};
}

interrupt_guard::~interrupt_guard() {
    std::uint64_t const one = 1;
    while (::write(stop_, &one, sizeof one) < 0 && errno == EINTR) {}
    watcher_.join();
    yield_to_signal();
    ::close(signals_);
    ::close(stop_);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void interrupt_guard::yield_to_signal() const noexcept {
    while (interrupted_.load()) ::pause();
}

void interrupt_guard::watch() noexcept {
    std::array<pollfd, 2> entries{pollfd{signals_, POLLIN, 0}, pollfd{stop_, POLLIN, 0}};
    while (::poll(entries.data(), entries.size(), -1) < 0 && errno == EINTR) {}
    if (entries[0].revents == 0) return;
    signalfd_siginfo info{};
    if (::read(signals_, &info, sizeof info) != sizeof info) return;
    interrupted_.store(true);
    child::kill_all();
    auto const signal = static_cast<int>(info.ssi_signo);
    ::signal(signal, SIG_DFL);
    pthread_sigmask(SIG_UNBLOCK, &watched_, nullptr);
    ::raise(signal);
}

}  // namespace weightcast::program
