// SPDX-License-Identifier: Apache-2.0
// B23: each create/destroy cycle left communicators behind.
#include <boost/test/unit_test.hpp>

#include <dirent.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <fstream>
#include <string>
#include <thread>

#include <comm/gloo_makers.hpp>
#include <laws/communicator_laws.hpp>

namespace {

using namespace weightcast;
using namespace weightcast::test;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(b23)

std::size_t entries_of(char const* directory) {
    std::size_t entries = 0;
    DIR* const open = opendir(directory);
    while (open != nullptr && readdir(open) != nullptr) ++entries;
    if (open != nullptr) closedir(open);
    return entries;
}
std::size_t resident_bytes() {
    std::ifstream statm{"/proc/self/statm"};
    std::size_t total = 0;
    std::size_t resident = 0;
    statm >> total >> resident;
    return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}
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

BOOST_AUTO_TEST_CASE(b23_two_hundred_cycles_leave_nothing_behind) {
    gloo_thread_maker maker;
    std::size_t descriptors = 0;
    std::size_t threads = 0;
    std::size_t memory = 0;
    auto const before = entries_of("/proc/self/task");
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
        memory = resident_bytes();
    }
    BOOST_TEST(settled_threads(threads) <= threads);  // fewer: one of another test had not ended
    BOOST_TEST(entries_of("/proc/self/fd") == descriptors);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    BOOST_TEST(resident_bytes() <
               memory + (std::size_t{8} << 20U));  // what allocators keep, not 190 groups
#else
    static_cast<void>(memory);  // sanitizers keep freed memory
#endif
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
