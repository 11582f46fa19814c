// SPDX-License-Identifier: Apache-2.0
// B19: a barrier kept in the shared store re-used one key, so the second update passed it early or failed.
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <chrono>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <weightcast/comm/rendezvous.hpp>

BOOST_AUTO_TEST_SUITE(b19)

namespace wc = weightcast;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_CASE(b19_barriers_of_100_updates_hold_and_leave_no_keys) {
    constexpr int ranks = 3;
    constexpr int updates = 100;
    auto const until = wc::deadline::after(120s);
    wc::rendezvous_server const server{"127.0.0.1:0"};
    wc::rendezvous_client watcher{server.at(), until};
    std::atomic<int> started{0};
    std::atomic<int> finished{0};
    std::atomic<int> early{0};
    std::atomic<std::uint64_t> most_keys{0};
    std::vector<std::string> problems(ranks);
    std::vector<std::thread> threads;
    for (int rank = 0; rank < ranks; ++rank) {
        threads.emplace_back([&, rank] {
            try {
                wc::rendezvous_client client{server.at(), until};
                wc::detail::join_request wish{"g", rank, ranks, {}, "rank " + std::to_string(rank),
                                              0};
                client.join(wish, until);
                std::mt19937 random{static_cast<unsigned>(rank)};
                for (int update = 0; update < updates; ++update) {
                    std::this_thread::sleep_for(std::chrono::microseconds{random() % 2000});
                    ++started;
                    client.barrier("start", until);
                    if (started.load() < ranks * (update + 1)) ++early;
                    std::this_thread::sleep_for(std::chrono::microseconds{random() % 2000});
                    ++finished;
                    client.barrier("finish", until);
                    if (finished.load() < ranks * (update + 1)) ++early;
                    auto const keys = client.counts(until).keys;
                    if (keys > most_keys.load()) most_keys = keys;
                }
            } catch (std::exception const& problem) {
                problems[static_cast<std::size_t>(rank)] = problem.what();
            }
        });
    }
    for (auto& thread : threads) thread.join();
    for (auto const& problem : problems) BOOST_TEST(problem == "");
    BOOST_TEST(early.load() == 0);
    BOOST_TEST(most_keys.load() == 0U);
    BOOST_TEST(watcher.counts(until).keys == 0U);
}

BOOST_AUTO_TEST_SUITE_END()
