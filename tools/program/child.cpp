// SPDX-License-Identifier: Apache-2.0
#include <program/child.hpp>

#include <fcntl.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <weightcast/base/error.hpp>

extern char** environ;  // NOLINT: POSIX wants it declared by the user

namespace weightcast::program {

namespace {

// Pids that are ours to kill: a pid leaves the list when it is reaped, and not a moment later, because the
// system may give the number to somebody else.
class running_children {
  public:
    void add(pid_t pid) {
        std::lock_guard const lock{mutex_};
        pids_.push_back(pid);
    }
    std::optional<process_end> reap_if_ended(pid_t pid) {
        std::lock_guard const lock{mutex_};
        if (std::ranges::find(pids_, pid) == pids_.end()) return process_end{.signal = SIGKILL};
        int status = 0;
        if (::waitpid(pid, &status, WNOHANG) != pid) return std::nullopt;
        std::erase(pids_, pid);
        if (WIFSIGNALED(status)) return process_end{.signal = WTERMSIG(status)};
        return process_end{.exit_code = WEXITSTATUS(status)};
    }
    void kill_and_reap(pid_t pid) noexcept {
        std::lock_guard const lock{mutex_};
        if (std::ranges::find(pids_, pid) == pids_.end()) return;
        ::kill(pid, SIGKILL);
        reap(pid);
        std::erase(pids_, pid);
    }
    void kill_and_reap_all() noexcept {
        std::lock_guard const lock{mutex_};
        for (auto const pid : pids_) ::kill(pid, SIGKILL);
        for (auto const pid : pids_) reap(pid);
        pids_.clear();
    }

  private:
    static void reap(pid_t pid) noexcept {
        while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {}
    }
    std::mutex mutex_;
    std::vector<pid_t> pids_;
};

running_children& running() {
    static running_children children;
    return children;
}

// The child begins with no signal blocked, as a program expects.
class spawn_settings {
  public:
    explicit spawn_settings(int standard_input) {
        posix_spawn_file_actions_init(&actions_);
        posix_spawn_file_actions_adddup2(&actions_, standard_input, STDIN_FILENO);
        posix_spawn_file_actions_adddup2(&actions_, STDERR_FILENO, STDOUT_FILENO);
        posix_spawnattr_init(&attributes_);
        sigset_t none;
        sigemptyset(&none);
        posix_spawnattr_setsigmask(&attributes_, &none);
        posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK);
    }
    spawn_settings(spawn_settings const&) = delete;
    spawn_settings& operator=(spawn_settings const&) = delete;
    ~spawn_settings() {
        posix_spawn_file_actions_destroy(&actions_);
        posix_spawnattr_destroy(&attributes_);
    }
    posix_spawn_file_actions_t const* actions() const noexcept { return &actions_; }
    posix_spawnattr_t const* attributes() const noexcept { return &attributes_; }

  private:
    posix_spawn_file_actions_t actions_{};
    posix_spawnattr_t attributes_{};
};

}  // namespace

std::string to_string(process_end const& end) {
    if (end.signal != 0) return "killed by signal " + std::to_string(end.signal);
    return "ended with exit code " + std::to_string(end.exit_code);
}

child::child(std::vector<std::string> arguments, int standard_input) {
    std::string name = "weightcast";
    std::vector<char*> argv{name.data()};
    for (auto& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    spawn_settings const settings{standard_input};
    int const code = ::posix_spawn(&pid_, "/proc/self/exe", settings.actions(),
                                   settings.attributes(), argv.data(), environ);
    if (code != 0) {
        throw system_failure{"cannot start a worker process: " +
                             std::generic_category().message(code)};
    }
    running().add(pid_);
}

child::~child() {
    if (pid_ > 0 && !end_) running().kill_and_reap(pid_);
}

std::optional<process_end> child::wait(deadline until) {
    using std::chrono::milliseconds;
    for (auto pause = milliseconds{1}; !end_; pause = std::min(2 * pause, milliseconds{20})) {
        end_ = running().reap_if_ended(pid_);
        if (end_ || until.expired()) break;
        std::this_thread::sleep_for(std::min<deadline::clock::duration>(pause, until.remaining()));
    }
    return end_;
}

void child::kill_all() noexcept { running().kill_and_reap_all(); }

bool die_with_parent(pid_t parent) noexcept {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (int const signal : {SIGINT, SIGHUP}) ::signal(signal, SIG_IGN);
    return ::getppid() == parent;
}

}  // namespace weightcast::program
