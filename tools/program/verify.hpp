// SPDX-License-Identifier: Apache-2.0
#pragma once
// `weightcast verify`: whether two files hold the same model, and where they do not.

#include <CLI/CLI.hpp>
#include <program/command.hpp>

namespace weightcast::program {

/// Adds the command.
command add_verify(CLI::App& program);

}  // namespace weightcast::program
