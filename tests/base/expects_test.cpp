// SPDX-License-Identifier: Apache-2.0
#include <weightcast/base/expects.hpp>

#include <boost/test/unit_test.hpp>

#include "support/says.hpp"

namespace {

using namespace weightcast;
using test::says;

int halve(int value) {
    WEIGHTCAST_EXPECTS(value % 2 == 0, "the value is even");
    return value / 2;
}

constexpr int constant_halve(int value) {
    WEIGHTCAST_EXPECTS(value % 2 == 0, "the value is even");
    return value / 2;
}
static_assert(constant_halve(4) == 2);

BOOST_AUTO_TEST_SUITE(expects_suite)

BOOST_AUTO_TEST_CASE(a_kept_contract_costs_nothing_and_passes) { BOOST_TEST(halve(4) == 2); }

BOOST_AUTO_TEST_CASE(a_broken_contract_says_its_sentence_and_where) {
    BOOST_CHECK_EXCEPTION(halve(3), contract_violation, says({"halve", "the value is even"}));
    BOOST_TEST(halve(8) == 4);  // what was refused left nothing behind
}

BOOST_AUTO_TEST_CASE(the_condition_is_evaluated_once_and_is_one_expression) {
    int calls = 0;
    auto const counted = [&] { return ++calls == 1; };
    if (calls == 0)
        WEIGHTCAST_EXPECTS(counted(), "called once");
    else
        BOOST_FAIL("the macro swallowed an else");
    BOOST_TEST(calls == 1);
}

BOOST_AUTO_TEST_CASE(what_converts_explicitly_to_bool_will_do) {
    struct handle {
        explicit operator bool() const { return valid; }
        bool valid;
    };
    BOOST_CHECK_NO_THROW(WEIGHTCAST_EXPECTS(handle{true}, "the handle is valid"));
    BOOST_CHECK_THROW(WEIGHTCAST_EXPECTS(handle{false}, "the handle is valid"), contract_violation);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
