// SPDX-License-Identifier: Apache-2.0
// B10: a process-wide rank was used where a rank inside the group was needed.
#include <boost/test/unit_test.hpp>

#include <array>
#include <vector>

#include <support/says.hpp>
#include <weightcast/comm/rank_layout.hpp>

BOOST_AUTO_TEST_SUITE(b10)

namespace wc = weightcast;

BOOST_AUTO_TEST_CASE(b10_transfer_ranks_count_within_the_engine) {
    std::array const members{4, 5, 6, 7};
    wc::rank_layout const layout{.rank_offset = 9, .world_per_dp = 4, .replicas = 1};
    std::vector<int> ranks;
    for (int const process_rank : members) {
        ranks.push_back(layout.rank_of(0, wc::position_within(process_rank, members)));
    }
    BOOST_TEST(ranks == (std::vector<int>{9, 10, 11, 12}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(b10_a_process_wide_rank_is_refused) {
    wc::rank_layout const layout{.rank_offset = 9, .world_per_dp = 4, .replicas = 1};
    for (int const process_rank : {4, 5, 6, 7}) {
        BOOST_CHECK_EXCEPTION(layout.rank_of(0, process_rank), wc::bad_argument,
                              weightcast::test::says("it counts within the engine"));
    }
}

BOOST_AUTO_TEST_SUITE_END()
