// SPDX-License-Identifier: Apache-2.0
#include <boost/test/unit_test.hpp>

#include <weightcast/model/layer_group.hpp>

namespace {

using weightcast::layer_group_of;

BOOST_AUTO_TEST_SUITE(layer_group)

BOOST_AUTO_TEST_CASE(the_outermost_integer_segment_ends_the_group) {
    BOOST_TEST(layer_group_of("model.layers.12.mlp.experts.3.w1") == "model.layers.12");
    BOOST_TEST(layer_group_of("encoder.layer.0.attention.self.query.weight") == "encoder.layer.0");
    BOOST_TEST(layer_group_of("h.7") == "h.7");
    BOOST_TEST(layer_group_of("3.weight") == "3");
    BOOST_TEST(layer_group_of("0") == "0");
}

BOOST_AUTO_TEST_CASE(names_without_one_have_no_group) {
    for (auto const* name : {"", "lm_head.weight", "weight", "model.layers.w1", "a.1b.c", "a.b2",
                             ".", "..", "a..b", "a.-1.b", "a.+1.b", "a. 1.b"}) {
        BOOST_TEST(layer_group_of(name).empty(), name);
    }
}

BOOST_AUTO_TEST_CASE(empty_segments_are_passed_over) {
    BOOST_TEST(layer_group_of(".4.w") == ".4");
    BOOST_TEST(layer_group_of("a..5") == "a..5");
    BOOST_TEST(layer_group_of("a.6.") == "a.6");
}

BOOST_AUTO_TEST_CASE(leading_zeros_and_long_numbers_are_integers) {
    BOOST_TEST(layer_group_of("a.007.w") == "a.007");
    BOOST_TEST(layer_group_of("a.99999999999999999999999.w") == "a.99999999999999999999999");
}

BOOST_AUTO_TEST_CASE(it_works_at_compile_time) {
    static_assert(layer_group_of("model.layers.1.w") == "model.layers.1");
    static_assert(layer_group_of("norm").empty());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
