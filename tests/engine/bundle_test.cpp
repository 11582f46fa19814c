// SPDX-License-Identifier: Apache-2.0
// Block-quantised weights with their scales into fused shards of two ranks, and updates that would tear them apart.
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <support/test_model.hpp>
#include <weightcast/model/bundle_layout.hpp>

namespace weightcast::test {
namespace {

constexpr std::int64_t block = 128;
constexpr std::int64_t rows = 256;     // of w1 and of w3: a block a rank
constexpr std::int64_t columns = 200;  // not divisible: the last block is narrow
constexpr std::int64_t scale_columns = 2;

std::vector<tensor_spec> checkpoint() {
    std::vector<tensor_spec> all;
    for (auto const* name : {"w1", "w3"}) {
        all.push_back({name, dtype::float8_e4m3fn, {rows, columns}});
        all.push_back(
            {std::string{name} + "_scale_inv", dtype::float32, {rows / block, scale_columns}});
    }
    return all;
}
bundle_layout w13(shard_position at) {
    std::vector<bundle_layout> parts;
    for (std::string const name : {"w1", "w3"}) {
        auto const whole = layouts::block_scaled(
            {name, dtype::float8_e4m3fn, {rows, columns}},
            {name + "_scale_inv", dtype::float32, {rows / block, scale_columns}});
        parts.push_back(layouts::sharded(whole, 0, at));
    }
    return layouts::fused(0, parts);
}

/// A rank's fused weight and scales.
struct holder {
    explicit holder(int rank, parameter_table<>& table) {
        auto const bundle = w13({rank, 2});
        table.add("w13", bundle.members()[0].made_of,
                  tensor_view<>{weight.data(), dtype::float8_e4m3fn, {rows, columns}});
        table.add("w13_scale_inv", bundle.members()[1].made_of,
                  tensor_view<>{scales.data(), dtype::float32, {2, scale_columns}});
        table.bundle(bundle);
    }
    /// Compared with plain loops over the checkpoint.
    std::string first_wrong(int rank, std::vector<contents> const& sent) const {
        for (std::int64_t i = 0; i < rows; ++i) {
            auto const& from = sent[i < block ? 0 : 2];
            auto const row = static_cast<std::size_t>(rank * block + i % block);
            if (std::memcmp(weight.data() + i * columns, from.data() + row * columns, columns) != 0)
                return "row " + std::to_string(i);
        }
        for (std::int64_t b = 0; b < 2; ++b) {
            auto const& from = sent[b == 0 ? 1 : 3];
            if (std::memcmp(scales.data() + b * scale_columns,
                            from.data() + static_cast<std::size_t>(rank) * scale_columns * 4,
                            scale_columns * 4) != 0)
                return "scales " + std::to_string(b);
        }
        return "";
    }
    std::vector<std::byte> weight = std::vector<std::byte>(rows * columns);
    std::vector<float> scales = std::vector<float>(2 * scale_columns);
};

BOOST_AUTO_TEST_SUITE(bundles)

BOOST_AUTO_TEST_CASE(block_fp8_reaches_a_fused_w13_of_two_ranks_with_its_scales) {
    for (std::uint64_t const chunk : {1000U, 1U << 20U}) {
        test_fleet const fleet{.size = 3,
                               .settings = {.packing = {.chunk_bytes = chunk}, .verify = true}};
        test_model const model{cpu_device, checkpoint(), 3};
        auto const sent = model.values();
        check_ranks(fleet.run(
                        [&](test_trainer& trainer) {
                            auto source = model.source();
                            send_update(trainer, source, 1);
                            return failure_of(trainer);
                        },
                        [&](test_engine& engine, int rank) {
                            holder const held{rank - 1, engine.target().main()};
                            receive_update(engine);
                            return held.first_wrong(rank - 1, sent);
                        }),
                    "chunks of " + std::to_string(chunk));
    }
}

BOOST_AUTO_TEST_CASE(a_weight_without_its_scales_is_refused_unless_members_may_come_alone) {
    for (bool const allowed : {false, true}) {
        test_fleet const fleet{.size = 3,
                               .settings = {.coverage = allowed ? update_coverage::members
                                                                : update_coverage::partial}};
        auto specs = checkpoint();
        specs.erase(specs.begin() + 3);  // w3_scale_inv
        test_model const model{cpu_device, specs, 3};
        auto const said = fleet.run(
            [&](test_trainer& trainer) {
                auto source = model.source();
                send_update(trainer, source, 1);
                return failure_of(trainer);
            },
            [&](test_engine& engine, int rank) {
                holder const held{rank - 1, engine.target().main()};
                return message_of([&] { receive_update(engine); });
            });
        for (auto const& message : said) {
            if (allowed)
                BOOST_TEST(message == "");
            else
                BOOST_TEST(message.find("the update brings 'w3' without 'w3_scale_inv'") !=
                               std::string::npos,
                           message);
        }
    }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weightcast::test
