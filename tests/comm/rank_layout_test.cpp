// SPDX-License-Identifier: Apache-2.0
#include <boost/test/unit_test.hpp>

#include <array>
#include <set>
#include <string>
#include <vector>

#include <support/says.hpp>
#include <weightcast/comm/rank_layout.hpp>

BOOST_AUTO_TEST_SUITE(rank_layout)

namespace wc = weightcast;
using weightcast::test::says;

BOOST_AUTO_TEST_CASE(ranks_follow_the_formula) {
    wc::rank_layout const layout{.rank_offset = 3, .world_per_dp = 4, .replicas = 5};
    for (int dp = 0; dp < 5; ++dp) {
        for (int within = 0; within < 4; ++within) {
            BOOST_TEST(layout.rank_of(dp, within) == 3 + dp * 4 + within);
        }
    }
    BOOST_TEST(layout.receivers() == 20);
    BOOST_TEST(layout.world_size() == 23);
}

BOOST_AUTO_TEST_CASE(every_layout_fills_its_world_without_collision) {
    for (int offset = 1; offset < 4; ++offset) {
        for (int world = 1; world < 5; ++world) {
            for (int replicas = 1; replicas < 5; ++replicas) {
                wc::rank_layout const layout{offset, world, replicas};
                auto claims = wc::claims_of(layout, "engine");
                for (int trainer = 0; trainer < offset; ++trainer) {
                    claims.push_back({"trainer " + std::to_string(trainer), trainer});
                }
                BOOST_CHECK_NO_THROW(wc::check_ranks(claims, layout.world_size()));
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(indices_outside_the_layout_are_refused) {
    wc::rank_layout const layout{.rank_offset = 1, .world_per_dp = 2, .replicas = 2};
    BOOST_CHECK_EXCEPTION(layout.rank_of(2, 0), wc::bad_argument, says("dp_index 2"));
    BOOST_CHECK_EXCEPTION(layout.rank_of(-1, 0), wc::bad_argument, says("dp_index -1"));
    BOOST_CHECK_EXCEPTION(layout.rank_of(0, 2), wc::bad_argument, says("rank_within_dp 2"));
    BOOST_CHECK_EXCEPTION(layout.rank_of(0, -1), wc::bad_argument, says("rank_within_dp -1"));
}

BOOST_AUTO_TEST_CASE(a_collision_names_both) {
    std::vector<wc::rank_claim> const claims{{"trainer", 0}, {"engine a", 1}, {"engine b", 1}};
    BOOST_CHECK_EXCEPTION(wc::check_ranks(claims, 3), wc::bad_argument,
                          says("engine a and engine b both claim rank 1"));
}

BOOST_AUTO_TEST_CASE(a_claim_outside_the_world_and_a_gap_are_named) {
    std::vector<wc::rank_claim> outside{{"trainer", 0}, {"engine a", 2}};
    BOOST_CHECK_EXCEPTION(wc::check_ranks(outside, 2), wc::bad_argument,
                          says("engine a claims rank 2"));
    outside.back().rank = -1;
    BOOST_CHECK_EXCEPTION(wc::check_ranks(outside, 2), wc::bad_argument, says("rank -1"));
    std::vector<wc::rank_claim> const gap{{"trainer", 0}, {"engine a", 2}};
    BOOST_CHECK_EXCEPTION(wc::check_ranks(gap, 3), wc::bad_argument, says("nobody claims rank 1"));
    std::vector<wc::rank_claim> const no_root{{"engine a", 1}};
    BOOST_CHECK_EXCEPTION(wc::check_ranks(no_root, 2), wc::bad_argument,
                          says("nobody claims rank 0"));
    std::vector<wc::rank_claim> const no_last{{"trainer", 0}};
    BOOST_CHECK_EXCEPTION(wc::check_ranks(no_last, 2), wc::bad_argument,
                          says("nobody claims rank 1"));
}

BOOST_AUTO_TEST_CASE(an_empty_world_is_refused) {
    BOOST_CHECK_THROW(wc::check_ranks({}, 0), wc::bad_argument);
    BOOST_CHECK_THROW(wc::check_ranks({}, -3), wc::bad_argument);
    BOOST_CHECK_EXCEPTION(wc::check_ranks({}, 1), wc::bad_argument, says("nobody claims rank 0"));
}

BOOST_AUTO_TEST_CASE(positions_count_within_the_engine) {
    std::array const members{4, 5, 6, 7};
    for (int i = 0; i < 4; ++i) BOOST_TEST(wc::position_within(4 + i, members) == i);
    BOOST_CHECK_EXCEPTION(wc::position_within(3, members), wc::bad_argument,
                          says("process rank 3"));
    std::array const shuffled{9, 2, 5};
    BOOST_TEST(wc::position_within(2, shuffled) == 1);
    std::array const twice{4, 5, 4};
    BOOST_CHECK_EXCEPTION(wc::position_within(4, twice), wc::bad_argument, says("listed twice"));
}

BOOST_AUTO_TEST_SUITE_END()
