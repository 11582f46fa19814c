// SPDX-License-Identifier: Apache-2.0
// The program `weightcast`: a demonstration and two tools, made of the library and nothing beside it.

#include <sys/types.h>

#include <algorithm>
#include <array>
#include <exception>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <program/command.hpp>
#include <program/demo.hpp>
#include <program/exit_code.hpp>
#include <program/option.hpp>
#include <program/output.hpp>
#include <program/plan.hpp>
#include <program/verify.hpp>
#include <program/worker.hpp>

#include <weightcast/base/error.hpp>

namespace {

using namespace weightcast::program;

command add_worker(CLI::App& program) {
    auto* const app = program.add_subcommand(worker_command)->group("");  // hidden
    auto const parent = std::make_shared<pid_t>(0);
    add_number(*app, "parent", *parent, pid_t{1}, std::numeric_limits<pid_t>::max(), "PID", "")
        ->required();
    return {app, [parent] { return run_worker_process(*parent); }};
}

/// Checked first, because the parser would complain about what follows.
/// @throws bad_usage  when the first argument is no command
void check_command(CLI::App const& program, int argc, char** argv) {
    std::string const first = argc > 1 ? argv[1] : "";
    if (first == "-h" || first == "--help") return;
    std::vector<std::string> names;
    for (auto const* command : program.get_subcommands({})) {
        if (command->get_name() == first) return;
        if (!command->get_group().empty()) names.push_back(command->get_name());
    }
    throw bad_usage{fmt::format("expected a command ({}), got {}", fmt::join(names, ", "),
                                first.empty() ? "none" : "'" + first + "'")};
}

/// @throws bad_usage
void parse(CLI::App& program, int argc, char** argv) {
    check_command(program, argc, argv);
    try {
        program.parse(argc, argv);
    } catch (CLI::ExtrasError const&) {
        auto const extra = program.remaining(true);
        throw bad_usage{fmt::format("unexpected argument: {}", fmt::join(extra, " "))};
    }
}

exit_code run(CLI::App& program, int argc, char** argv) {
    program.require_subcommand(1);
    std::array const commands{add_demo(program), add_plan(program), add_verify(program),
                              add_worker(program)};
    try {
        parse(program, argc, argv);
    } catch (CLI::ParseError const& stop) {
        if (stop.get_exit_code() != 0) throw bad_usage{stop.what()};
        program.exit(stop);  // help
        return exit_code::done;
    }
    auto const asked =
        std::ranges::find_if(commands, [](auto const& c) { return c.parsed->parsed(); });
    return asked->run();
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App program{"Moves model weights from a trainer to inference engines.", "weightcast"};
    auto end = exit_code::failed;
    try {
        end = run(program, argc, argv);
    } catch (bad_usage const& problem) {
        print_failure(problem.what());
        end = exit_code::refused;
    } catch (std::exception const& problem) {
        print_failure(problem.what());
    }
    if (!finish_output() && end == exit_code::done) end = exit_code::failed;
    return static_cast<int>(end);
}
