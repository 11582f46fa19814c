// SPDX-License-Identifier: Apache-2.0
#include <program/worker_team.hpp>

#include <unistd.h>

#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <program/worker.hpp>

#include <weightcast/base/error.hpp>

namespace weightcast::program {

namespace {

deadline no_wait() { return deadline::after(std::chrono::seconds{0}); }

}  // namespace

worker_team::~worker_team() {
    close_lines();
    for (auto& m : members_) m.process.reset();
    for (auto& m : members_) {
        if (m.thread.joinable()) m.thread.join();
    }
}

void worker_team::start_processes(int count) {
    for (int rank = 1; rank <= count; ++rank) {
        auto [ours, theirs] = channel::pair();
        child process{{worker_command, std::to_string(::getpid())}, theirs.descriptor()};
        members_.push_back({std::move(ours), std::move(process), {}});
    }
}

void worker_team::start_threads(int count, thread_body const& body) {
    for (int rank = 1; rank <= count; ++rank) {
        auto [ours, theirs] = channel::pair();
        members_.push_back({std::move(ours), std::nullopt, std::thread{body, std::move(theirs)}});
    }
}

void worker_team::set_up(int rank, worker_setup const& setup, deadline until) {
    send(rank, to_json(setup), until);
}

void worker_team::order(int rank, worker_order const& order, deadline until) {
    send(rank, to_json(order), until);
}

void worker_team::send(int rank, boost::json::value const& message, deadline until) {
    try {
        of(rank).control.send(message, until);
    } catch (error const& failure) {
        throw worker_lost{rank, failure.what()};
    }
}

worker_report worker_team::report(int rank, deadline until) {
    try {
        if (auto const message = of(rank).control.receive(until)) return report_of(*message);
    } catch (error const& failure) {
        throw worker_lost{rank, failure.what()};
    }
    throw worker_lost{rank, "it ended without an answer"};
}

template <class Report>
Report worker_team::answer(int rank, deadline until) {
    auto answered = report(rank, until);
    if (auto const* failure = std::get_if<failed_report>(&answered)) {
        throw worker_lost{rank, failure->message};
    }
    if (auto* expected = std::get_if<Report>(&answered)) return std::move(*expected);
    throw worker_lost{rank, "it answered another question"};
}

received_report worker_team::received(int rank, deadline until) {
    return answer<received_report>(rank, until);
}

void worker_team::await_done(deadline until) {
    for (int rank = 1; rank <= count(); ++rank) {
        static_cast<void>(answer<done_report>(rank, until));
    }
}

std::string worker_team::last_word(int rank, deadline until) {
    try {
        for (;;) {
            auto const said = report(rank, until);
            if (auto const* failure = std::get_if<failed_report>(&said)) return failure->message;
            if (auto const* held = std::get_if<received_report>(&said))
                return fmt::format("it holds version {}", held->version);
        }
    } catch (worker_lost const& lost) {
        return lost.what();
    }
}

int worker_team::find_killed(deadline until) {
    for (;;) {
        bool any = false;
        for (int rank = 1; rank <= count(); ++rank) {
            auto& process = of(rank).process;
            if (!process) continue;
            any = true;
            if (auto const end = process->wait(no_wait()); end && end->signal != 0) return rank;
        }
        if (!any || until.expired()) return 0;
        std::this_thread::sleep_for(std::chrono::milliseconds{5});
    }
}

std::string worker_team::describe(int rank) {
    if (rank < 0) return "an unknown rank";
    if (rank == 0 || rank > count()) return fmt::format("rank {}", rank);
    auto& process = of(rank).process;
    if (!process) return fmt::format("rank {}", rank);
    auto const end = process->wait(no_wait());
    if (!end) return fmt::format("rank {} (pid {})", rank, process->pid());
    return fmt::format("rank {} (pid {}, {})", rank, process->pid(), to_string(*end));
}

void worker_team::close_lines() noexcept {
    for (auto& m : members_) m.control.close();
}

void worker_team::dismiss() {
    close_lines();
    auto const until = deadline::after(std::chrono::seconds{5});
    for (auto& m : members_) {
        if (m.process) m.process->wait(until);
    }
}

}  // namespace weightcast::program
