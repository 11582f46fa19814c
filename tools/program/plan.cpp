// SPDX-License-Identifier: Apache-2.0
#include <program/plan.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <boost/json.hpp>
#include <program/json_text.hpp>
#include <program/option.hpp>
#include <program/output.hpp>
#include <program/text_table.hpp>
#include <program/weight_file.hpp>

#include <weightcast/base/error.hpp>
#include <weightcast/plan/packing_options.hpp>
#include <weightcast/plan/packing_plan.hpp>
#include <weightcast/plan/planned_tensor.hpp>
#include <weightcast/plan/vllm_order.hpp>

namespace weightcast::program {

namespace {

namespace json = boost::json;

constexpr std::array<std::string_view, 2> layout_names{"native", "vllm"};

struct plan_options {
    std::string file{};
    std::string layout = "native";
    std::uint64_t buffer = 0;  ///< 0: the layout's own
    bool json = false;

    packing_options packing() const {
        auto options = layout == "vllm" ? vllm_packing() : packing_options{};
        if (buffer != 0) options.chunk_bytes = buffer;
        return options;
    }
};

/// One transfer: a chunk, or a tensor that goes by itself.
struct transfer {
    std::uint64_t bytes = 0;
    bool direct = false;
    std::vector<chunk_member> members{};
};

/// A model's tensors in the order in which they are sent, and their transfers.
struct planned_model {
    std::vector<planned_tensor> tensors{};
    std::vector<transfer> transfers{};
    std::uint64_t bytes = 0;
    std::uint64_t wire_bytes = 0;
};

std::vector<planned_tensor> tensors_of(safetensors_model const& file,
                                       packing_options const& packing) {
    std::vector<planned_tensor> listed;
    for (auto const& t : file.tensors()) {
        listed.push_back({t.name, t.tensor.type(), t.tensor.shape(), t.tensor.bytes()});
    }
    if (packing.layout == packing_layout::native) return listed;
    std::vector<planned_tensor> sent;
    for (auto const index : order_for_vllm(listed, packing)) sent.push_back(listed[index]);
    return sent;
}

planned_model plan_of(safetensors_model const& file, packing_options const& packing) {
    planned_model model{.tensors = tensors_of(file, packing)};
    packing_plan const plan{model.tensors, packing};
    for (auto const& chunk : plan.chunks()) {
        model.transfers.push_back({chunk.bytes, false, chunk.members});
    }
    for (auto const& whole : plan.direct()) {
        auto const bytes = model.tensors[whole.tensor].bytes;
        model.transfers.push_back({bytes, true, {{.tensor = whole.tensor, .bytes = bytes}}});
    }
    for (auto const& t : model.tensors) model.bytes += t.bytes;
    model.wire_bytes = plan.wire_bytes();
    return model;
}

json::value to_json(planned_model const& model, packing_options const& packing) {
    json::array chunks;
    for (auto const& t : model.transfers) {
        json::array members;
        for (auto const& m : t.members) {
            members.push_back(json::object{
                {"name", model.tensors[m.tensor].name}, {"offset", m.offset}, {"bytes", m.bytes}});
        }
        chunks.push_back(json::object{{"bytes", t.bytes}, {"tensors", std::move(members)}});
    }
    return json::object{{"layout", to_string(packing.layout)},
                        {"packed_buffer_size", packing.chunk_bytes},
                        {"chunks", std::move(chunks)}};
}

std::string text_of(planned_model const& model, packing_options const& packing) {
    std::vector<std::vector<std::string>> rows;
    for (std::size_t i = 0; i < model.transfers.size(); ++i) {
        auto const& t = model.transfers[i];
        auto const name = [&](chunk_member const& m) {
            return printable(model.tensors[m.tensor].name);
        };
        rows.push_back({std::to_string(i), t.direct ? "direct" : "packed", grouped(t.bytes),
                        grouped(t.members.size()), t.members.empty() ? "" : name(t.members.front()),
                        t.members.size() < 2 ? "" : name(t.members.back())});
    }
    auto const head = fmt::format("layout {}, packed buffer of {}\n\n", to_string(packing.layout),
                                  counted(packing.chunk_bytes, "byte"));
    auto const table = whole_table({{"chunk"},
                                    {"kind", 0, true},
                                    {"bytes"},
                                    {"tensors"},
                                    {"first", 0, true},
                                    {"last", 0, true}},
                                   rows);
    auto const sum =
        fmt::format("\n{} of {} in {}, {} on the wire\n", counted(model.tensors.size(), "tensor"),
                    counted(model.bytes, "byte"), counted(model.transfers.size(), "chunk"),
                    counted(model.wire_bytes, "byte"));
    return head + table + sum;
}

exit_code run_plan(plan_options const& options) {
    auto const packing = options.packing();
    try {
        validate(packing);
    } catch (bad_argument const& problem) {
        throw bad_usage{fmt::format("--packed-buffer-size: {}", problem.what())};
    }
    auto const file = open_model(options.file);
    auto const model = plan_of(file, packing);
    print(options.json ? json_text(to_json(model, packing)) : text_of(model, packing));
    return exit_code::done;
}

}  // namespace

command add_plan(CLI::App& program) {
    auto* const app = program.add_subcommand(
        "plan", "Show how a model is cut into transfers, without sending it");
    auto const chosen = std::make_shared<plan_options>();
    auto& o = *chosen;
    app->add_option("FILE", o.file, "safetensors file, or the index of a sharded model")
        ->required();
    add_choice(*app, "--layout", o.layout, layout_names,
               "Our own chunks, or those that vLLM's receivers expect");
    add_number(*app, "--packed-buffer-size", o.buffer, std::uint64_t{1},
               std::uint64_t{std::numeric_limits<std::int64_t>::max()}, "BYTES", "Size of a chunk")
        ->default_str("native: 67108864, vllm: 1073741824");
    app->add_flag("--json", o.json, "One JSON document instead of text");
    return {app, [chosen] { return run_plan(*chosen); }};
}

}  // namespace weightcast::program
