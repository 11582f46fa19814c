// SPDX-License-Identifier: Apache-2.0
// Checkpoint tensors into engines that hold them fused, sharded, transposed and stacked: each rank's own tensors are
// compared with what a plain loop over the checkpoint would put there.
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <support/says.hpp>
#include <support/test_model.hpp>
#include <weightcast/model/attention_layout.hpp>
#include <weightcast/model/expert_layout.hpp>
#include <weightcast/model/fused_layout.hpp>
#include <weightcast/model/interleaved_layout.hpp>
#include <weightcast/model/sliced_layout.hpp>
#include <weightcast/model/stored_layout.hpp>
#include <weightcast/session/update_result.hpp>

namespace weightcast::test {
namespace {

constexpr std::int64_t width = 24;
constexpr std::int64_t head = 4;
constexpr std::int64_t query_heads = 6;
constexpr std::int64_t kv_heads = 2;
constexpr std::int64_t hidden = 10;
constexpr std::int64_t vocabulary = 13;
constexpr std::int64_t experts = 4;

/// A small transformer layer as a checkpoint has it.
std::vector<tensor_spec> checkpoint() {
    std::vector<tensor_spec> all{{"embed", dtype::float32, {vocabulary, width}},
                                 {"q", dtype::float32, {query_heads * head, width}},
                                 {"k", dtype::float32, {kv_heads * head, width}},
                                 {"v", dtype::float32, {kv_heads * head, width}},
                                 {"o", dtype::float32, {width, query_heads * head}},
                                 {"gate", dtype::float32, {hidden, width}},
                                 {"up", dtype::float32, {hidden, width}},
                                 {"down", dtype::float32, {width, hidden}},
                                 {"norm", dtype::float32, {width}}};
    for (std::int64_t e = 0; e < experts; ++e) {
        all.push_back({"expert." + std::to_string(e), dtype::float32, {6, width}});
    }
    return all;
}
parameter named(std::string const& name) {
    for (auto const& s : checkpoint()) {
        if (s.name == name) return {s.name, s.type, s.shape};
    }
    throw bad_argument{"no tensor '" + name + "'"};
}
layout whole(std::string const& name) { return layouts::whole(named(name)); }

/// Reads one element of the checkpoint.
class reference {
  public:
    explicit reference(std::vector<contents> values) : values_{std::move(values)} {}
    float at(std::string const& name, std::int64_t row, std::int64_t column) const {
        auto const specs = checkpoint();
        for (std::size_t i = 0; i < specs.size(); ++i) {
            if (specs[i].name != name) continue;
            auto const columns = specs[i].shape.size() == 1 ? 1 : specs[i].shape[1];
            float value = 0;
            std::memcpy(&value, values_[i].data() + (row * columns + column) * 4, 4);
            return value;
        }
        throw bad_argument{"no tensor '" + name + "'"};
    }

