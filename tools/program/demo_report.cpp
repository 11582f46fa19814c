// SPDX-License-Identifier: Apache-2.0
#include <program/demo_report.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <boost/json.hpp>

#include <weightcast/kernels/digest.hpp>

namespace weightcast::program {

namespace json = boost::json;

namespace {

json::value to_json(std::optional<std::uint64_t> const& digest) {
    json::value value;
    if (digest) value = digest_text(*digest);
    return value;
}

}  // namespace

json::value demo_report::to_json() const {
    json::array all_rounds;
    for (auto const& r : rounds) {
        all_rounds.push_back(json::object{{"round", r.round},
                                          {"engine", options.engine},
                                          {"transport", options.transport},
                                          {"version", r.version},
                                          {"bytes", r.bytes},
                                          {"wire_bytes", r.wire_bytes},
                                          {"seconds", r.seconds},
                                          {"gb_per_s", r.gb_per_s()},
                                          {"memcpy_ratio", r.memcpy_ratio()}});
    }
    json::array all_workers;
    for (auto const& w : workers) {
        json::object worker{{"rank", w.rank}, {"digest", program::to_json(w.digest)}};
        if (options.tensor_parallel > 1)
            worker["expected_digest"] = program::to_json(w.expected_digest);
        worker["version"] = w.version;
        if (options.has_readers()) worker["snapshots"] = w.snapshots;
        if (!w.last_word.empty()) worker["survived"] = w.last_word;
        all_workers.push_back(std::move(worker));
    }
    return json::object{{"model", options.model},
                        {"tensors", tensors},
                        {"bytes", bytes},
                        {"policy", options.policy},
                        {"tp", options.tensor_parallel},
                        {"rounds", std::move(all_rounds)},
                        {"workers", std::move(all_workers)},
                        {"trainer_digest", program::to_json(trainer_digest)},
                        {"verified", verified}};
}

std::string demo_report::heading() const {
    auto const kind = options.transport == "local" ? "thread" : "process";
    auto const many = options.workers == 1 ? "" : options.transport == "local" ? "s" : "es";
    return fmt::format(
        "model    {}\n"
        "         {}, {}\n"
        "workers  {} {}{} over {}, engine {}, policy {}{}\n"
        "change   {} of the elements before each round, seed {}\n\n",
        printable(options.model), counted(tensors, "tensor"), counted(bytes, "byte"),
        options.workers, kind, many, options.transport, options.engine, options.policy,
        options.tensor_parallel == 1
            ? ""
            : fmt::format(", tensor-parallel over {}", options.tensor_parallel),
        options.change.fraction, options.change.seed);
}

text_table demo_report::table() const {
    auto const width = grouped(bytes).size();
    return text_table{{{"round"},
                       {"version"},
                       {"bytes", width},
                       {"wire bytes", width},
                       {"seconds", 8},
                       {"GB/s", 6},
                       {"of memcpy"},
                       {"digest", 16, true}}};
}

std::vector<std::string> demo_report::row(round_record const& round) {
    return {std::to_string(round.round),
            std::to_string(round.version),
            grouped(round.bytes),
            grouped(round.wire_bytes),
            fmt::format("{:.4f}", round.seconds),
            fmt::format("{:.2f}", round.gb_per_s()),
            fmt::format("{:.2f}", round.memcpy_ratio()),
            digest_text(round.digest)};
}

std::string demo_report::conclusion() const {
    auto text = fmt::format(
        "\nverified: {} {} {}version {} with {} {}\n",
        workers.size() == 1 ? "the worker" : fmt::format("all {} workers", workers.size()),
        workers.size() == 1 ? "holds" : "hold",
        options.tensor_parallel == 1 ? "" : "their shards of ", rounds.back().version,
        options.tensor_parallel == 1 ? "the trainer's digest"
                                     : "the digests that the trainer computed from its",
        digest_text(*trainer_digest));
    if (options.has_readers()) {
        std::uint64_t snapshots = 0;
        for (auto const& w : workers) snapshots += w.snapshots;
        text += fmt::format("          {} read meanwhile, each of one version\n",
                            counted(snapshots, "snapshot"));
    }
    return text;
}

}  // namespace weightcast::program
