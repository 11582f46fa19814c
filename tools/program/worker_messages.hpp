// SPDX-License-Identifier: Apache-2.0
#pragma once
// What trainer and worker tell each other over their control channel. Nothing here carries weights, the seed
// or a path to the model: a worker knows its metadata only.

#include <chrono>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include <boost/json/value.hpp>
#include <program/death.hpp>
#include <program/weight_digest.hpp>

#include <weightcast/engine/engine_group.hpp>
#include <weightcast/engine/transfer_settings.hpp>
#include <weightcast/model/parameter.hpp>
#include <weightcast/model/sliced_layout.hpp>

namespace weightcast::program {

/// Trainer to worker, once, first.
struct worker_setup {
    int rank = 1;
    int size = 2;
    std::string at{};  ///< endpoint of the rendezvous; unused by `local`
    std::chrono::milliseconds connect{30'000};
    transfer_limits limits{};
    std::string policy{};    ///< the commit policy's name
    shard_position shard{};  ///< among the workers that share a model
    bool traced = false;     ///< a trace_order comes
    std::vector<parameter> parameters{};

    group_init init() const { return {.at = at, .rank = rank, .size = size}; }
};

/// Trainer to worker: orders. The end of the stream is the last one.
struct join_order {
    bool dies = false;  ///< instead of joining
};
struct receive_order {
    bool corrupt = false;   ///< flip one byte of what was received
    death_phase dies_in{};  ///< end by SIGKILL in that phase
};
struct dump_order {
    std::string file;
};
struct trace_order {
    std::string file;
};
using worker_order = std::variant<join_order, receive_order, dump_order, trace_order>;

/// Worker to trainer, after the set-up and after each order.
struct done_report {};
struct received_report {
    std::uint64_t version = 0;
    weight_digests digests{};
    std::uint64_t snapshots = 0;  ///< that readers went through so far, none of them mixed
};
struct failed_report {
    std::string message;
};
using worker_report = std::variant<done_report, received_report, failed_report>;

boost::json::value to_json(worker_setup const& setup);
boost::json::value to_json(worker_order const& order);
boost::json::value to_json(worker_report const& report);

/// @throws bad_input  for a document that is no such message
worker_setup setup_of(boost::json::value const& message);
worker_order order_of(boost::json::value const& message);
worker_report report_of(boost::json::value const& message);

}  // namespace weightcast::program
