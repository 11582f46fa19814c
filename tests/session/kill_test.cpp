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

#include <support/update_rank.hpp>

namespace weightcast::test {
namespace {

using namespace std::chrono_literals;
using clock_type = std::chrono::steady_clock;

constexpr int size = 3;
constexpr auto stall = 2000ms;
constexpr auto connect_limit = 2000ms;
constexpr auto margin = 500ms;

/// A sender and two receivers, each a process.
class update_fleet {
  public:
    explicit update_fleet(std::chrono::milliseconds connect = 30s) : connect_{connect} {
        for (int rank = 0; rank < size; ++rank) ranks_.push_back(start(rank));
    }
    update_rank& of(int rank) { return *ranks_[static_cast<std::size_t>(rank)]; }
    void replace(int rank) { ranks_[static_cast<std::size_t>(rank)] = start(rank); }

    /// Rank 0 listens where it did before; the first time, where it likes.
    void listen() {
        of(0).tell("join " + at_);
        auto const said = of(0).line();
        BOOST_REQUIRE_MESSAGE(said.starts_with("listening "), said);
        at_ = said.substr(10);
    }
    void join(int rank) { of(rank).tell("join " + at_); }
    void form() {
        listen();
        for (int rank = 1; rank < size; ++rank) join(rank);
        for (int rank = 0; rank < size; ++rank) {
            auto const said = of(rank).hear();
            BOOST_REQUIRE_MESSAGE(said.text == "joined", "rank " << rank << ": " << said.text);
        }
    }
    void begin_update(int seed) {
        for (auto& one : ranks_) one->tell("update " + std::to_string(seed));
    }
    void good_update(int seed) {
        begin_update(seed);
        for (int rank = 0; rank < size; ++rank) {
            auto const said = of(rank).hear();
            BOOST_TEST(said.begins("ok "), "rank " << rank << ": " << said.text);
            if (rank != 0) BOOST_TEST(of(rank).ask("state").starts_with("whole "));
        }
    }
    std::vector<int> survivors_of(int victim) const {
        std::vector<int> all;
        for (int rank = 0; rank < size; ++rank) {
            if (rank != victim) all.push_back(rank);
        }
        return all;
    }

  private:
    std::unique_ptr<update_rank> start(int rank) const {
        return std::make_unique<update_rank>(
            update_place{.rank = rank, .size = size, .stall = stall, .connect = connect_});
    }
    std::chrono::milliseconds connect_;
    std::vector<std::unique_ptr<update_rank>> ranks_;
    std::string at_ = "127.0.0.1:0";
};

void check_failure(update_rank::answer const& said, std::string const& phase, int victim,
                   clock_type::time_point since, std::chrono::milliseconds limit) {
    BOOST_TEST(said.begins("failed "), said.text);
    BOOST_TEST(said.has(" in " + phase + " "), said.text);
    BOOST_TEST(said.has(" suspect " + std::to_string(victim) + " "), said.text);
    BOOST_TEST(said.has("suspected rank " + std::to_string(victim)), said.text);
    if (phase == "payload") {
        BOOST_TEST(said.has(" tensor 't"), said.text);
        BOOST_TEST(said.has(" bytes done)"), said.text);
    }
    auto const took = std::chrono::duration<double>(said.at - since).count();
    BOOST_TEST((said.at - since < limit + margin), took << " s: " << said.text);
}

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
