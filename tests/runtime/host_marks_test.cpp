// SPDX-License-Identifier: Apache-2.0
#include <weightcast/runtime/detail/host_marks.hpp>

#include <atomic>
#include <chrono>
#include <set>
#include <thread>
#include <vector>

#include <boost/test/unit_test.hpp>

namespace {

using namespace weightcast;
using namespace weightcast::detail;

deadline in_a_minute() { return deadline::after(std::chrono::minutes{1}); }

BOOST_AUTO_TEST_SUITE(host_marks_suite)

BOOST_AUTO_TEST_CASE(a_mark_is_reached_once_and_for_all) {
    host_mark mark;
    BOOST_TEST(mark.reached(0));
    BOOST_TEST(!mark.reached(1));
    mark.reach(1);
    BOOST_TEST(mark.reached(1));
    BOOST_TEST(mark.reached_unordered(1));
    BOOST_TEST(!mark.reached(2));
    mark.reach(2);
    BOOST_TEST(mark.reached(1));  // an earlier point stays reached
    BOOST_TEST(mark.reached(2));
    BOOST_TEST(mark.wait(2, deadline::after(std::chrono::seconds{-1})));
    BOOST_TEST(!mark.wait(3, deadline::after(std::chrono::milliseconds{10})));
    BOOST_TEST(mark.reached(2));  // the sleeper's trace is no generation
    BOOST_TEST(!mark.reached(3));
    mark.reach(3);
    BOOST_TEST(mark.reached(3));
}

BOOST_AUTO_TEST_CASE(waiters_sleep_and_wake) {
    host_mark mark;
    std::atomic<int> woken{0};
    std::vector<std::thread> waiters;
    for (std::uint64_t generation = 1; generation <= 4; ++generation) {
        waiters.emplace_back([&, generation] {
            if (mark.wait(generation, generation % 2 == 0 ? never : in_a_minute()))
                woken.fetch_add(1);
        });
    }
    for (std::uint64_t generation = 1; generation <= 4; ++generation) {
        std::this_thread::sleep_for(std::chrono::milliseconds{5});
        mark.reach(generation);
    }
    for (auto& t : waiters) t.join();
    BOOST_TEST(woken.load() == 4);
}

BOOST_AUTO_TEST_CASE(a_point_is_a_mark_and_a_generation_in_one_word) {
    BOOST_TEST(!host_point{}.recorded());
    for (std::uint32_t const index : {0U, 1U, 63U, (1U << 24U) - 1}) {
        for (std::uint64_t const generation : {std::uint64_t{1}, (std::uint64_t{1} << 40U) - 1}) {
            auto const point = host_point::of(index, generation);
            BOOST_TEST(point.recorded());
            BOOST_TEST(point.index() == index);
            BOOST_TEST(point.generation() == generation);
        }
    }
}

BOOST_AUTO_TEST_CASE(a_directory_finds_every_mark) {
    host_mark_directory directory;
    std::set<host_mark const*> all;
    for (std::uint32_t chunk = 0; chunk < 600; ++chunk) {  // more than one middle level
        auto const [marks, first] = directory.grow();
        BOOST_TEST(first == chunk * 64);
        for (std::uint32_t i = 0; i < 64; ++i) {
            if (&directory.at(first + i) != &(*marks)[i]) BOOST_ERROR("a mark is elsewhere");
            all.insert(&(*marks)[i]);
        }
    }
    BOOST_TEST(all.size() == 600U * 64U);
}

BOOST_AUTO_TEST_CASE(a_ring_gives_a_mark_again_only_when_it_is_reached) {
    host_mark_directory directory;
    host_mark_ring ring;
    std::set<host_mark const*> outstanding;
    std::vector<host_mark_ring::issued> points;
    for (int i = 0; i < 256; ++i) {  // four chunks
        auto const point = ring.take(directory);
        BOOST_TEST(&directory.at(point.point.index()) == point.mark);
        if (!outstanding.insert(point.mark).second) BOOST_ERROR("a mark is outstanding twice");
        points.push_back(point);
    }
    for (auto const& p : points) p.mark->reach(p.point.generation());
    // the longest unused comes first, and nothing grows any more
    for (int i = 0; i < 2'000; ++i) {
        auto const point = ring.take(directory);
        if (!outstanding.contains(point.mark)) BOOST_ERROR("the ring has grown");
        point.mark->reach(point.point.generation());
    }
}

BOOST_AUTO_TEST_CASE(a_ring_that_grows_keeps_its_order) {
    host_mark_directory directory;
    host_mark_ring ring;
    std::vector<host_mark_ring::issued> points;
    for (int i = 0; i < 100; ++i) points.push_back(ring.take(directory));  // 28 of 128 are unused
    for (int i = 0; i < 50; ++i) points[static_cast<std::size_t>(i)].mark->reach(1);
    // a stream runs in order: what is taken next is reached or unused, never one of the 50 outstanding
    for (int i = 0; i < 78; ++i) {
        auto const point = ring.take(directory);
        for (std::size_t k = 50; k < 100; ++k) {
            if (points[k].mark == point.mark) BOOST_ERROR("an outstanding mark is given again");
        }
    }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
