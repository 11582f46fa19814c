// SPDX-License-Identifier: Apache-2.0
// The program as its users meet it: a process with arguments, an exit code and what it prints.
#pragma once

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <boost/json.hpp>
#include <boost/test/unit_test.hpp>

#include <support/child_process.hpp>
#include <weightcast/base/deadline.hpp>

namespace weightcast::test {

/// Registered once a test program: the child becomes the program.
inline int become_the_program(child_arguments const& arguments) {
    // as a shell starts a program in the foreground, whoever runs the tests
    for (int const signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) ::signal(signal, SIG_DFL);
    char const* const path = std::getenv("WEIGHTCAST_PROGRAM");
    if (path == nullptr) throw std::runtime_error{"WEIGHTCAST_PROGRAM does not name the program"};
    std::vector<char*> argv{const_cast<char*>(path)};
    for (auto const& a : arguments) argv.push_back(const_cast<char*>(a.c_str()));
    argv.push_back(nullptr);
    execv(path, argv.data());
    throw std::runtime_error{std::string{"cannot run "} + path};
}
inline child const program_child{"weightcast program", &become_the_program};

/// For what needs a redirection: the one argument is a command line.
inline int become_a_shell(child_arguments const& arguments) {
    execl("/bin/sh", "sh", "-c", arguments.at(0).c_str(), static_cast<char*>(nullptr));
    throw std::runtime_error{"cannot run /bin/sh"};
}
inline child const shell_child{"shell", &become_a_shell};

/// How long any run of the program in a test may take, and then some: the machine may be busy.
inline deadline patience() { return deadline::after(std::chrono::seconds{120}); }

/// Starts it. What it prints can be read while it runs.
inline child_process start_program(child_arguments arguments) {
    return child_process{"weightcast program", std::move(arguments)};
}

struct outcome {
    int exit_code = -1;
    std::string out;
    std::string err;
};

inline outcome finish(child_process& program) {
    auto const end = program.wait(patience());
    if (!end) throw std::runtime_error{"the program does not end\n" + program.errors()};
    if (end->signal != 0) {
        throw std::runtime_error{"the program was ended by signal " + std::to_string(end->signal) +
                                 "\n" + program.errors()};
    }
    return {end->exit_code, program.output(), program.errors()};
}

/// Runs it to its end.
inline outcome run_program(child_arguments arguments) {
    auto program = start_program(std::move(arguments));
    return finish(program);
}

inline boost::json::object json_of(outcome const& run) {
    return boost::json::parse(run.out).as_object();
}

inline std::vector<std::string> keys_of(boost::json::object const& object) {
    std::vector<std::string> keys;
    for (auto const& pair : object) keys.emplace_back(pair.key());
    return keys;
}

/// Lines of the text that are not what a worker or the trainer says of its process.
inline std::vector<std::string> messages(std::string const& text) {
    std::vector<std::string> lines;
    for (std::size_t begin = 0; begin < text.size();) {
        auto const end = std::min(text.find('\n', begin), text.size());
        auto line = text.substr(begin, end - begin);
        if (!line.starts_with("rank ")) lines.push_back(std::move(line));
        begin = end + 1;
    }
    return lines;
}

/// A run that was refused: exit 2, nothing on standard output, one line with these words on standard error.
inline void check_refused(outcome const& run, std::vector<std::string> const& words) {
    BOOST_TEST(run.exit_code == 2);
    BOOST_TEST(run.out.empty());
    auto const lines = messages(run.err);
    BOOST_TEST(lines.size() == 1U, run.err);
    for (auto const& word : words) {
        BOOST_TEST(run.err.find(word) != std::string::npos,
                   "'" << word << "' is not in: " << run.err);
    }
}

}  // namespace weightcast::test
