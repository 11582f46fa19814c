// SPDX-License-Identifier: Apache-2.0
// Ranks in processes that are killed, stopped or simply gone, at every stage of a group's life.
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <support/remote_rank.hpp>
#include <support/says.hpp>

namespace {

using namespace weightcast;
using namespace weightcast::test;
using namespace std::chrono_literals;
using clock_type = std::chrono::steady_clock;

BOOST_AUTO_TEST_SUITE(gloo_faults)

constexpr std::size_t large = std::size_t{64} << 20U;

bool has(std::string const& text, std::string const& part) {
    return text.find(part) != std::string::npos;
}

/// Rank 0 here, the others in processes.
struct group_with_processes {
    std::vector<std::unique_ptr<remote_rank>> others;
    std::optional<weightcast::gloo_communicator> mine;

    explicit group_with_processes(int size, std::string const& name = "faults") {
        for (int rank = 1; rank < size; ++rank) others.push_back(std::make_unique<remote_rank>());
        gloo_options options{.name = name, .rank = 0, .size = size, .at = "127.0.0.1:0"};
        options.grace = 5s;
        options.on_listening = [&](endpoint const& at) {
            for (int rank = 1; rank < size; ++rank) of(rank).join(to_string(at), name, rank, size);
        };
        mine = weightcast::gloo_communicator::join(options);
        for (int rank = 1; rank < size; ++rank) BOOST_REQUIRE(of(rank).answer() == "joined");
    }
    remote_rank& of(int rank) { return *others[static_cast<std::size_t>(rank - 1)]; }
    void all(std::string const& verb, std::size_t bytes, std::uint64_t seed,
             int stall_ms = 60'000) {
        for (auto& other : others) other->broadcast(0, bytes, seed, stall_ms, verb);
    }
};

/// Broadcasts of rank 0 until one fails, and a harm in the middle of them.
template <class Harm>
failure harmed_stream(weightcast::gloo_communicator& c, std::chrono::milliseconds stall, Harm harm,
                      int root = 0) {
    std::atomic<bool> moving{false};
    std::thread harmful{[&] {
        while (!moving) std::this_thread::sleep_for(1ms);
        std::this_thread::sleep_for(100ms);
        harm();
    }};
    bulk_memory memory{large, 1};
    std::optional<failure> failed;
    for (auto const until = deadline::after(120s); !failed && !until.expired();) {
        operation const op{operation_label{phase::payload, "layers.3.w"},
                           {.stall = stall, .at = until}};
        failed = failure_of([&] {
            enqueue_bulk(c, memory, root, op);
            finish(c, patiently());
        });
        moving = true;
    }
    harmful.join();
    return failed.value_or(failure{"nothing failed", {}, {}, {}});
}

BOOST_AUTO_TEST_CASE(a_rank_killed_in_mid_transfer_is_seen_at_once_and_named_by_all) {
    for (int const size : {2, 3, 5}) {
        group_with_processes group{size};
        int const victim = size - 1;
        group.all("stream", large, 1);
        auto const begin = clock_type::now();
        auto const failed =
            harmed_stream(*group.mine, 60s, [&] { group.of(victim).process().kill(); });
        BOOST_TEST((clock_type::now() - begin < 30s));  // not at the stall of 60 s
        BOOST_TEST(failed.kind == "peer_error", failed.text);
        BOOST_TEST(failed.facts.suspect == victim, failed.text);
        BOOST_TEST(has(failed.text, "payload: tensor 'layers.3.w'"), failed.text);
        BOOST_TEST(failed.facts.bytes_done < large);
        for (int rank = 1; rank < victim; ++rank) {
            auto const answer = group.of(rank).answer();
            BOOST_TEST(has(answer, "failed peer_error suspect " + std::to_string(victim)), answer);
        }
        BOOST_TEST(group.mine->suspect() == victim);
        BOOST_TEST(group.mine->failed());
    }
}

BOOST_AUTO_TEST_CASE(a_rank_stopped_in_mid_transfer_ends_at_the_stall_and_is_named_by_all) {
    for (int const size : {2, 3, 5}) {
        for (int const victim : {1, size - 1}) {
            group_with_processes group{size};
            group.all("stream", large, 1, 2000);
            auto const begin = clock_type::now();
            auto const failed =
                harmed_stream(*group.mine, 2s, [&] { group.of(victim).process().stop(); });
            BOOST_TEST((clock_type::now() - begin < 40s));
            BOOST_TEST(failed.kind != "group_aborted", failed.text);
            BOOST_TEST(failed.facts.suspect == victim, failed.text);
            for (int rank = 1; rank < size; ++rank) {
                if (rank == victim) continue;
                auto const answer = group.of(rank).answer();
                BOOST_TEST(has(answer, "suspect " + std::to_string(victim)), answer);
            }
            if (size == 2) break;
        }
    }
}

BOOST_AUTO_TEST_CASE(a_rank_killed_while_the_group_is_idle_is_told_to_all) {
    group_with_processes group{3};
    group.all("broadcast", 100, 1);
    BOOST_TEST(broadcast_once(*group.mine, 0, 100, 1, patient()) == "ok");
    for (auto& other : group.others) BOOST_TEST(other->answer() == "ok");
    BOOST_TEST(!group.mine->failed());
    group.of(1).process().kill();
    auto const until = deadline::after(60s);
    while (!group.mine->failed() && !until.expired()) std::this_thread::sleep_for(1ms);
    BOOST_TEST(group.mine->failed());
    auto const here = broadcast_once(*group.mine, 0, 100, 2, patient());
    BOOST_TEST(has(here, "failed peer_error suspect 1"), here);
    BOOST_TEST(has(here, "its process ended"), here);
    group.of(2).broadcast(0, 100, 2);
    auto const there = group.of(2).answer();
    BOOST_TEST(has(there, "failed peer_error suspect 1"), there);
}

BOOST_AUTO_TEST_CASE(the_loss_of_rank_0_is_its_servers_too) {
    std::vector<std::unique_ptr<remote_rank>> ranks;
    for (int rank = 0; rank < 3; ++rank) ranks.push_back(std::make_unique<remote_rank>());
    ranks[0]->join("127.0.0.1:0", "g", 0, 3);
    auto const listening = ranks[0]->answer();
    BOOST_REQUIRE(listening.starts_with("listening "));
    for (int rank : {1, 2})
        ranks[static_cast<std::size_t>(rank)]->join(listening.substr(10), "g", rank, 3);
    for (auto& rank : ranks) BOOST_REQUIRE(rank->answer() == "joined");
    // ranks 1 and 2 wait for rank 0, which does not call
    ranks[1]->broadcast(0, 1000, 1);
    ranks[2]->broadcast(0, 1000, 1);
    std::this_thread::sleep_for(200ms);
    ranks[0]->process().kill();
    for (std::size_t rank : {1U, 2U}) {
        auto const answer = ranks[rank]->answer();
        BOOST_TEST(has(answer, "failed peer_error suspect 0"), answer);
    }
}

BOOST_AUTO_TEST_CASE(a_rank_that_was_stopped_and_wakes_up_finds_the_group_failed) {
    group_with_processes group{3};
    group.all("stream", large, 1, 1000);
    auto const failed = harmed_stream(*group.mine, 1s, [&] { group.of(1).process().stop(); });
    BOOST_TEST(failed.facts.suspect == 1, failed.text);
    group.of(1).process().resume();
    auto const answer = group.of(1).answer();
    BOOST_TEST(has(answer, "failed "), answer);
    BOOST_TEST(group.of(1).ask("close") == "closed");
}

BOOST_AUTO_TEST_CASE(a_group_is_formed_anew_around_the_dead_without_restarting_the_living) {
    auto const server = std::make_shared<rendezvous_server>(endpoint{"127.0.0.1:0"});
    auto const at = to_string(server->at());
    remote_rank living;
    auto doomed = std::make_unique<remote_rank>();
    auto const join_all = [&](remote_rank& second) {
        living.join(at, "g", 1, 3);
        second.join(at, "g", 2, 3);
        gloo_options options{.name = "g", .rank = 0, .size = 3, .at = server->at()};
        options.server = server;
        auto c = weightcast::gloo_communicator::join(options);
        BOOST_REQUIRE(living.answer() == "joined");
        BOOST_REQUIRE(second.answer() == "joined");
        return c;
    };
    auto c = join_all(*doomed);
    living.broadcast(0, large, 1, 60'000, "stream");
    doomed->broadcast(0, large, 1, 60'000, "stream");
    auto const failed = harmed_stream(c, 60s, [&] { doomed->process().kill(); });
    BOOST_TEST(failed.facts.suspect == 2, failed.text);
    BOOST_TEST(has(living.answer(), "suspect 2"));

    remote_rank fresh;
    scoped_log_sink const quiet{
        [](std::string_view) {}};  // the old handle is replaced, and says so
    c = join_all(fresh);
    living.broadcast(0, 5000, 7);
    fresh.broadcast(0, 5000, 7);
    BOOST_TEST(broadcast_once(c, 0, 5000, 7, patient()) == "ok");
    BOOST_TEST(living.answer() == "ok");
    BOOST_TEST(fresh.answer() == "ok");
}

BOOST_AUTO_TEST_CASE(a_rank_that_dies_while_the_group_forms_ends_the_attempt_of_the_others) {
    // rank 2 never comes: the others hear who is missing
    remote_rank one;
    gloo_options options{.name = "g", .rank = 0, .size = 3, .at = "127.0.0.1:0"};
    options.connect_deadline = 1s;
    options.on_listening = [&](endpoint const& at) { one.join(to_string(at), "g", 1, 3); };
    BOOST_CHECK_EXCEPTION(weightcast::gloo_communicator::join(options), timeout,
                          says("rank 2 of 3"));
}

BOOST_AUTO_TEST_CASE(a_short_deadline_of_the_operation_is_kept) {
    group_with_processes group{2};
    rank_memory<weightcast::gloo_communicator> memory{*group.mine, 1000, 1};
    operation const op{operation_label{phase::vote, "w"},
                       {.stall = 60s, .at = deadline::after(300ms)}};
    auto const failed = failure_of([&] {  // rank 1 does not call
        enqueue_broadcast(*group.mine, memory, 0, op);
        finish(*group.mine, patiently());
    });
    BOOST_REQUIRE(failed.has_value());
    BOOST_TEST(failed->kind == "timeout", failed->text);
    BOOST_TEST(has(failed->text, "vote: tensor 'w': the operation's deadline passed"),
               failed->text);
    BOOST_TEST(failed->facts.suspect == 1, failed->text);
    BOOST_TEST((failed->after < 20s));
}

BOOST_AUTO_TEST_CASE(an_aborted_receive_leaves_its_memory_alone_once_it_is_over) {
    // Gloo wrote on after an abort while its buffer lived: the operation ends only when nothing refers to it
    group_with_processes group{2};
    group.of(1).broadcast(1, large, 5, 60'000, "stream");  // rank 1 is the root
    auto& c = *group.mine;
    bulk_memory memory{large, 1};
    std::atomic<bool> moving{false};
    std::thread aborter{[&] {
        while (!moving) std::this_thread::sleep_for(1ms);
        std::this_thread::sleep_for(50ms);
        c.abort();
    }};
    std::optional<failure> failed;
    while (!failed) {
        failed = failure_of([&] {
            enqueue_bulk(c, memory, 1, patiently());
            finish(c, patiently());
        });
        moving = true;
    }
    aborter.join();
    BOOST_TEST(failed->kind == "group_aborted");
    memory.fill(9);
    std::this_thread::sleep_for(300ms);
    BOOST_TEST(memory.holds(9));
    BOOST_TEST(has(group.of(1).answer(), "failed peer_error suspect 0"));
}

BOOST_AUTO_TEST_CASE(a_sigpipe_is_nobodys) {
    // the default action would end this process when a peer is gone and bytes are still written
    BOOST_REQUIRE(signal(SIGPIPE, SIG_DFL) != SIG_ERR);
    for (int round = 0; round < 5; ++round) {
        group_with_processes group{2};
        group.all("stream", large, 1);
        auto const failed = harmed_stream(*group.mine, 60s, [&] { group.of(1).process().kill(); });
        BOOST_TEST(failed.kind == "peer_error", failed.text);
    }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
