// SPDX-License-Identifier: Apache-2.0
// B12: several trainer ranks each opened a group to one receiver; the later init replaced the earlier one
// in silence, and both sides waited on different groups.
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <vector>

#include <support/remote_rank.hpp>

namespace {

using namespace weightcast;
using namespace weightcast::test;

BOOST_AUTO_TEST_SUITE(b12)

bool has(std::string const& text, std::string const& part) {
    return text.find(part) != std::string::npos;
}

/// The receiver joins a sender's group as rank 1.
gloo_communicator joined_to(remote_rank& sender, std::string const& name) {
    sender.join("127.0.0.1:0", name, 0, 2);
    auto const listening = sender.answer();
    BOOST_REQUIRE(listening.starts_with("listening "));
    auto receiver =
        gloo_communicator::join({.name = name, .rank = 1, .size = 2, .at = listening.substr(10)});
    BOOST_REQUIRE(sender.answer() == "joined");
    return receiver;
}

BOOST_AUTO_TEST_CASE(b12_groups_of_different_names_live_side_by_side) {
    remote_rank first_sender;
    remote_rank second_sender;
    auto first = joined_to(first_sender, "stage-0");
    auto second = joined_to(second_sender, "stage-1");
    second_sender.broadcast(0, 10'000, 2);
    first_sender.broadcast(0, 10'000, 1);
    BOOST_TEST(broadcast_once(first, 0, 10'000, 1, patient()) == "ok");
    BOOST_TEST(broadcast_once(second, 0, 10'000, 2, patient()) == "ok");
    BOOST_TEST(first_sender.answer() == "ok");
    BOOST_TEST(second_sender.answer() == "ok");
}

BOOST_AUTO_TEST_CASE(b12_the_same_name_replaces_the_old_group_aloud) {
    std::mutex mutex;
    std::vector<std::string> lines;
    scoped_log_sink const sink{[&](std::string_view line) {
        std::lock_guard const lock{mutex};
        lines.emplace_back(line);
    }};
    remote_rank first_sender;
    remote_rank second_sender;
    auto first = joined_to(first_sender, "weights");
    first_sender.broadcast(0, 10'000, 1);  // it waits for a receiver that will not call
    auto second = joined_to(second_sender, "weights");

    auto const told = first_sender.answer();
    BOOST_TEST(has(told, "failed peer_error suspect 1"), told);
    BOOST_TEST(has(told, "replaced"), told);
    auto const here = broadcast_once(first, 0, 10'000, 1, patient());
    BOOST_TEST(has(here, "failed group_aborted"), here);
    {
        std::lock_guard const lock{mutex};
        BOOST_REQUIRE(lines.size() == 1U);
        BOOST_TEST(has(lines.front(), "'weights', rank 1"), lines.front());
        BOOST_TEST(has(lines.front(), "aborted and replaced by"), lines.front());
    }
    second_sender.broadcast(0, 10'000, 2);
    BOOST_TEST(broadcast_once(second, 0, 10'000, 2, patient()) == "ok");
    BOOST_TEST(second_sender.answer() == "ok");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
