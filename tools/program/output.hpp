// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the program says: results on standard output, one line a failure on standard error.

#include <string_view>

namespace weightcast::program {

/// Writes to standard output. Errors show in finish_output.
void print(std::string_view text);

/// "weightcast: " and the message, on one line, on standard error.
void print_failure(std::string_view message);

/// False when standard output did not take everything; says so.
bool finish_output();

}  // namespace weightcast::program
