// SPDX-License-Identifier: Apache-2.0
#pragma once
// `weightcast demo`: a trainer and its workers on this machine, proven equal by digest.

#include <CLI/CLI.hpp>
#include <program/command.hpp>

namespace weightcast::program {

/// Adds the command.
command add_demo(CLI::App& program);

}  // namespace weightcast::program
