// SPDX-License-Identifier: Apache-2.0
#pragma once
// How every command ends: scripts rely on these three numbers.

#include <stdexcept>

namespace weightcast::program {

enum class exit_code : int {
    done = 0,    ///< done, and equal where something was compared
    failed = 1,  ///< failed, or different
    refused = 2  ///< bad usage or bad input; nothing was done
};

/// Bad usage or bad input; the message is the one line that the user reads.
struct bad_usage : std::runtime_error {
    using std::runtime_error::runtime_error;
};

}  // namespace weightcast::program
