// SPDX-License-Identifier: Apache-2.0
#pragma once
// The trainer's side of a demo: its copy of the model, and one call that sends it.

#include <functional>
#include <string>

#include <program/demo_options.hpp>
#include <program/weight_memory.hpp>
#include <program/worker_team.hpp>

#include <weightcast/observe/chrome_trace.hpp>
#include <weightcast/session/update_result.hpp>

namespace weightcast::program {

/// Sends the model as it is now to every worker. @throws weightcast::error  what the source throws
using send_update = std::function<update_result()>;

/// Starts the workers, gives them the model's metadata, forms the group over the transport that was chosen.
/// The result refers to `weights` and `trace`; destroying it leaves the group.
/// @throws worker_lost, weightcast::error  nothing was sent
send_update form_group(demo_options const& options, weight_memory const& weights, worker_team& team,
                       chrome_trace& trace);

}  // namespace weightcast::program