  private:
    std::vector<contents> values_;
};

/// One own tensor: its name, its layout, and what element (i, j) of it must be; nothing: it stays as it was.
struct own_tensor {
    std::string name;
    layout made_of;
    std::function<std::optional<float>(reference const&, std::int64_t, std::int64_t)> expected;
};

/// What a rank of two holds, as engines with tensor parallelism do.
std::vector<own_tensor> rank_of_two(int r) {
    shard_position const at{r, 2};
    std::vector<own_tensor> own;
    own.push_back({"embed.padded", layouts::sharded(layouts::padded(whole("embed"), 0, 16), 0, at),
                   [r](reference const& c, std::int64_t i, std::int64_t j) -> std::optional<float> {
                       if (8 * r + i >= vocabulary) return std::nullopt;
                       return c.at("embed", 8 * r + i, j);
                   }});
    own.push_back(
        {"qkv",
         layouts::fused_qkv(whole("q"), whole("k"), whole("v"), {query_heads, kv_heads, head}, at),
         [r](reference const& c, std::int64_t i, std::int64_t j) -> std::optional<float> {
             if (i < 12) return c.at("q", 12 * r + i, j);
             if (i < 16) return c.at("k", 4 * r + i - 12, j);
             return c.at("v", 4 * r + i - 16, j);
         }});
    own.push_back({"o", layouts::sharded(whole("o"), 1, at),
                   [r](reference const& c, std::int64_t i, std::int64_t j) {
                       return std::optional{c.at("o", i, 12 * r + j)};
                   }});
    own.push_back({"gate_up",
                   layouts::fused(0, {layouts::sharded(whole("gate"), 0, at),
                                      layouts::sharded(whole("up"), 0, at)}),
                   [r](reference const& c, std::int64_t i, std::int64_t j) {
                       return std::optional{i < 5 ? c.at("gate", 5 * r + i, j)
                                                  : c.at("up", 5 * r + i - 5, j)};
                   }});
    own.push_back({"down.transposed", layouts::transposed(layouts::sharded(whole("down"), 1, at)),
                   [r](reference const& c, std::int64_t i, std::int64_t j) {
                       return std::optional{c.at("down", j, 5 * r + i)};
                   }});
    own.push_back({"w13.interleaved", layouts::interleaved(0, {whole("gate"), whole("up")}, 1),
                   [](reference const& c, std::int64_t i, std::int64_t j) {
                       return std::optional{c.at(i % 2 == 0 ? "gate" : "up", i / 2, j)};
                   }});
    // experts 1 and 3 on rank 0, 0 and 2 on rank 1
    std::vector<layout> mine;
    for (std::int64_t e = 1 - r; e < experts; e += 2)
        mine.push_back(whole("expert." + std::to_string(e)));
    own.push_back({"experts", layouts::stacked(mine),
                   [r](reference const& c, std::int64_t i, std::int64_t j) {
                       auto const e = 1 - r + 2 * (i / 6);
                       return std::optional{c.at("expert." + std::to_string(e), i % 6, j)};
                   }});
    for (std::int64_t e = r; e < experts; e += 2) {  // known here, held by the other rank
        own.push_back(
            {"none." + std::to_string(e),
             layouts::sliced(whole("expert." + std::to_string(e)), 0, {0, 0}),
             [](reference const&, std::int64_t, std::int64_t) { return std::optional<float>{}; }});
    }
    return own;
}

/// A rank's memory. Rows that belong to nobody keep a mark.
class holder {
  public:
    holder(device where, int rank, parameter_table<>& table) : tensors_{rank_of_two(rank)} {
        for (auto const& t : tensors_) {
            auto const bytes = element_count(t.made_of.shape()) * 4;
            memory_.emplace_back(where, contents(bytes, std::byte{0x3F}));
            table.add(
                t.name, t.made_of,
                tensor_view<>{memory_.back().data(), dtype::float32, t.made_of.shape(), where});
        }
        memory_.emplace_back(where, contents(width * 4));
        table.add("norm", tensor_view<>{memory_.back().data(), dtype::float32, {width}, where});
    }
    std::string first_wrong(reference const& c) const {
        for (std::size_t t = 0; t < tensors_.size(); ++t) {
            auto const bytes = memory_[t].read();
            auto const columns = width_of(tensors_[t]);
            for (std::size_t e = 0; e < bytes.size() / 4; ++e) {
                auto const i = static_cast<std::int64_t>(e);
                float value = 0;
                std::memcpy(&value, bytes.data() + 4 * e, 4);
                contents const mark(4, std::byte{0x3F});
                float kept = 0;
                std::memcpy(&kept, mark.data(), 4);
                auto const wanted =
                    tensors_[t].expected(c, i / columns, i % columns).value_or(kept);
                if (std::memcmp(&value, &wanted, 4) != 0)
                    return "'" + tensors_[t].name + "' is wrong at element " + std::to_string(e);
            }
        }
        return "";
    }

