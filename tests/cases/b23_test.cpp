// SPDX-License-Identifier: Apache-2.0
// B23: each create/destroy cycle left communicators behind.
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <cstddef>
#include <string>
#include <thread>

#include <comm/gloo_makers.hpp>
#include <laws/communicator_laws.hpp>
#include <support/process_resources.hpp>

namespace {

using namespace weightcast;
using namespace weightcast::test;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(b23)

/// Threads of streams end by themselves, a moment after their streams.
std::size_t settled_threads(std::size_t wanted) {
    auto const until = deadline::after(30s);
    auto now = entries_of("/proc/self/task");
    while (now != wanted && !until.expired()) {
        std::this_thread::sleep_for(5ms);
        now = entries_of("/proc/self/task");
    }
    return now;
}

/// The number of threads once it has stood still: those of earlier tests have ended by then.
std::size_t threads_at_rest() {
    auto const until = deadline::after(30s);
    auto at_rest = entries_of("/proc/self/task");
    for (int same = 0; same < 100 && !until.expired(); ++same) {
        std::this_thread::sleep_for(5ms);
        auto const now = entries_of("/proc/self/task");
        if (now != at_rest) same = 0;
        at_rest = now;
    }
    return at_rest;
}

BOOST_AUTO_TEST_CASE(b23_two_hundred_cycles_leave_nothing_behind) {
    gloo_thread_maker maker;
    std::size_t descriptors = 0;
    std::size_t threads = 0;
    std::size_t memory = 0;
    auto const before = threads_at_rest();
    for (int cycle = 1; cycle <= 200; ++cycle) {
        auto const outcomes =
            maker.run({.size = 2, .name = "b23"}, [](gloo_communicator& c) -> std::string {
                rank_memory<gloo_communicator> tensor{c, 100'000,
                                                      static_cast<std::uint64_t>(c.rank())};
                enqueue_broadcast(c, tensor, 0, patiently());
                finish(c, patiently());
                return tensor.holds(pattern(100'000, 0)) ? "" : "wrong bytes";
            });
        for (auto const& outcome : outcomes) BOOST_REQUIRE(outcome == "");
        if (cycle != 10) continue;
        threads = settled_threads(before);
        descriptors = entries_of("/proc/self/fd");
        memory = process_resources::now().resident_bytes;
    }
    BOOST_TEST(settled_threads(threads) == threads);
    BOOST_TEST(entries_of("/proc/self/fd") == descriptors);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    BOOST_TEST(process_resources::now().resident_bytes <
               memory + (std::size_t{8} << 20U));  // what allocators keep, not 190 groups
#else
    static_cast<void>(memory);  // sanitizers keep freed memory
#endif
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
