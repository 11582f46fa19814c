// SPDX-License-Identifier: Apache-2.0
// Processes for tests: the test program executes itself anew (no plain fork: a runtime with threads does
// not survive one) and the child runs one registered function instead of the tests.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <optional>
#include <ostream>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <weightcast/base/deadline.hpp>

extern char** environ;  // NOLINT: POSIX wants it declared by the user

namespace weightcast::test {

using child_arguments = std::vector<std::string>;
using child_function = int (*)(child_arguments const&);

inline constexpr char const* child_variable = "WEIGHTCAST_TEST_CHILD";
/// What a child answers that threw, or whose function nobody registered.
inline constexpr int child_threw = 96;
inline constexpr int child_unknown = 97;

inline std::map<std::string, child_function>& child_functions() {
    static std::map<std::string, child_function> functions;
    return functions;
}

/// Registers a function that a child may run; a constant at namespace scope of a test file.
struct child {
    child(char const* name, child_function run) { child_functions()[name] = run; }
};

/// In main(), before anything else: the child's exit code where this process is a child.
inline std::optional<int> run_child_if_asked(int argc, char** argv) {
    char const* const name = std::getenv(child_variable);
    if (name == nullptr) return std::nullopt;
    alarm(300);  // no child outlives a test by much, whatever happens
    std::setvbuf(stdout, nullptr, _IOLBF, 0);
    auto const found = child_functions().find(name);
    unsetenv(child_variable);  // children of a child are asked anew
    if (found == child_functions().end()) {
        std::fprintf(stderr, "no child function is registered as '%s'\n", name);
        return child_unknown;
    }
    try {
        return found->second(child_arguments(argv + 1, argv + argc));
    } catch (std::exception const& problem) {
        std::fprintf(stderr, "child '%s' threw: %s\n", found->first.c_str(), problem.what());
        return child_threw;
    }
}

/// How a child ended.
struct child_end {
    int exit_code = -1;  ///< -1 when a signal ended it
    int signal = 0;
    friend bool operator==(child_end const&, child_end const&) = default;
};
inline std::ostream& operator<<(std::ostream& out, child_end const& end) {
    if (end.signal != 0) return out << "signal " << end.signal;
    return out << "exit code " << end.exit_code;
}

/// One child. Its destructor kills what still runs and reaps it. One thread at a time.
class child_process {
  public:
    explicit child_process(std::string const& function, child_arguments arguments = {}) {
        int in[2];  // a socket: writing to a child that is dead must not end the test by SIGPIPE
        int out[2];
        int err[2];
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, in) != 0 ||
            pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0) {
            throw std::system_error{errno, std::generic_category(), "socketpair, pipe2"};
        }
        posix_spawn_file_actions_t actions;
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_adddup2(&actions, in[0], 0);
        posix_spawn_file_actions_adddup2(&actions, out[1], 1);
        posix_spawn_file_actions_adddup2(&actions, err[1], 2);
        std::string const marker = std::string{child_variable} + "=" + function;
        std::vector<char*> environment;
        for (char** entry = environ; *entry != nullptr; ++entry) environment.push_back(*entry);
        environment.push_back(const_cast<char*>(marker.c_str()));
        environment.push_back(nullptr);
        std::vector<char*> argv{const_cast<char*>("child")};
        for (auto& argument : arguments) argv.push_back(argument.data());
        argv.push_back(nullptr);
        int const code = posix_spawn(&pid_, "/proc/self/exe", &actions, nullptr, argv.data(),
                                     environment.data());
        posix_spawn_file_actions_destroy(&actions);
        close(in[0]);
        close(out[1]);
        close(err[1]);
        in_ = in[1];
        out_.fd = out[0];
        err_.fd = err[0];
        if (code != 0) throw std::system_error{code, std::generic_category(), "posix_spawn"};
    }
    child_process(child_process&& other) noexcept
        : pid_{std::exchange(other.pid_, -1)},
          in_{std::exchange(other.in_, -1)},
          out_{std::exchange(other.out_, {})},
          err_{std::exchange(other.err_, {})},
          end_{std::exchange(other.end_, {})} {}
    child_process& operator=(child_process&&) = delete;
    ~child_process() {
        if (pid_ > 0 && !end_) {
            ::kill(pid_, SIGKILL);
            int status = 0;
            while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {}
        }
        for (int const fd : {in_, out_.fd, err_.fd}) {
            if (fd >= 0) close(fd);
        }
    }

    pid_t pid() const noexcept { return pid_; }
    void kill() const { signal(SIGKILL); }
    /// Stuck from here on, as a process under a debugger or on a dead disk: its sockets stay open.
    void stop() const { signal(SIGSTOP); }
    void resume() const { signal(SIGCONT); }

    /// A line to its standard input.
    void write_line(std::string line) const {
        line += '\n';
        if (send(in_, line.data(), line.size(), MSG_NOSIGNAL) !=
            static_cast<ssize_t>(line.size())) {
            throw std::system_error{errno, std::generic_category(), "write to a child"};
        }
    }

    /// Its next line on standard output. @throws std::runtime_error  at its end or at the deadline
    std::string read_line(deadline until) {
        for (;;) {
            if (auto const end = out_.text.find('\n', out_.read); end != std::string::npos) {
                auto const begin = std::exchange(out_.read, end + 1);
                return out_.text.substr(begin, end - begin);
            }
            if (out_.fd < 0) throw std::runtime_error{"the child's output ended\n" + err_.text};
            if (!read_some(until))
                throw std::runtime_error{"no line of the child in time\n" + err_.text};
        }
    }

    /// Its end, or nothing when the deadline passes first.
    std::optional<child_end> wait(deadline until) {
        while (!end_) {
            int status = 0;
            bool const open = out_.fd >= 0 || err_.fd >= 0;
            if (waitpid(pid_, &status, WNOHANG) == pid_) {
                end_ = WIFEXITED(status) ? child_end{WEXITSTATUS(status), 0}
                                         : child_end{-1, WTERMSIG(status)};
            } else if (until.expired()) {
                return std::nullopt;
            } else if (open) {
                read_some(earlier(until, soon()));
            } else {
                std::this_thread::sleep_for(std::chrono::milliseconds{2});
            }
        }
        while ((out_.fd >= 0 || err_.fd >= 0) && read_some(soon())) {}
        return end_;
    }

    /// What it wrote so far, as far as it was read here.
    std::string const& output() const noexcept { return out_.text; }
    std::string const& errors() const noexcept { return err_.text; }

  private:
    /// Never to a process that was reaped, and never to -1, which is everybody.
    void signal(int number) const {
        if (pid_ > 0 && !end_) ::kill(pid_, number);
    }
    struct stream {
        int fd = -1;
        std::string text{};
        std::size_t read = 0;
    };
    static deadline soon() { return deadline::after(std::chrono::milliseconds{20}); }
    static void drain(stream& from) {
        char buffer[4096];
        auto const got = ::read(from.fd, buffer, sizeof buffer);
        if (got > 0) {
            from.text.append(buffer, static_cast<std::size_t>(got));
        } else if (got == 0 || errno != EINTR) {
            close(std::exchange(from.fd, -1));
        }
    }
    /// False when nothing came by then.
    bool read_some(deadline until) {
        pollfd fds[2] = {{out_.fd, POLLIN, 0}, {err_.fd, POLLIN, 0}};
        if (poll(fds, 2, until.remaining_ms()) <= 0) return false;
        if (fds[0].revents != 0) drain(out_);
        if (fds[1].revents != 0) drain(err_);
        return true;
    }

    pid_t pid_ = -1;
    int in_ = -1;
    stream out_;
    stream err_;
    std::optional<child_end> end_;
};

}  // namespace weightcast::test
