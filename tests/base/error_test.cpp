// SPDX-License-Identifier: Apache-2.0
#include <weightcast/base/error.hpp>

#include <concepts>
#include <source_location>
#include <string>
#include <type_traits>

#include <boost/mpl/list.hpp>
#include <boost/test/unit_test.hpp>

#include "support/says.hpp"

namespace {

using namespace weightcast;
using test::says;

using kinds = boost::mpl::list<bad_argument, contract_violation, bad_input, device_mismatch,
                               lifecycle_error, refused_update, timeout, peer_error, group_aborted,
                               out_of_memory, system_failure>;

BOOST_AUTO_TEST_SUITE(error_suite)

BOOST_AUTO_TEST_CASE_TEMPLATE(each_kind_is_an_error_with_its_own_line, Kind, kinds) {
    static_assert(std::derived_from<Kind, error>);
    static_assert(std::is_nothrow_copy_constructible_v<std::runtime_error>);
    auto const line = std::source_location::current().line() + 2;
    try {
        throw Kind{"what came"};
    } catch (error const& e) {
        BOOST_TEST(std::string{e.what()} == "what came");
        BOOST_TEST(e.where().line() == line);
        BOOST_CHECK(e.facts() == failure_facts{});
    }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(no_kind_is_another, Kind, kinds) {
    static_assert(!std::derived_from<Kind, bad_argument> || std::same_as<Kind, bad_argument>);
    BOOST_CHECK_THROW(throw Kind{"x"}, Kind);
}

BOOST_AUTO_TEST_CASE(an_error_keeps_its_facts) {
    failure_facts facts{phase::payload, "layer.0.weight", 1, 0, 12, "float32", "float16"};
    error const e{"it failed", facts};
    BOOST_CHECK(e.facts() == facts);
    auto const copy = e;
    BOOST_CHECK(copy.facts() == facts);
    BOOST_TEST(std::string{copy.what()} == "it failed");
    facts.rank = 2;
    BOOST_CHECK(!(e.facts() == facts));
}

BOOST_AUTO_TEST_CASE(a_message_has_one_form) {
    BOOST_TEST(describe("the peer is gone", {phase::payload, "w", 1, 0, 12, {}, {}}) ==
               "payload: tensor 'w': the peer is gone (rank 1, suspected rank 0, 12 bytes done)");
    BOOST_TEST(describe("no peer", {}) ==
               "connect: no peer (rank none, suspected rank unknown, 0 bytes done)");
    BOOST_TEST(describe("types differ", {phase::preflight, "w", 2, -1, 0, "float32", "float16"}) ==
               "preflight: tensor 'w': types differ; expected float32, got float16 (rank 2, "
               "suspected rank unknown, 0 bytes done)");
}

BOOST_AUTO_TEST_CASE(fail_throws_that_form_with_the_facts_and_the_callers_line) {
    auto const line = std::source_location::current().line() + 2;
    try {
        fail<peer_error>("the peer is gone", {phase::vote, "w", 3, 1, 7, {}, {}});
    } catch (peer_error const& e) {
        BOOST_TEST(e.where().line() == line);
        BOOST_TEST(e.facts().suspect == 1);
        BOOST_CHECK(e.facts().where == phase::vote);
        BOOST_TEST(std::string{e.what()} ==
                   "vote: tensor 'w': the peer is gone (rank 3, suspected rank 1, 7 bytes done)");
    }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
