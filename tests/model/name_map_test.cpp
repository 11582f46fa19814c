// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <support/says.hpp>
#include <weightcast/model/fused_layout.hpp>
#include <weightcast/model/layout_table.hpp>
#include <weightcast/model/name_index.hpp>
#include <weightcast/model/name_map.hpp>

namespace weightcast::test {
namespace {

using names = std::vector<std::string>;

BOOST_AUTO_TEST_SUITE(name_maps)

BOOST_AUTO_TEST_CASE(without_rules_names_stay) { BOOST_TEST(name_map{}("a.b") == "a.b"); }

BOOST_AUTO_TEST_CASE(the_first_prefix_that_matches_is_replaced_once) {
    name_map map;
    map.prefix("model.language_model.", "model.").prefix("model.", "m.").prefix("x", "");
    BOOST_TEST(map("model.language_model.w") == "model.w");
    BOOST_TEST(map("model.w") == "m.w");
    BOOST_TEST(map("xw") == "w");
    BOOST_TEST(map("w.model.") == "w.model.");
    BOOST_TEST(name_map{}.prefix("", "model.")("w") == "model.w");
}

BOOST_AUTO_TEST_CASE(functions_see_what_the_prefix_rules_made_in_their_order) {
    name_map map;
    map.function([](std::string_view name) { return std::string{name} + "1"; });
    map.prefix("a.", "b.");
    map.function([](std::string_view name) { return std::string{name} + "2"; });
    BOOST_TEST(map("a.w") == "b.w12");
}

BOOST_AUTO_TEST_CASE(rules_that_cannot_work_are_refused) {
    name_map map;
    map.prefix("model.", "m.");
    BOOST_CHECK_EXCEPTION(map.prefix("model.language_model.", "model."), bad_argument,
                          (says{"'model.language_model.'", "'model.'"}));
    BOOST_CHECK_EXCEPTION(map.prefix("model.", "x."), bad_argument, says{"never match"});
    BOOST_CHECK_EXCEPTION(map.function(nullptr), bad_argument, says{"empty"});
    BOOST_TEST(map("model.language_model.w") == "m.language_model.w");
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(name_indices)

BOOST_AUTO_TEST_CASE(checkpoint_names_and_the_engines_own_names_both_work) {
    name_index const index{{"model.a", "b"}, name_map{}.prefix("model.language_model.", "model.")};
    BOOST_TEST(index.find("model.language_model.a").value() == 0U);
    BOOST_TEST(index.find("model.a").value() == 0U);
    BOOST_TEST(index.find("b").value() == 1U);
    BOOST_TEST(!index.find("a").has_value());
    BOOST_TEST(!index.find("").has_value());
}

BOOST_AUTO_TEST_CASE(the_map_goes_before_the_name_as_it_stands) {
    name_index const index{{"a.w", "b.w"}, name_map{}.prefix("a.", "b.")};
    BOOST_TEST(index.find("a.w").value() == 1U);
}

BOOST_AUTO_TEST_CASE(a_name_of_which_nothing_is_left_means_the_name_as_it_stands) {
    name_index const index{{"w", "wa"}, name_map{}.prefix("w", "")};
    BOOST_TEST(name_map{}.prefix("w", "")("w") == "");
    BOOST_TEST(index.find("w").value() == 0U);
    BOOST_TEST(!index.find("wb").has_value());
    name_index const other{{"long_name"}, name_map{}.prefix("long_nam", "")};
    BOOST_TEST(other.nearest("long_nam") == (names{"long_name"}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(two_announced_names_that_mean_one_tensor_are_refused) {
    name_index const index{{"m.a"}, name_map{}.prefix("x.", "m.")};
    BOOST_TEST(index.objection({"x.a"}).has_value() == false);
    BOOST_TEST(index.objection({"x.a", "m.a"}).value() ==
               "tensors 'x.a' and 'm.a' both mean 'm.a'");
}

BOOST_AUTO_TEST_CASE(empty_and_repeated_names_are_refused) {
    BOOST_CHECK_EXCEPTION((name_index{{"a", ""}}), bad_argument, says{"needs a name"});
    BOOST_CHECK_EXCEPTION((name_index{{"a", "b", "a"}}), bad_argument, says{"'a' is there twice"});
}

BOOST_AUTO_TEST_CASE(typing_errors_come_before_equal_endings) {
    name_index const index{{"model.layers.0.mlp.weight", "layers.0.mlp.weigth", "other.bias",
                            "deep.model.layers.0.mlp.weight"}};
    BOOST_TEST(index.nearest("layers.0.mlp.weight") ==
                   (names{"layers.0.mlp.weigth", "model.layers.0.mlp.weight",
                          "deep.model.layers.0.mlp.weight"}),
               boost::test_tools::per_element());
    BOOST_TEST(index.nearest("layers.0.mlp.weight", 1) == (names{"layers.0.mlp.weigth"}),
               boost::test_tools::per_element());
    BOOST_TEST(index.nearest("nothing.like.it").empty());
    BOOST_TEST(index.nearest("layers.0.mlp.wXXXXh").empty());  // four errors are too many
    BOOST_TEST(name_index{{}}.nearest("w").empty());
}

BOOST_AUTO_TEST_CASE(nearest_knows_the_renaming_rules) {
    name_index const index{{"model.layers.0.gate"}, name_map{}.prefix("trainer.", "model.")};
    BOOST_TEST(index.nearest("trainer.layers.0.gats") == (names{"model.layers.0.gate"}),
               boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(b35_all_but_one_of_113_names_unknown_is_told_with_count_and_first_names) {
    names here;
    names announced{"lm_head.weight"};
    for (int i = 0; i < 112; ++i) {
        here.push_back("model.layers." + std::to_string(i) + ".weight");
        announced.push_back("transformer.h." + std::to_string(i) + ".weight");
    }
    here.push_back("lm_head.weight");
    name_index const plain{here};
    BOOST_TEST(plain.unknown(announced).size() == 112U);
    BOOST_TEST(plain.objection(announced).value().starts_with(
        "112 of 113 announced names are unknown here: 'transformer.h.0.weight' (near: "
        "'model.layers.0.weight'"));
    BOOST_TEST(plain.objection(announced).value().ends_with(", ..."));
    name_index const renamed{here, name_map{}.prefix("transformer.h.", "model.layers.")};
    BOOST_TEST(!renamed.objection(announced).has_value());
    BOOST_TEST(renamed.unknown(announced).empty());
    BOOST_TEST(renamed.find("transformer.h.7.weight").value() == 7U);
}

BOOST_AUTO_TEST_CASE(b38_an_extra_prefix_is_mapped_or_told_with_the_nearest_names) {
    name_index const plain{{"model.x", "model.y", "other.z"}};
    BOOST_TEST(
        plain.objection({"model.language_model.x"}).value() ==
        "1 of 1 announced names are unknown here: 'model.language_model.x' (near: 'model.x')");
    name_index const renamed{{"model.x", "model.y"},
                             name_map{}.prefix("model.language_model.", "model.")};
    BOOST_TEST(!renamed.objection({"model.language_model.x", "model.y"}).has_value());
    name_index const moved{{"visual.x"}, name_map{}.function([](std::string_view name) {
                               return name == "model.vision.x" ? std::string{"visual.x"}
                                                               : std::string{name};
                           })};
    BOOST_TEST(moved.find("model.vision.x").value() == 0U);
}

BOOST_AUTO_TEST_CASE(an_index_in_front_of_a_layout_table_finds_its_resolutions) {
    layout_table table;
    table.add(layouts::fused(0, {layouts::whole({"model.w1", dtype::bfloat16, {2, 2}}),
                                 layouts::whole({"model.w3", dtype::bfloat16, {2, 2}})}));
    name_index const index{table.names(), name_map{}.prefix("policy.", "model.")};
    for (auto const* announced : {"policy.w3", "model.w3"}) {
        auto const& found = table.resolutions()[index.find(announced).value()];
        BOOST_TEST(found.expected.name == "model.w3");
        BOOST_TEST(found.regions[0].first_element == 4U);
    }
}

/// The textbook distance, with no band.
std::size_t full_distance(std::string const& a, std::string const& b) {
    std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
    for (std::size_t i = 0; i <= a.size(); ++i) {
        for (std::size_t j = 0; j <= b.size(); ++j) {
            if (i == 0 || j == 0) {
                d[i][j] = i + j;
            } else {
                d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1,
                                    d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0U : 1U)});
            }
        }
    }
    return d[a.size()][b.size()];
}

BOOST_AUTO_TEST_CASE(edit_distances_within_the_limit_are_exact) {
    std::mt19937 random{5};
    auto const text = [&random] {
        std::string t;
        for (auto n = random() % 9; n > 0; --n) t += static_cast<char>('a' + random() % 3);
        return t;
    };
    for (int i = 0; i < 20000; ++i) {
        auto const a = text();
        auto const b = text();
        auto const limit = static_cast<std::size_t>(random() % 5);
        BOOST_REQUIRE_EQUAL(detail::edit_distance(a, b, limit),
                            std::min(full_distance(a, b), limit + 1));
    }
}

BOOST_AUTO_TEST_CASE(common_endings_are_counted_in_whole_components) {
    BOOST_TEST(detail::common_suffix("a.b.c", "x.b.c") == 3U);
    BOOST_TEST(detail::common_suffix("ab.c", "b.c") == 1U);
    BOOST_TEST(detail::common_suffix("m.b.c", "b.c") == 3U);
    BOOST_TEST(detail::common_suffix("a.b", "a.b") == 3U);
    BOOST_TEST(detail::common_suffix("ab", "b") == 0U);
    BOOST_TEST(detail::common_suffix("", "b") == 0U);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weightcast::test
