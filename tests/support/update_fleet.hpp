// SPDX-License-Identifier: Apache-2.0
// A sender and two receivers, each a process, formed into a group again and again by a test.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <support/update_rank.hpp>

namespace weightcast::test {

/// A sender and two receivers, each a process.
class update_fleet {
  public:
    static constexpr int size = 3;
    static constexpr std::chrono::milliseconds stall{2000};
    static constexpr std::chrono::milliseconds margin{500};  // beyond a limit

    explicit update_fleet(std::chrono::milliseconds connect = std::chrono::seconds{30})
        : connect_{connect} {
        start_all();
    }
    /// Each rank in a network namespace, rank 0 listening at that address.
    update_fleet(std::string at, std::vector<std::string> networks, std::chrono::milliseconds limit)
        : stall_{limit}, networks_{std::move(networks)}, at_{std::move(at)} {
        start_all();
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
    void start_all() {
        for (int rank = 0; rank < size; ++rank) ranks_.push_back(start(rank));
    }
    std::unique_ptr<update_rank> start(int rank) const {
        update_place const place{.rank = rank, .size = size, .stall = stall_, .connect = connect_};
        return std::make_unique<update_rank>(
            place, networks_.empty() ? "" : networks_[static_cast<std::size_t>(rank)]);
    }
    std::chrono::milliseconds connect_{std::chrono::seconds{30}};
    std::chrono::milliseconds stall_ = stall;
    std::vector<std::string> networks_;
    std::vector<std::unique_ptr<update_rank>> ranks_;
    std::string at_ = "127.0.0.1:0";
};

/// A survivor failed in that phase, because of that rank, within the limit since then.
inline void check_failure(update_rank::answer const& said, std::string const& phase, int victim,
                          std::chrono::steady_clock::time_point since,
                          std::chrono::milliseconds limit) {
    BOOST_TEST(said.begins("failed "), said.text);
    BOOST_TEST(said.has(" in " + phase + " "), said.text);
    BOOST_TEST(said.has(" suspect " + std::to_string(victim) + " "), said.text);
    BOOST_TEST(said.has("suspected rank " + std::to_string(victim)), said.text);
    if (phase == "payload") {
        BOOST_TEST(said.has(" tensor 't"), said.text);
        BOOST_TEST(said.has(" bytes done)"), said.text);
    }
    auto const took = std::chrono::duration<double>(said.at - since).count();
    BOOST_TEST((said.at - since < limit + update_fleet::margin), took << " s: " << said.text);
}

}  // namespace weightcast::test
