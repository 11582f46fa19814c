// SPDX-License-Identifier: Apache-2.0
// A packed update into an engine's fused shards (tensor parallel, 4 ranks) and of the same bytes into plain tensors.
//   sharded_receive [layers] [runs]

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <fmt/core.h>

#include <weightcast/comm/local_communicator.hpp>
#include <weightcast/engine/dense_engine.hpp>
#include <weightcast/engine/dense_trainer.hpp>
#include <weightcast/model/attention_layout.hpp>
#include <weightcast/model/fused_layout.hpp>
#include <weightcast/model/parameter_tables.hpp>
#include <weightcast/model/sliced_layout.hpp>
#include <weightcast/model/table_source.hpp>
#include <weightcast/session/weight_sender.hpp>
#include <weightcast/session/weight_worker.hpp>

#include "measure.hpp"

namespace {

using namespace weightcast;
using trainer = dense_trainer<local_communicator>;
using engine = dense_engine<local_communicator, parameter_tables<>>;

constexpr std::int64_t width = 1024;
constexpr std::int64_t head = 64;
constexpr std::int64_t query_heads = 16;
constexpr std::int64_t kv_heads = 4;
constexpr std::int64_t hidden = 2816;

std::vector<parameter> layer(int i) {
    auto const of = "model.layers." + std::to_string(i) + ".";
    auto const type = dtype::bfloat16;
    return {{of + "q", type, {query_heads * head, width}},
            {of + "k", type, {kv_heads * head, width}},
            {of + "v", type, {kv_heads * head, width}},
            {of + "o", type, {width, query_heads * head}},
            {of + "gate", type, {hidden, width}},
            {of + "up", type, {hidden, width}},
            {of + "down", type, {width, hidden}},
            {of + "norm", type, {width}}};
}

/// Memory of one rank, as long as its table.
class holder {
  public:
    void plain(parameter_table<>& table, std::vector<parameter> const& all) {
        for (auto const& p : all) table.add(p.name, make(p.type, p.shape));
    }
    void sharded(parameter_table<>& table, std::vector<parameter> const& l, shard_position at) {
        auto const whole = [&](std::size_t k) { return layouts::whole(l[k]); };
        auto const of = l[0].name.substr(0, l[0].name.size() - 1);
        add(table, of + "qkv",
            layouts::fused_qkv(whole(0), whole(1), whole(2), {query_heads, kv_heads, head}, at));
        add(table, of + "o.shard", layouts::sharded(whole(3), 1, at));
        add(table, of + "gate_up",
            layouts::fused(0, std::vector<layout>{layouts::sharded(whole(4), 0, at),
                                                  layouts::sharded(whole(5), 0, at)}));
        add(table, of + "down.shard", layouts::sharded(whole(6), 1, at));
        table.add(l[7].name, make(l[7].type, l[7].shape));
    }

  private:
    void add(parameter_table<>& table, std::string const& name, layout const& made_of) {
        table.add(name, made_of, make(made_of.type(), made_of.shape()));
    }
    tensor_view<> make(dtype type, extents const& shape) {
        memory_.push_back(bench::touched(element_count(shape) * item_size(type), 0));
        return {memory_.back().data(), type, shape};
    }
    std::vector<std::vector<std::byte>> memory_;
};

/// A sender and a receiver thread, kept over all runs.
class pair_of_ranks {
  public:
    pair_of_ranks(table_source<>& source, std::function<void(parameter_table<>&)> const& hold,
                  int updates)
        : group_{2},
          sender_{trainer{already_joined(group_.join(0)),
                          {.packing = {.direct_from = std::uint64_t{1} << 40U}}},
                  {group_init{.rank = 0, .size = 2}}},
          source_{source} {
        hold(tables_.main());
        receiver_ = std::jthread{[this, updates] {
            weight_worker worker{engine{already_joined(group_.join(1)), tables_},
                                 group_init{.rank = 1, .size = 2}};
            for (int i = 0; i < updates; ++i) worker.serve_one();
        }};
    }
    void update() { sender_.update(source_).or_throw(); }

  private:
    local_group group_;
    weight_sender<trainer> sender_;
    table_source<>& source_;
    parameter_tables<> tables_;
    std::jthread receiver_;
};

}  // namespace

int main(int argc, char** argv) {
    int const layers = argc > 1 ? std::atoi(argv[1]) : 12;
    int const runs = argc > 2 ? std::atoi(argv[2]) : 5;
    std::vector<parameter> all;
    std::vector<std::vector<std::byte>> sent;
    table_source<> source;
    std::uint64_t bytes = 0;
    for (int i = 0; i < layers; ++i) {
        for (auto const& p : layer(i)) {
            sent.push_back(bench::touched(p.bytes(), 1));
            source.add(p.name, tensor_view<>{sent.back().data(), p.type, p.shape});
            all.push_back(p);
            bytes += p.bytes();
        }
    }
    holder of_plain;
    holder of_sharded;
    pair_of_ranks plain{source, [&](auto& table) { of_plain.plain(table, all); }, runs + 1};
    pair_of_ranks sharded{source,
                          [&](auto& table) {
                              for (int i = 0; i < layers; ++i)
                                  of_sharded.sharded(table, layer(i), {1, 4});
                          },
                          runs + 1};
    bench::variant into_plain{"packed, into plain tensors"};
    bench::variant into_shards{"packed, into fused shards, rank 1 of 4"};
    for (int run = 0; run <= runs; ++run) {  // the first one warms up
        double const a = bench::seconds([&] { plain.update(); });
        double const b = bench::seconds([&] { sharded.update(); });
        if (run == 0) continue;
        into_plain.runs.push_back(a);
        into_shards.runs.push_back(b);
    }
    double const size = static_cast<double>(bytes);
    fmt::print(
        "receive over local, {} layers, {} MiB, median of {} [slowest fastest], ratio to plain\n",
        layers, bytes >> 20U, runs);
    for (auto const* v : {&into_plain, &into_shards})
        bench::print(*v, size, into_plain.gb_per_s(size));
}
