// SPDX-License-Identifier: Apache-2.0
// Processes that are killed in each phase of an update: every survivor returns in time with an error that names phase and
// rank, and serves the next update with a new process in the dead one's place.
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <support/update_fleet.hpp>

namespace weightcast::test {
namespace {

using namespace std::chrono_literals;
using clock_type = std::chrono::steady_clock;

constexpr auto connect_limit = 2000ms;
constexpr auto stall = update_fleet::stall;
constexpr auto margin = update_fleet::margin;

/// Kills `victim` when `stopper` has come to that point of an update.
void kill_in(std::string const& phase, int victim, int stopper) {
    BOOST_TEST_CONTEXT("rank " << victim << " is killed in " << phase) {
        update_fleet fleet;
        fleet.form();
        fleet.good_update(1);
        BOOST_REQUIRE(fleet.of(stopper).ask("stop " + phase) == "set");
        fleet.begin_update(2);
        BOOST_REQUIRE(fleet.of(stopper).line() == "at " + phase);
        std::this_thread::sleep_for(100ms);  // others come as far as they can
        auto const killed = clock_type::now();
        fleet.of(victim).kill();
        if (stopper != victim) fleet.of(stopper).tell("go");
        for (int const rank : fleet.survivors_of(victim)) {
            check_failure(fleet.of(rank).hear(), phase, victim, killed, stall);
            auto const state = fleet.of(rank).ask("state");
            bool const wrote = phase != "preflight" && rank != 0;
            auto const expected = (rank == 0 ? "acknowledged " : wrote ? "mixed " : "whole ");
            BOOST_TEST(state == expected + to_string(weight_version{1, {}}), state);
        }
        fleet.replace(victim);
        fleet.form();
        fleet.good_update(3);
    }
}

BOOST_AUTO_TEST_SUITE(kill)

BOOST_AUTO_TEST_CASE(a_sender_killed_in_preflight) { kill_in("preflight", 0, 1); }
BOOST_AUTO_TEST_CASE(a_receiver_killed_in_preflight) { kill_in("preflight", 2, 2); }
BOOST_AUTO_TEST_CASE(a_sender_killed_in_the_payload) { kill_in("payload", 0, 0); }
BOOST_AUTO_TEST_CASE(a_receiver_killed_in_the_payload) {
    kill_in("payload", 1, 1);
    kill_in("payload", 2, 2);
}
BOOST_AUTO_TEST_CASE(a_sender_killed_at_the_vote) { kill_in("vote", 0, 0); }
BOOST_AUTO_TEST_CASE(a_receiver_killed_at_the_vote) { kill_in("vote", 2, 2); }

BOOST_AUTO_TEST_CASE(
    a_rank_killed_between_vote_and_commit_costs_the_others_nothing_until_the_next_update) {
    for (int const victim : {0, 2}) {
        BOOST_TEST_CONTEXT("rank " << victim) {
            update_fleet fleet;
            fleet.form();
            fleet.good_update(1);
            BOOST_REQUIRE(fleet.of(victim).ask("stop commit") == "set");
            fleet.begin_update(2);
            BOOST_REQUIRE(fleet.of(victim).line() == "at commit");
            for (int const rank : fleet.survivors_of(victim)) {  // all voted: all may publish
                auto const said = fleet.of(rank).hear();
                BOOST_TEST(said.text == "ok 2", said.text);
            }
            auto const killed = clock_type::now();
            fleet.of(victim).kill();
            for (int const rank : fleet.survivors_of(victim)) fleet.of(rank).tell("update 3");
            for (int const rank : fleet.survivors_of(victim)) {
                check_failure(fleet.of(rank).hear(), "preflight", victim, killed, stall);
                if (rank != 0) BOOST_TEST(fleet.of(rank).ask("state") == "whole 2");
            }
            fleet.replace(victim);
            fleet.form();
            fleet.good_update(4);
        }
    }
}

BOOST_AUTO_TEST_CASE(a_receiver_killed_while_the_group_forms) {
    update_fleet fleet{connect_limit};
    fleet.listen();
    fleet.join(2);
    std::this_thread::sleep_for(200ms);
    fleet.of(2).kill();
    auto const killed = clock_type::now();
    fleet.join(1);
    for (int const rank : fleet.survivors_of(2)) {
        auto const said = fleet.of(rank).hear();
        BOOST_TEST(said.begins("failed "), said.text);
        BOOST_TEST(said.has("in connect"), said.text);
        // rank 0 hears from its server who is missing; with rank 0 goes the server that rank 1 waits at
        bool const server_left = rank == 1 && said.has("rank 0, which runs it, gave up or ended");
        BOOST_TEST((server_left || said.has("rank 2")), said.text);
        BOOST_TEST((said.at - killed < connect_limit + margin), said.text);
    }
    fleet.replace(2);
    fleet.form();
    fleet.good_update(1);
}

BOOST_AUTO_TEST_CASE(a_sender_killed_while_the_group_forms) {
    update_fleet fleet{connect_limit};
    fleet.listen();
    fleet.join(1);
    std::this_thread::sleep_for(200ms);
    fleet.of(0).kill();
    auto const killed = clock_type::now();
    fleet.join(2);
    for (int const rank : fleet.survivors_of(0)) {
        auto const said = fleet.of(rank).hear();
        BOOST_TEST(said.begins("failed "), said.text);
        BOOST_TEST(said.has("in connect"), said.text);
        BOOST_TEST(said.has("nobody answered at 127.0.0.1:"), said.text);
        if (rank == 1) BOOST_TEST(said.has("rank 0, which runs it, gave up or ended"), said.text);
        BOOST_TEST((said.at - killed < connect_limit + margin), said.text);
    }
    fleet.replace(0);
    fleet.form();
    fleet.good_update(1);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weightcast::test