  private:
    static std::int64_t width_of(own_tensor const& t) {
        auto const& shape = t.made_of.shape();
        return shape[shape.size() - 1];
    }
    std::vector<own_tensor> tensors_;
    std::deque<placed_bytes> memory_;
};

std::vector<std::string> update_into_shards(device where, packing_options const& packing,
                                            bool verify) {
    auto const specs = checkpoint();
    test_model const model{cpu_device, specs, 9};
    reference const expected{model.values()};
    test_fleet const fleet{
        .size = 3, .where = where, .settings = {.packing = packing, .verify = verify}};
    return fleet.run(
        [&](test_trainer& trainer) {
            auto source = model.source();
            send_update(trainer, source, 1);
            return failure_of(trainer);
        },
        [&](test_engine& engine, int rank) -> std::string {
            holder const held{where, rank - 1, engine.target().main()};
            auto const update = engine.next();
            engine.start(update.target());
            engine.receive(update);
            engine.prepare();
            update_report report;
            engine.describe(report);
            engine.commit();
            if (!report.not_covered.empty()) return "not covered: " + report.not_covered.front();
            return held.first_wrong(expected);
        });
}

BOOST_AUTO_TEST_SUITE(dense_layout)

BOOST_AUTO_TEST_CASE(checkpoint_tensors_reach_fused_sharded_transposed_and_stacked_ones) {
    for (auto const where : {cpu_device, host1}) {
        for (bool const verify : {false, true}) {
            // tensors are cut at every chunk, and travel whole
            for (std::uint64_t const chunk : {64U, 104U, 4096U, 1U << 20U}) {
                check_ranks(update_into_shards(where, {.chunk_bytes = chunk}, verify),
                            to_string(where) + ", chunks of " + std::to_string(chunk));
            }
            check_ranks(update_into_shards(where, {.direct_from = 1}, verify), "large ones direct");
            check_ranks(update_into_shards(where, vllm_packing(500), verify), "vllm's layout");
        }
    }
}

BOOST_AUTO_TEST_CASE(b54_equal_shapes_of_another_layout_are_not_scrambled) {
    // gate and up, interleaved in the engine and fused in the checkpoint's order, have the shape that both together have
    test_model const model{cpu_device, checkpoint(), 3};
    reference const expected{model.values()};
    test_fleet const fleet{};
    check_ranks(fleet.run(
                    [&](test_trainer& trainer) {
                        table_source<> source;
                        for (auto const i : {5U, 6U}) source.add(model.name(i), model.view(i));
                        send_update(trainer, source, 1);
                        return failure_of(trainer);
                    },
                    [&](test_engine& engine, int) -> std::string {
                        std::vector<float> w13(2 * hidden * width);
                        engine.target().main().add(
                            "w13", layouts::interleaved(0, {whole("gate"), whole("up")}, 1),
                            tensor_view<>{w13.data(), dtype::float32, {2 * hidden, width}});
                        receive_update(engine);
                        for (std::int64_t i = 0; i < 2 * hidden * width; ++i) {
                            auto const row = i / width;
                            auto const value =
                                expected.at(row % 2 == 0 ? "gate" : "up", row / 2, i % width);
                            if (w13[static_cast<std::size_t>(i)] != value) return "scrambled";
                        }
                        return "";
                    }),
                "interleaved");
}

BOOST_AUTO_TEST_CASE(b35_b38_renamed_and_unknown_names) {
    test_model const model{cpu_device, tensors_of_bytes({40, 50}), 3};
    auto const expected = model.values();
    test_fleet const fleet{};
    check_ranks(
        fleet.run(
            [&](test_trainer& trainer) -> std::string {
                table_source<> source;
                source.add("actor.module.t0", model.view(0));
                source.add("actor.module.t1", model.view(1));
                send_update(trainer, source, 1);
                if (!failure_of(trainer).empty()) return failure_of(trainer);
                table_source<> misnamed;
                misnamed.add("actor.module.t0", model.view(0));
                misnamed.add("actor.modul.t1", model.view(1));
                send_update(trainer, misnamed, 2);
                auto const said = failure_of(trainer);
                return unless(said.find("1 of 2 announced names are unknown here: "
                                        "'actor.modul.t1' (near: 'model.t1'") != std::string::npos,
                              said);
            },
            [&](test_engine& engine, int) -> std::string {
                test_model held{cpu_device, tensors_of_bytes({40, 50}), 0};
                auto& table = engine.target().main();
                for (std::size_t i = 0; i < 2; ++i)
                    table.add("model." + held.name(i), held.view(i));
                name_map map;
                map.prefix("actor.module.", "model.");
                table.rename(map);
                receive_update(engine);
                auto const wrong = first_difference(held, expected);
                if (!wrong.empty()) return wrong;
                auto const refused = message_of([&] { receive_update(engine); });
                return unless(refused.find("'actor.modul.t1'") != std::string::npos, refused);
            }),
        "renamed");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weightcast::test
