// SPDX-License-Identifier: Apache-2.0
#include <program/worker.hpp>

#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <exception>
#include <utility>

#include <fmt/format.h>
#include <program/child.hpp>
#include <program/serve_orders.hpp>
#include <program/transports.hpp>

#include <weightcast/base/log.hpp>
#include <weightcast/model/commit_policy.hpp>
#include <weightcast/model/shadow.hpp>

namespace weightcast::program {

namespace {

template <class Policy, Communicator C>
void serve_under(worker_setup const& setup, channel& control, communicator_factory<C> join) {
    order_server<C, Policy>{setup, control, std::move(join)}.serve();
}

/// @throws what the worker throws
template <class Join>
void serve(channel& control, Join const& join) {
    auto const message = control.receive(deadline::after(std::chrono::minutes{1}));
    if (!message) return;  // the trainer is gone
    auto const setup = setup_of(*message);
    print_process(setup.rank);
    if (setup.policy == shadow::name) return serve_under<shadow>(setup, control, join(setup));
    serve_under<in_place>(setup, control, join(setup));
}

bool is_socket(int descriptor) noexcept {
    struct stat about {};
    return ::fstat(descriptor, &about) == 0 && S_ISSOCK(about.st_mode);
}

}  // namespace

exit_code run_worker_process(pid_t parent) {
    if (!is_socket(STDIN_FILENO)) {
        throw bad_usage{fmt::format("{} is started by `weightcast demo` only", worker_command)};
    }
    ::signal(SIGPIPE, SIG_IGN);
    if (!die_with_parent(parent)) return exit_code::failed;
    channel control{STDIN_FILENO};
    try {
        serve(control, [](worker_setup const& setup) { return gloo_member(setup.connect); });
    } catch (std::exception const&) {
        return exit_code::failed;  // the trainer was told, or is gone
    }
    return exit_code::done;
}

void run_worker_thread(local_group const& group, channel control) noexcept {
    try {
        serve(control, [&](worker_setup const&) { return local_member(group); });
    } catch (std::exception const&) {
        // the trainer was told
    }
}

void print_process(int rank) {
    auto const line = fmt::format("rank {} pid {}\n", rank, ::getpid());
    // one write, so that lines of several processes do not mix
    static_cast<void>(!::write(STDERR_FILENO, line.data(), line.size()));
}

}  // namespace weightcast::program
