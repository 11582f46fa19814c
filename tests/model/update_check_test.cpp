// SPDX-License-Identifier: Apache-2.0
// What an update may leave out, name twice or not know: from metadata alone.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <support/says.hpp>
#include <weightcast/model/fused_layout.hpp>
#include <weightcast/model/parameter_index.hpp>
#include <weightcast/model/parameter_table.hpp>
#include <weightcast/model/sliced_layout.hpp>
#include <weightcast/model/stored_layout.hpp>
#include <weightcast/model/update_check.hpp>
#include <weightcast/model/update_coverage.hpp>
#include <weightcast/tensor/range_tensor.hpp>

namespace weightcast::test {
namespace {

parameter f32(std::string name, extents shape) { return {std::move(name), dtype::float32, shape}; }
std::string objection(parameter_table<> const& table, std::vector<parameter> const& announced,
                      update_coverage promised = update_coverage::parameters) {
    return table.objection(announced.data(), announced.size(), promised).value_or("");
}
std::vector<std::string> not_covered(parameter_table<> const& table,
                                     std::vector<parameter> const& announced) {
    return table.not_covered(announced.data(), announced.size());
}
using names = std::vector<std::string>;

/// Memory for tables, one tensor after the other.
struct arena {
    std::vector<std::vector<float>> blocks;
    tensor_view<> tensor(extents const& shape) {
        blocks.emplace_back(static_cast<std::size_t>(element_count(shape)));
        return {blocks.back().data(), dtype::float32, shape};
    }
};

BOOST_AUTO_TEST_SUITE(update_check_suite)

BOOST_AUTO_TEST_CASE(b40_a_buffer_may_be_left_out_unless_everything_is_promised) {
    arena a;
    parameter_table<> table;
    table.add("w", a.tensor({2}));
    table.add("v", a.tensor({2}));
    table.add_buffer("router.bias", a.tensor({3}));
    std::vector<parameter> const two{f32("w", {2}), f32("v", {2})};
    BOOST_TEST(objection(table, two) == "");
    BOOST_TEST(not_covered(table, two) == names{"router.bias"}, boost::test_tools::per_element());
    BOOST_TEST(objection(table, two, update_coverage::everything) ==
               "the update leaves out 1: 'router.bias'; bring them, or declare the update partial");
    auto all = two;
    all.push_back(f32("router.bias", {3}));
    BOOST_TEST(objection(table, all, update_coverage::everything) == "");
    BOOST_TEST(not_covered(table, all).empty());
    BOOST_TEST(objection(table, {f32("w", {2})}) ==
               "the update leaves out 1: 'v'; bring them, or declare the update partial");
    BOOST_TEST(objection(table, {f32("w", {2})}, update_coverage::partial) == "");
}

BOOST_AUTO_TEST_CASE(bytes_that_nobody_writes_are_told_with_tensor_slice_and_expert) {
    arena a;
    parameter_table<> table;
    std::vector<layout> experts;
    std::vector<parameter> sources;
    for (int e = 0; e < 256; ++e) {
        sources.push_back(f32("experts." + std::to_string(e) + ".w1", {2, 3}));
        experts.push_back(layouts::whole(sources.back()));
    }
    table.add("w13", layouts::stacked(experts), a.tensor({256, 2, 3}));
    BOOST_TEST(objection(table, sources) == "");
    sources.erase(sources.begin() + 7);
    BOOST_TEST(objection(table, sources) ==
               "the update leaves out 1: 'experts.7.w1' (own tensor 'w13' misses 6 elements, the "
               "first at [7:8, 0:2, 0:3]); bring them, or declare the update partial");
    BOOST_TEST(objection(table, sources, update_coverage::partial) == "");
    sources.resize(100);
    BOOST_TEST(objection(table, sources).starts_with("the update leaves out 156: 'experts."));
}

BOOST_AUTO_TEST_CASE(b35_unknown_names_are_dropped_and_listed_only_where_the_table_accepts_them) {
    arena a;
    parameter_table<> table;
    table.add("w", a.tensor({2}));
    std::vector<parameter> const announced{f32("w", {2}), f32("rotary.inv_freq", {4})};
    BOOST_TEST(objection(table, announced) ==
               "1 of 2 announced names are unknown here: 'rotary.inv_freq'");
    table.accept_unknown_names();
    BOOST_TEST(objection(table, announced) == "");
    auto const unknown = table.check(announced.data(), announced.size()).unknown();
    BOOST_TEST(unknown == names{"rotary.inv_freq"}, boost::test_tools::per_element());
    BOOST_REQUIRE(table.parts(announced[1]).has_value());
    BOOST_TEST(table.parts(announced[1])->empty());
    // all of them: nothing would be updated, and nobody would notice
    BOOST_TEST(objection(table, {announced[1]}, update_coverage::partial) ==
               "1 of 1 announced names are unknown here: 'rotary.inv_freq'");
    BOOST_TEST(objection(table, {announced[0], announced[1], announced[1]}) ==
               "tensor 'rotary.inv_freq' is announced twice");
}

BOOST_AUTO_TEST_CASE(b39_an_alias_is_another_name_of_a_tensor) {
    arena a;
    parameter_table<> table;
    table.add("embed", a.tensor({4, 2}));
    BOOST_CHECK_EXCEPTION(table.alias("lm_head", "embedd"), bad_argument,
                          says("'embedd', which is not in the table"));
    BOOST_CHECK_THROW(table.alias("embed", "embed"), bad_argument);
    table.alias("lm_head", "embed");
    BOOST_CHECK_THROW(table.alias("lm_head", "embed"), bad_argument);
    BOOST_CHECK_THROW(table.add("lm_head", a.tensor({4, 2})), bad_argument);
    BOOST_CHECK_THROW(table.add("x", layouts::whole(f32("lm_head", {4, 2})), a.tensor({4, 2})),
                      bad_argument);

    BOOST_TEST(objection(table, {f32("lm_head", {4, 2})}) == "");
    BOOST_TEST(table.whole("lm_head")->data() == a.blocks[0].data());
    std::vector<parameter> const both{f32("lm_head", {4, 2}), f32("embed", {4, 2})};
    BOOST_TEST(objection(table, both) == "");
    auto const pairs = table.check(both.data(), both.size()).alias_pairs();
    BOOST_REQUIRE(pairs.size() == 1U);
    BOOST_TEST(pairs[0].first == 1U);
    BOOST_TEST(pairs[0].second == 0U);
    BOOST_TEST(objection(table, {both[0], both[1], both[1]}) != "");
    BOOST_TEST(objection(table, {f32("lm_head", {4, 3})}) ==
               "tensor 'lm_head' is announced as float32[4, 3], held as float32[4, 2]");
}

BOOST_AUTO_TEST_CASE(own_tensors_that_share_memory_are_not_written_twice) {
    std::vector<float> memory(8);
    auto const at = [&](std::size_t first, extents const& shape, extents const& strides) {
        return tensor_view<>{memory.data() + first, dtype::float32, shape, strides, cpu_device};
    };
    parameter_table<> table;
    table.add("embed", at(0, {8}, {1}));
    table.add("lm_head", at(0, {8}, {1}));
    table.settle();
    BOOST_TEST(
        objection(table, {f32("embed", {8}), f32("lm_head", {8})}) ==
        "own tensors 'embed' and 'lm_head' share memory: their bytes would be written twice; "
        "where they are the same tensor, declare an alias");
    BOOST_TEST(objection(table, {f32("embed", {8})}, update_coverage::partial) == "");
    BOOST_TEST(not_covered(table, {f32("embed", {8})}) == names{"lm_head"},
               boost::test_tools::per_element());

    parameter_table<> columns;  // between each other's elements: nothing is shared
    columns.add("even", at(0, {4}, {2}));
    columns.add("odd", at(1, {4}, {2}));
    columns.settle();
    BOOST_TEST(objection(columns, {f32("even", {4}), f32("odd", {4})}) == "");
    columns.add("last", at(7, {1}, {1}));  // an element of "odd"
    columns.settle();
    BOOST_TEST(objection(columns, {f32("even", {4}), f32("last", {1})}, update_coverage::partial) ==
               "");
    BOOST_TEST(objection(columns, {f32("odd", {4}), f32("last", {1})}, update_coverage::partial)
                   .starts_with("own tensors 'odd' and 'last' share memory"));
}

BOOST_AUTO_TEST_CASE(coverages_have_the_names_of_the_documentation) {
    BOOST_TEST(to_string(update_coverage::everything) == "everything");
    BOOST_TEST(to_string(update_coverage::parameters) == "parameters");
    BOOST_TEST(to_string(update_coverage::partial) == "partial");
    BOOST_TEST(to_string(update_coverage::members) == "members");
    BOOST_TEST(to_string(static_cast<update_coverage>(9)) == "unknown coverage");
}

BOOST_AUTO_TEST_CASE(a_name_has_one_meaning_and_is_found_by_a_rename_first) {
    parameter_index index;
    auto const own = index.add_own("w", dtype::float32, {2}, own_kind::parameter);
    BOOST_TEST(index.add_own("b", dtype::float32, {3}, own_kind::buffer) == own + 1);
    BOOST_CHECK_THROW(index.add_own("w", dtype::int8, {2}, own_kind::output), bad_argument);
    BOOST_TEST(index.find_own("w") == own);
    BOOST_TEST(index.find_own("v") == parameter_index::none);
    name_map map;
    map.prefix("model.", "");
    index.rename(map);
    BOOST_TEST(index.look_up(std::string_view{"model.w"}).own == own);
    BOOST_TEST(index.look_up(std::string_view{"w"}).own == own);
    BOOST_TEST((index.look_up(f32("model.b", {3})).how == parameter_index::fit::whole));
    BOOST_TEST((index.look_up(f32("b", {4})).how == parameter_index::fit::misfit));
    BOOST_TEST(!parameter_index::is_known(index.look_up(std::string_view{"model.v"})));
}

BOOST_AUTO_TEST_CASE(a_bundle_is_brought_whole_or_not_at_all) {
    arena a;
    parameter_table<> table;
    table.add("w", a.tensor({4, 4}));
    table.add("w_scale", a.tensor({1}));
    table.add("norm", a.tensor({4}));
    BOOST_CHECK_EXCEPTION(table.bundle({"w", "w_zero"}), bad_argument, says("'w_zero'"));
    BOOST_CHECK_EXCEPTION(table.bundle({"w"}), bad_argument, says("two members"));
    table.bundle({"w", "w_scale"});
    auto const partial = update_coverage::partial;
    BOOST_TEST(objection(table, {f32("norm", {4})}, partial) == "");
    BOOST_TEST(
        objection(table, {f32("w", {4, 4}), f32("norm", {4})}, partial) ==
        "bundle 'w': the update brings 'w' without 'w_scale', and they are valid only together");
    BOOST_TEST(
        objection(table, {f32("w_scale", {1})}, partial) ==
        "bundle 'w': the update brings 'w_scale' without 'w', and they are valid only together");
    BOOST_TEST(objection(table, {f32("w_scale", {1})}, update_coverage::members) == "");
    BOOST_TEST(objection(table, {f32("w_scale", {1}), f32("w", {4, 4})}, partial) == "");
}

BOOST_AUTO_TEST_CASE(a_bundles_member_may_lie_in_a_fused_tensor) {
    arena a;
    parameter_table<> table;
    auto const w1 = layouts::whole(f32("w1", {2, 2}));
    auto const w3 = layouts::whole(f32("w3", {2, 2}));
    table.add("w13", layouts::fused(0, {w1, w3}), a.tensor({4, 2}));
    table.add("w1_scale", a.tensor({1}));
    table.add("w3_scale", a.tensor({1}));
    table.bundle({"w1", "w1_scale"});
    table.bundle({"w3", "w3_scale"});
    auto const partial = update_coverage::partial;
    BOOST_TEST(objection(table, {f32("w1", {2, 2}), f32("w1_scale", {1})}, partial) == "");
    BOOST_TEST(objection(table, {f32("w1", {2, 2}), f32("w3_scale", {1})}, partial) != "");
    // the engine's own tensor touches both
    BOOST_TEST(objection(table, {f32("w13", {4, 2}), f32("w1_scale", {1})}, partial) ==
               "bundle 'w3': the update brings 'w3' without 'w3_scale', and they are valid only "
               "together");
    BOOST_TEST(objection(table, {f32("w13", {4, 2}), f32("w1_scale", {1}), f32("w3_scale", {1})}) ==
               "");
}

layer_step<host_runtime> quantise() {
    return {.name = "layers.0",
            .inputs = {f32("layers.0.w", {2, 2}), f32("layers.0.b", {2})},
            .after = {"layers.0.norm"},
            .outputs = {"w8"},
            .run = [](layer_tensors<host_runtime> const&, host_runtime::stream_ref) {}};
}

BOOST_AUTO_TEST_CASE(a_layers_inputs_come_together) {
    arena a;
    parameter_table<> table;
    table.add("layers.0.norm", a.tensor({2}));
    table.add_output("w8", a.tensor({4}));
    table.add_layer(quantise());
    std::vector<parameter> const all{f32("layers.0.b", {2}), f32("layers.0.norm", {2}),
                                     f32("layers.0.w", {2, 2})};
    BOOST_TEST(objection(table, all) == "");
    BOOST_TEST(not_covered(table, {all[1]}) == (names{"layers.0.b", "layers.0.w"}),
               boost::test_tools::per_element());
    BOOST_TEST(
        objection(table, {all[0]}, update_coverage::members) ==
        "layer 'layers.0': the update brings 'layers.0.b' without 'layers.0.w', and they are "
        "valid only together");
    auto const runs = table.layer_runs(all.data(), all.size());
    BOOST_REQUIRE(runs.size() == 1U);
    BOOST_TEST(runs[0].inputs == (std::vector<std::size_t>{2, 0}),
               boost::test_tools::per_element());
    BOOST_TEST(runs[0].after == std::vector<std::size_t>{1}, boost::test_tools::per_element());
    BOOST_TEST(runs[0].outputs.at(0).tensor.data() == a.blocks[1].data());

    // what the step would write may come as it is: then the step does not run
    std::vector<parameter> const ready{f32("w8", {4}), all[1]};
    BOOST_TEST(objection(table, ready) == "");
    auto const after_only = table.layer_runs(&all[1], 1);
    BOOST_REQUIRE(after_only.size() == 0U);
    BOOST_TEST(objection(table, {all[0], all[2], f32("w8", {4})}, update_coverage::partial) ==
               "tensor 'layers.0.w' is a part of 'w8', which is announced too: its bytes would be "
               "written twice");
}

BOOST_AUTO_TEST_CASE(a_layer_that_cannot_work_is_refused) {
    arena a;
    parameter_table<> table;
    table.add("layers.0.norm", a.tensor({2}));
    table.add("w8", a.tensor({4}));
    table.add_output("out", a.tensor({4}));
    auto const refused = [&](auto const& change, auto const& because) {
        auto step = quantise();
        step.outputs = {"out"};
        change(step);
        BOOST_CHECK_EXCEPTION(table.add_layer(step), bad_argument, because);
    };
    using step_type = layer_step<host_runtime>;
    refused([](step_type& s) { s.run = nullptr; }, says("nothing to run"));
    refused([](step_type& s) { s.inputs.clear(), s.after.clear(); }, says("waits for nothing"));
    refused([](step_type& s) { s.after = {"norm"}; }, says("'norm' is not in the table"));
    refused([](step_type& s) { s.outputs = {"w8"}; }, says("'w8' was not added as an output"));
    refused([](step_type& s) { s.outputs = {"none"}; }, says("'none'"));
    refused([](step_type& s) { s.inputs[1].name = "w8"; }, says("'w8' is in the table already"));
    refused([](step_type& s) { s.inputs[1].name = "layers.0.w"; }, says("named twice"));
    auto good = quantise();
    good.outputs = {"out"};
    table.add_layer(good);
    BOOST_CHECK_THROW(table.add_layer(good), bad_argument);
    BOOST_CHECK_THROW(table.add("layers.0.w", a.tensor({2, 2})), bad_argument);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weightcast::test
