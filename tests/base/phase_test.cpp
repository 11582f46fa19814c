// SPDX-License-Identifier: Apache-2.0
#include <weightcast/base/phase.hpp>

#include <string>

#include <boost/test/unit_test.hpp>

namespace {

using namespace weightcast;

BOOST_AUTO_TEST_SUITE(phase_suite)

BOOST_AUTO_TEST_CASE(the_words_are_those_of_flags_and_messages) {
    static_assert(to_string(phase::connect) == "connect");
    static_assert(to_string(phase::preflight) == "preflight");
    static_assert(to_string(phase::payload) == "payload");
    static_assert(to_string(phase::vote) == "vote");
    static_assert(to_string(phase::commit) == "commit");
}

BOOST_AUTO_TEST_CASE(each_word_reads_back) {
    for (auto const p :
         {phase::connect, phase::preflight, phase::payload, phase::vote, phase::commit}) {
        BOOST_CHECK(parse_phase(to_string(p)) == p);
    }
}

BOOST_AUTO_TEST_CASE(other_words_are_no_phase) {
    for (auto const* const text : {"", "Connect", "connect ", "pay", "payloads", "5"}) {
        BOOST_TEST(!parse_phase(text).has_value());
    }
}

BOOST_AUTO_TEST_CASE(a_number_from_outside_reads_no_foreign_memory) {
    BOOST_TEST(to_string(static_cast<phase>(5)) == "unknown phase");
    BOOST_TEST(to_string(static_cast<phase>(255)) == "unknown phase");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
