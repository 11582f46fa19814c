// SPDX-License-Identifier: Apache-2.0
// B08: every data-parallel replica computed the same rank in the transfer group.
#include <boost/test/unit_test.hpp>

#include <vector>

#include <support/says.hpp>
#include <weightcast/comm/rank_layout.hpp>

BOOST_AUTO_TEST_SUITE(b08)

namespace wc = weightcast;

BOOST_AUTO_TEST_CASE(b08_replicas_have_distinct_ranks) {
    wc::rank_layout const layout{.rank_offset = 1, .world_per_dp = 2, .replicas = 2};
    std::vector<int> ranks;
    for (int dp = 0; dp < 2; ++dp) {
        for (int tp = 0; tp < 2; ++tp) ranks.push_back(layout.rank_of(dp, tp));
    }
    BOOST_TEST(ranks == (std::vector<int>{1, 2, 3, 4}), boost::test_tools::per_element());
    auto claims = wc::claims_of(layout, "engine");
    claims.push_back({"trainer", 0});
    BOOST_CHECK_NO_THROW(wc::check_ranks(claims, 5));
}

BOOST_AUTO_TEST_CASE(b08_two_claims_of_one_rank_are_refused_naming_both) {
    // each replica believes that it is the first, as in the report
    wc::rank_layout const believed{.rank_offset = 1, .world_per_dp = 2, .replicas = 1};
    std::vector<wc::rank_claim> claims{{"trainer", 0}};
    for (auto const* replica : {"replica 0", "replica 1"}) {
        for (auto& claim : wc::claims_of(believed, replica)) claims.push_back(claim);
    }
    BOOST_CHECK_EXCEPTION(wc::check_ranks(claims, 5), wc::bad_argument,
                          weightcast::test::says(
                              "replica 0 dp 0 rank 0 and replica 1 dp 0 rank 0 both claim rank 1"));
}

BOOST_AUTO_TEST_SUITE_END()
