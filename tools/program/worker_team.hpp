// SPDX-License-Identifier: Apache-2.0
#pragma once
// The workers of one demo, processes or threads, and the lines to them.

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <program/channel.hpp>
#include <program/child.hpp>
#include <program/worker_messages.hpp>

#include <weightcast/base/deadline.hpp>

namespace weightcast::program {

/// A worker is gone, silent, or said that it failed.
struct worker_lost : std::runtime_error {
    worker_lost(int which, std::string const& why) : std::runtime_error{why}, rank{which} {}
    int rank;
};

/// Ranks 1 to count; their trainer is rank 0. Of one thread. None of them outlives it: processes are killed;
/// threads end when their group has, so leave it, or abort it, first.
class worker_team {
  public:
    using thread_body = std::function<void(channel)>;

    worker_team() = default;
    worker_team(worker_team const&) = delete;
    worker_team& operator=(worker_team const&) = delete;
    ~worker_team();

    /// Starts them. @throws system_failure
    void start_processes(int count);
    void start_threads(int count, thread_body const& body);

    int count() const noexcept { return static_cast<int>(members_.size()); }

    /// The first message to a worker. @throws worker_lost
    void set_up(int rank, worker_setup const& setup, deadline until);
    /// @throws worker_lost
    void order(int rank, worker_order const& order, deadline until);
    /// What a worker answers. @throws worker_lost
    received_report received(int rank, deadline until);
    /// Waits until every worker has done what it was told. @throws worker_lost
    void await_done(deadline until);

    /// What a worker says last: why it failed, or the version that it holds.
    std::string last_word(int rank, deadline until);
    /// A worker process that a signal ended before the deadline; 0 for none.
    int find_killed(deadline until);
    /// "rank 1 (pid 4711, killed by signal 9)", as far as it is known.
    std::string describe(int rank);

    /// Closes the lines and waits a moment for them to end by themselves.
    void dismiss();

  private:
    struct member {
        channel control;
        std::optional<child> process{};
        std::thread thread{};
    };
    member& of(int rank) { return members_.at(static_cast<std::size_t>(rank - 1)); }
    void send(int rank, boost::json::value const& message, deadline until);
    worker_report report(int rank, deadline until);
    template <class Report>
    Report answer(int rank, deadline until);
    void close_lines() noexcept;

    std::vector<member> members_;
};

}  // namespace weightcast::program
