// SPDX-License-Identifier: Apache-2.0
#include <boost/test/unit_test.hpp>

#include <weightcast/model/weight_version.hpp>

namespace weightcast::test {
namespace {

BOOST_AUTO_TEST_SUITE(weight_version_suite)

BOOST_AUTO_TEST_CASE(one_never_set_prints_as_default_but_no_label_equals_it) {
    weight_version const never{};
    BOOST_TEST(to_string(never) == "default");
    BOOST_TEST(!never.is_set());
    weight_version const labelled{1, "default"};
    BOOST_TEST(to_string(labelled) == "default");
    BOOST_TEST(labelled.is_set());
    BOOST_TEST((never != labelled));
    BOOST_TEST((never != weight_version{0, "default"}));
}

BOOST_AUTO_TEST_CASE(a_label_is_printed_before_the_number) {
    BOOST_TEST(to_string(weight_version{7, {}}) == "7");
    BOOST_TEST(to_string(weight_version{7, "step-900"}) == "step-900");
    BOOST_TEST(to_string(weight_version{7, ""}) == "");
}

BOOST_AUTO_TEST_CASE(number_and_label_make_the_version) {
    BOOST_TEST((weight_version{7, "a"} == weight_version{7, "a"}));
    BOOST_TEST((weight_version{7, "a"} != weight_version{8, "a"}));
    BOOST_TEST((weight_version{7, "a"} != weight_version{7, "b"}));
    BOOST_TEST((weight_version{7, "a"} != weight_version{7, {}}));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weightcast::test
