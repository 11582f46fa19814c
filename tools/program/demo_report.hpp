// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a demo found out, as a table for people and as JSON for programs.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <boost/json/value.hpp>
#include <program/demo_options.hpp>
#include <program/text_table.hpp>

namespace weightcast::program {

struct round_record {
    int round = 0;
    std::uint64_t version = 0;
    std::uint64_t bytes = 0;
    std::uint64_t wire_bytes = 0;
    double seconds = 0;
    double memcpy_seconds = 0;  ///< for the same bytes
    std::uint64_t digest = 0;   ///< of what was sent

    /// 10^9 bytes of the model a second.
    double gb_per_s() const { return seconds > 0 ? static_cast<double>(bytes) / seconds / 1e9 : 0; }
    /// Speed of the transfer by that of memcpy.
    double memcpy_ratio() const { return seconds > 0 ? memcpy_seconds / seconds : 0; }
};

/// What a worker reported last.
struct worker_record {
    int rank = 0;
    std::optional<std::uint64_t> digest{};           ///< nothing: it reported none
    std::optional<std::uint64_t> expected_digest{};  ///< what the trainer computed of its shard
    std::uint64_t version = 0;
    std::uint64_t snapshots = 0;  ///< that its reader went through
    std::string last_word{};      ///< of a survivor of --kill
};

struct demo_report {
    demo_options const& options;
    std::uint64_t tensors = 0;
    std::uint64_t bytes = 0;
    std::vector<round_record> rounds{};
    std::vector<worker_record> workers{};
    std::optional<std::uint64_t> trainer_digest{};  ///< nothing: no round began
    bool verified = false;

    boost::json::value to_json() const;
    /// The table's columns, wide enough for this model.
    text_table table() const;
    /// What is demonstrated, above the table.
    std::string heading() const;
    /// The table's row of a round.
    static std::vector<std::string> row(round_record const& round);
    /// What was proven, below the table.
    std::string conclusion() const;
};

}  // namespace weightcast::program
