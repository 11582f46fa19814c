// SPDX-License-Identifier: Apache-2.0
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>
#include <vector>

#include <weightcast/comm/detail/broadcast_route.hpp>

BOOST_AUTO_TEST_SUITE(broadcast_route)

namespace detail = weightcast::detail;

namespace {

/// Hops from the root to each rank; -1 where the routes do not lead.
template <class Route>
std::vector<int> hops(int size, int root, Route route) {
    std::vector<int> depth(static_cast<std::size_t>(size), -1);
    depth[static_cast<std::size_t>(root)] = 0;
    std::vector<int> queue{root};
    for (std::size_t i = 0; i < queue.size(); ++i) {
        for (int const to : route(queue[i]).targets) {
            auto& there = depth[static_cast<std::size_t>(to)];
            BOOST_REQUIRE_MESSAGE(there == -1, "rank " << to << " is reached twice");
            there = depth[static_cast<std::size_t>(queue[i])] + 1;
            queue.push_back(to);
        }
    }
    return depth;
}

template <class Route>
void check_routes(int size, int root, int most_hops, Route route) {
    auto const depth = hops(size, root, route);
    for (int rank = 0; rank < size; ++rank) {
        auto const way = route(rank);
        BOOST_REQUIRE(depth[static_cast<std::size_t>(rank)] >= 0);
        BOOST_REQUIRE(depth[static_cast<std::size_t>(rank)] <= most_hops);
        if (rank == root) {
            BOOST_REQUIRE(way.source == -1);
            continue;
        }
        auto const from = route(way.source).targets;
        BOOST_REQUIRE(std::ranges::count(from, rank) == 1);
    }
}

}  // namespace

BOOST_AUTO_TEST_CASE(trees_reach_every_rank_once_in_logarithmic_steps) {
    for (int size = 1; size <= 40; ++size) {
        int const steps = static_cast<int>(std::ceil(std::log2(size)));
        for (int root = 0; root < size; ++root) {
            check_routes(size, root, steps,
                         [&](int rank) { return detail::tree_route(rank, root, size); });
        }
    }
    check_routes(1000, 371, 10, [](int rank) { return detail::tree_route(rank, 371, 1000); });
}

BOOST_AUTO_TEST_CASE(pipelines_reach_every_rank_once) {
    for (int size = 1; size <= 40; ++size) {
        for (int root = 0; root < size; ++root) {
            check_routes(size, root, size,
                         [&](int rank) { return detail::pipeline_route(rank, root, size); });
        }
    }
}

BOOST_AUTO_TEST_CASE(no_rank_of_a_pipeline_sends_more_than_its_part) {
    for (int size = 2; size <= 20; ++size) {
        for (int rank = 0; rank < size; ++rank) {
            auto const way = detail::pipeline_route(rank, 0, size);
            std::size_t const most =
                size - 1 <= detail::most_fanned_out ? detail::most_fanned_out : 1;
            BOOST_TEST(way.targets.size() <= most);
        }
    }
}

BOOST_AUTO_TEST_CASE(positions_turn_around_the_root) {
    BOOST_TEST(detail::position_from(0, 3, 5) == 2);
    BOOST_TEST(detail::position_from(3, 3, 5) == 0);
    for (int root = 0; root < 5; ++root) {
        for (int rank = 0; rank < 5; ++rank) {
            BOOST_TEST(detail::rank_at(detail::position_from(rank, root, 5), root, 5) == rank);
        }
    }
}

BOOST_AUTO_TEST_SUITE_END()
