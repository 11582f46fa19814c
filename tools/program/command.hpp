// SPDX-License-Identifier: Apache-2.0
#pragma once
// A command of the program: what is parsed, and what runs when it was asked for.

#include <functional>

#include <CLI/CLI.hpp>
#include <program/exit_code.hpp>

namespace weightcast::program {

/// Runs when `parsed` was asked for.
struct command {
    CLI::App* parsed;
    std::function<exit_code()> run;
};

}  // namespace weightcast::program
