// SPDX-License-Identifier: Apache-2.0
#pragma once
// A process of ours, from its start to its reaping: whatever happens to us, none is left behind.

#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <weightcast/base/deadline.hpp>

namespace weightcast::program {

/// How a process ended.
struct process_end {
    int exit_code = 0;  ///< when no signal ended it
    int signal = 0;
};

/// "killed by signal 9", "ended with exit code 1".
std::string to_string(process_end const& end);

/// This program, started anew. Its destructor kills what still runs and reaps it. Moved from: nothing.
class child {
  public:
    /// Runs this program with these arguments. The child has `standard_input` as its standard input, and our
    /// standard error as its standard output too: ours stays free of what it prints.
    /// @throws system_failure  when no process could be started
    child(std::vector<std::string> arguments, int standard_input);
    child(child&& other) noexcept
        : pid_{std::exchange(other.pid_, -1)}, end_{std::exchange(other.end_, std::nullopt)} {}
    child& operator=(child&&) = delete;
    ~child();

    pid_t pid() const noexcept { return pid_; }
    /// How it ended, or nothing while it runs at the deadline. Reaps it.
    std::optional<process_end> wait(deadline until);

    /// Kills and reaps all children of this process that have not been reaped. Any thread.
    static void kill_all() noexcept;

  private:
    pid_t pid_ = -1;
    std::optional<process_end> end_{};
};

/// In a child, first of all: it dies with its parent, and leaves signals from the terminal to it.
/// False when the parent is gone already.
bool die_with_parent(pid_t parent) noexcept;

}  // namespace weightcast::program
