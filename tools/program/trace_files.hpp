// SPDX-License-Identifier: Apache-2.0
#pragma once
// Traces of several processes of this machine, put together in one file.

#include <string>
#include <vector>

#include <weightcast/observe/chrome_trace.hpp>

namespace weightcast::program {

/// How a rank's trace is called in the picture; it keeps nothing unless `wanted`.
chrome_trace_settings trace_of_rank(int rank, bool wanted);

/// Writes a trace to a file. @throws weightcast::system_failure  naming the file
void write_trace(chrome_trace const& trace, std::string const& file);

/// Puts the spans of the parts' files behind those of the first, in one file, and removes the parts.
/// @throws weightcast::system_failure, weightcast::bad_input  naming the file
void join_traces(std::vector<std::string> const& parts, std::string const& file);

}  // namespace weightcast::program
