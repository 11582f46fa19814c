// SPDX-License-Identifier: Apache-2.0
#pragma once
// How trainer and workers join over each transport.

#include <chrono>
#include <memory>

#include <program/worker_messages.hpp>

#include <weightcast/comm/gloo_communicator.hpp>
#include <weightcast/comm/local_communicator.hpp>
#include <weightcast/comm/rendezvous_server.hpp>
#include <weightcast/engine/engine_group.hpp>

namespace weightcast::program {

/// Joins that group of threads.
inline communicator_factory<local_communicator> local_member(local_group const& group) {
    return [group](group_init const& init) { return group.join(init.rank); };
}

/// Joins the processes that meet at `init.at`. `server`: where they meet, on the rank that owns it.
inline communicator_factory<gloo_communicator> gloo_member(
    std::chrono::milliseconds connect, std::shared_ptr<rendezvous_server> const& server = {}) {
    return [connect, server](group_init const& init) {
        return gloo_communicator::join({.name = init.name,
                                        .rank = init.rank,
                                        .size = init.size,
                                        .at = endpoint{init.at},
                                        .connect_deadline = connect,
                                        .server = server});
    };
}

}  // namespace weightcast::program
