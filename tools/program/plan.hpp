// SPDX-License-Identifier: Apache-2.0
#pragma once
// `weightcast plan`: how a model would be cut into transfers, without sending it.

#include <CLI/CLI.hpp>
#include <program/command.hpp>

namespace weightcast::program {

/// Adds the command.
command add_plan(CLI::App& program);

}  // namespace weightcast::program
