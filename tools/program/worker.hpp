// SPDX-License-Identifier: Apache-2.0
#pragma once
// A worker of the demo: an engine that knows a model's metadata, holds zeroed memory, and does as it is told.

#include <sys/types.h>

#include <program/channel.hpp>
#include <program/exit_code.hpp>

#include <weightcast/comm/local_communicator.hpp>

namespace weightcast::program {

/// The hidden command that worker processes run.
inline constexpr char const* worker_command = "demo-worker";

/// A worker process, which joins over Gloo: its set-up and all orders come over standard input, a socket.
/// `parent` is the process that started it. What fails later is reported to the trainer.
/// @throws bad_usage  when standard input is no such socket
exit_code run_worker_process(pid_t parent);

/// A worker on a thread of the trainer's process. What fails is reported over `control`.
void run_worker_thread(local_group const& group, channel control) noexcept;

/// "rank R pid P" on standard error.
void print_process(int rank);

}  // namespace weightcast::program
