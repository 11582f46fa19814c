// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <support/says.hpp>
#include <weightcast/model/fused_layout.hpp>
#include <weightcast/model/parameter_table.hpp>
#include <weightcast/model/sliced_layout.hpp>
#include <weightcast/tensor/range_tensor.hpp>

namespace weightcast::test {
namespace {

std::string objection(parameter_table<> const& table, std::vector<parameter> const& announced,
                      update_coverage promised = update_coverage::partial) {
    return table.objection(announced.data(), announced.size(), promised).value_or("");
}

struct three {
    std::vector<float> a = std::vector<float>(6);
    std::vector<std::int32_t> b = std::vector<std::int32_t>(4);
    std::vector<double> c = std::vector<double>(1);
    parameter_table<> table;
    three() {
        table.add("layers.0.a", tensor_view<>{a.data(), dtype::float32, {2, 3}});
        table.add("layers.0.b", b);
        table.add("c", tensor_view<>{c.data(), dtype::float64, {}});
    }
};

BOOST_AUTO_TEST_SUITE(parameter_table_suite)

BOOST_AUTO_TEST_CASE(tensors_are_found_by_name_where_they_are) {
    three t;
    BOOST_TEST(t.table.size() == 3U);
    BOOST_REQUIRE(t.table.find("layers.0.b") != nullptr);
    BOOST_TEST(t.table.find("layers.0.b")->data() == t.b.data());
    BOOST_TEST((t.table.find("layers.0.a")->shape() == extents{2, 3}));
    BOOST_TEST(t.table.find("layers.0") == nullptr);
    BOOST_TEST(t.table.find("") == nullptr);
    std::vector<std::string> names;
    names = t.table.names();
    BOOST_TEST(names == (std::vector<std::string>{"c", "layers.0.a", "layers.0.b"}),
               boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_name_is_there_once_and_is_not_empty) {
    three t;
    BOOST_CHECK_EXCEPTION(t.table.add("c", t.a), bad_argument, says("'c' is in the table already"));
    BOOST_CHECK_EXCEPTION(t.table.add("", t.a), bad_argument, says("needs a name"));
    BOOST_TEST(t.table.find("c")->data() == t.c.data());
    BOOST_TEST(t.table.size() == 3U);
}

BOOST_AUTO_TEST_CASE(an_update_that_fits_meets_no_objection) {
    three const t;
    BOOST_TEST(objection(t.table, {}) == "");
    BOOST_TEST(objection(t.table, {{"c", dtype::float64, {}}}) == "");
    BOOST_TEST(objection(t.table, {{"layers.0.b", dtype::int32, {4}},
                                   {"layers.0.a", dtype::float32, {2, 3}}}) == "");
}

BOOST_AUTO_TEST_CASE(what_does_not_fit_is_told_with_both_sides) {
    three const t;
    BOOST_TEST(objection(t.table, {{"c", dtype::float32, {}}}) ==
               "tensor 'c' is announced as float32[], held as float64[]");
    BOOST_TEST(objection(t.table, {{"layers.0.a", dtype::float32, {3, 2}}}) ==
               "tensor 'layers.0.a' is announced as float32[3, 2], held as float32[2, 3]");
    BOOST_TEST(objection(t.table, {{"layers.0.a", dtype::float32, {6}}}) ==
               "tensor 'layers.0.a' is announced as float32[6], held as float32[2, 3]");
    BOOST_TEST(objection(t.table, {{"c", dtype::float64, {1}}}) ==
               "tensor 'c' is announced as float64[1], held as float64[]");
    BOOST_TEST(objection(t.table, {{"c", dtype::float64, {}}, {"c", dtype::float64, {}}}) ==
               "tensor 'c' is announced twice");
    BOOST_TEST(objection(t.table, {{"x", dtype::float64, {}}, {"x", dtype::float64, {}}}) ==
               "tensor 'x' is announced twice");
}

BOOST_AUTO_TEST_CASE(unknown_names_are_counted_and_the_first_are_named) {
    three const t;
    parameter const known{"c", dtype::float64, {}};
    std::vector<parameter> announced{known, {"m.c", dtype::float64, {}}};
    BOOST_TEST(objection(t.table, announced) ==
               "1 of 2 announced names are unknown here: 'm.c' (near: 'c')");
    for (int i = 0; i < 5; ++i) announced.push_back({"m." + std::to_string(i), dtype::float64, {}});
    BOOST_TEST(objection(t.table, announced) ==
               "6 of 7 announced names are unknown here: 'm.c' (near: 'c'), 'm.0', 'm.1', ...");
}

BOOST_AUTO_TEST_CASE(what_an_update_does_not_bring_is_named) {
    three const t;
    std::vector<parameter> const announced{{"layers.0.a", dtype::float32, {2, 3}}};
    BOOST_TEST(
        t.table.not_covered(announced.data(), 1) == (std::vector<std::string>{"c", "layers.0.b"}),
        boost::test_tools::per_element());
    BOOST_TEST(t.table.not_covered(nullptr, 0).size() == 3U);
    std::vector<parameter> const all{{"c", dtype::float64, {}},
                                     {"layers.0.a", dtype::float32, {2, 3}},
                                     {"layers.0.b", dtype::int32, {4}},
                                     {"x", {}, {}}};
    BOOST_TEST(t.table.not_covered(all.data(), all.size()).empty());
}

BOOST_AUTO_TEST_CASE(strided_tensors_are_held_as_they_are) {
    std::vector<float> memory(100);
    parameter_table<> table;
    table.add("t", tensor_view<>{memory.data(), dtype::float32, {4, 3}, {1, 20}});
    BOOST_TEST(objection(table, {{"t", dtype::float32, {4, 3}}}) == "");
    BOOST_TEST(!table.find("t")->contiguous());
}

// --- own tensors that are made of checkpoint tensors ---

/// gate and up, each [4, 2], fused and sharded: rank 1 of 2 holds rows 2 and 3 of both. And a tensor as it is.
struct fused_table {
    parameter gate{"gate", dtype::float32, {4, 2}};
    parameter up{"up", dtype::float32, {4, 2}};
    std::vector<float> memory = std::vector<float>(8);
    std::vector<float> norm = std::vector<float>(3);
    parameter_table<> table{};

    fused_table() {
        table.add("gate_up", made_of(), tensor_view<>{memory.data(), dtype::float32, {4, 2}});
        table.add("norm", norm);
    }
    layout made_of() const {
        auto const shard = [](parameter const& p) {
            return layouts::sharded(layouts::whole(p), 0, {1, 2});
        };
        return layouts::fused(0, {shard(gate), shard(up)});
    }
};

BOOST_AUTO_TEST_CASE(a_fused_tensor_is_found_by_its_checkpoint_names_and_by_its_own) {
    fused_table const t;
    auto const parts = t.table.parts(t.up);
    BOOST_TEST_REQUIRE(parts.has_value());
    BOOST_TEST_REQUIRE(parts->size() == 1U);
    BOOST_TEST(parts->front().own.data() == t.memory.data());
    BOOST_TEST((parts->front().region.offset == extents{2, 0}));
    BOOST_TEST((parts->front().region.sizes == extents{2, 2}));
    BOOST_TEST(parts->front().region.first_element == 4U);
    parameter const own{"gate_up", dtype::float32, {4, 2}};
    BOOST_TEST(!t.table.parts(own).has_value());
    BOOST_TEST(objection(t.table, {t.gate, t.up, {"norm", dtype::float32, {3}}}) == "");
    BOOST_TEST(objection(t.table, {own}) == "");
    BOOST_TEST(objection(t.table, {{"up", dtype::float32, {2, 2}}}) ==
               "tensor 'up' is announced as float32[2, 2], held as float32[4, 2]");
    BOOST_TEST(objection(t.table, {{"upp", dtype::float32, {4, 2}}}) ==
               "1 of 1 announced names are unknown here: 'upp' (near: 'up')");
}

BOOST_AUTO_TEST_CASE(bytes_that_would_be_written_twice_are_refused) {
    fused_table const t;
    parameter const own{"gate_up", dtype::float32, {4, 2}};
    BOOST_TEST(objection(t.table, {t.gate, own}) ==
               "tensor 'gate' is a part of 'gate_up', which is announced too: its bytes would be "
               "written twice");
    parameter_table<> renamed = t.table;
    name_map map;
    map.prefix("model.", "");
    renamed.rename(map);
    BOOST_TEST(objection(renamed, {{"model.up", dtype::float32, {4, 2}}, t.gate}) == "");
    BOOST_TEST(objection(renamed, {t.up, {"model.up", dtype::float32, {4, 2}}}) ==
               "tensor 'model.up' means 'up', which is announced already");
}

BOOST_AUTO_TEST_CASE(
    checkpoint_tensors_that_do_not_come_are_named_where_something_of_them_is_held) {
    fused_table t;
    std::vector<float> none;
    t.table.add("elsewhere",
                layouts::sliced(layouts::whole({"far", dtype::float32, {4, 2}}), 0, {0, 0}),
                tensor_view<>{none.data(), dtype::float32, {0, 2}});
    auto const missing = [&](std::vector<parameter> const& announced) {
        std::string text;
        for (auto const& name : t.table.not_covered(announced.data(), announced.size()))
            text += name + " ";
        return text;
    };
    BOOST_TEST(missing({}) == "gate norm up ");
    BOOST_TEST(missing({t.gate}) == "norm up ");
    BOOST_TEST(missing({{"gate_up", dtype::float32, {4, 2}}}) == "norm ");
}

BOOST_AUTO_TEST_CASE(b39_an_own_tensor_is_not_left_out_because_of_its_name) {
    // tied weights: the head is a shard of "embed", and an own tensor is called "embed"
    parameter const embed{"embed", dtype::float32, {4, 2}};
    auto const shard = layouts::sharded(layouts::whole(embed), 0, {0, 2});
    std::vector<float> whole_memory(8);
    std::vector<float> head_memory(4);
    tensor_view<> const all{whole_memory.data(), dtype::float32, {4, 2}};
    tensor_view<> const head{head_memory.data(), dtype::float32, {2, 2}};
    auto const two_meanings = says{"'embed'", "layouts::whole"};
    parameter_table<> plain_first;
    plain_first.add("embed", all);
    BOOST_CHECK_EXCEPTION(plain_first.add("lm_head", shard, head), bad_argument, two_meanings);
    parameter_table<> layout_first;
    layout_first.add("lm_head", shard, head);
    BOOST_CHECK_EXCEPTION(layout_first.add("embed", all), bad_argument, two_meanings);
    auto const other = layouts::whole({"w", dtype::float32, {4, 2}});
    BOOST_CHECK_EXCEPTION(layout_first.add("embed", other, all), bad_argument, two_meanings);
    layout_first.add("embed", layouts::whole(embed), all);
    auto const parts = layout_first.parts(embed);
    BOOST_TEST_REQUIRE(parts.has_value());
    BOOST_TEST(parts->size() == 2U);  // one update reaches both
}

BOOST_AUTO_TEST_CASE(a_name_of_two_meanings_covers_only_what_was_announced) {
    parameter const embed{"embed", dtype::float32, {4, 2}};
    std::vector<float> shard_memory(4);
    std::vector<float> head_memory(8);
    parameter_table<> table;
    table.add("embed", layouts::sharded(layouts::whole(embed), 0, {0, 2}),
              tensor_view<>{shard_memory.data(), dtype::float32, {2, 2}});
    table.add("lm_head", layouts::whole(embed),
              tensor_view<>{head_memory.data(), dtype::float32, {4, 2}});
    parameter const own{"embed", dtype::float32, {2, 2}};
    BOOST_TEST(objection(table, {own}) == "");
    BOOST_TEST(table.not_covered(&own, 1).size() == 1U);  // lm_head gets nothing from it
    BOOST_TEST(table.not_covered(&embed, 1).empty());
}

BOOST_AUTO_TEST_CASE(a_tensor_that_is_not_what_its_layout_says_is_refused) {
    fused_table t;
    std::vector<float> other(8);
    tensor_view<> const wrong{other.data(), dtype::float32, {2, 4}};
    BOOST_CHECK_EXCEPTION(t.table.add("w", t.made_of(), wrong), bad_argument,
                          (says{"parameter 'w' is float32[2, 4]", "own tensor float32[4, 2]"}));
    tensor_view<> const right{other.data(), dtype::float32, {4, 2}};
    BOOST_CHECK_EXCEPTION(t.table.add("norm", t.made_of(), right), bad_argument,
                          (says{"'norm' is in the table already"}));
    layout const contradicting = layouts::whole({"up", dtype::float32, {8}});
    tensor_view<> const flat{other.data(), dtype::float32, {8}};
    BOOST_CHECK_EXCEPTION(t.table.add("w", contradicting, flat), bad_argument, (says{"'up'"}));
    tensor_view<> const overlapping{other.data(), dtype::float32, {4, 2}, {1, 1}};
    BOOST_CHECK_EXCEPTION(t.table.add("w", t.made_of(), overlapping), bad_argument,
                          (says{"'w'", "overlap"}));
    BOOST_TEST(t.table.find("w") == nullptr);
    BOOST_TEST(t.table.size() == 2U);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weightcast::test
