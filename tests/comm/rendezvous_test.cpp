// SPDX-License-Identifier: Apache-2.0
#include <boost/test/unit_test.hpp>

#include <dirent.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include <support/says.hpp>
#include <weightcast/base/log.hpp>
#include <weightcast/comm/rendezvous.hpp>

BOOST_AUTO_TEST_SUITE(rendezvous)

namespace wc = weightcast;
namespace detail = weightcast::detail;
using namespace std::chrono_literals;
using wc::deadline;
using weightcast::test::says;

namespace {

deadline soon() { return deadline::after(20s); }

/// What a client was told unasked.
class heard_events {
  public:
    detail::channel_listener listener() {
        return {
            .failed =
                [this](detail::group_failure const& failure) {
                    note([&] { failures_.push_back(failure); });
                },
            .leaving =
                [this](detail::peer_leaving const& one) { note([&] { leavers_.push_back(one); }); },
            .lost = [this] { note([&] { lost_ = true; }); }};
    }
    std::optional<detail::group_failure> failure(deadline until = soon()) {
        return await(until, [&]() -> std::optional<detail::group_failure> {
            if (failures_.empty()) return std::nullopt;
            return failures_.front();
        });
    }
    std::optional<detail::peer_leaving> leaver(deadline until = soon()) {
        return await(until, [&]() -> std::optional<detail::peer_leaving> {
            if (leavers_.empty()) return std::nullopt;
            return leavers_.back();
        });
    }
    bool lost(deadline until = soon()) {
        return await(until,
                     [&]() -> std::optional<bool> {
                         return lost_ ? std::optional{true} : std::nullopt;
                     })
            .value_or(false);
    }

  private:
    template <class Change>
    void note(Change change) {
        std::lock_guard const lock{mutex_};
        change();
        changed_.notify_all();
    }
    template <class Look>
    std::invoke_result_t<Look> await(deadline until, Look look) {
        std::unique_lock lock{mutex_};
        changed_.wait_until(lock, until.point(), [&] { return look().has_value(); });
        return look();
    }
    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<detail::group_failure> failures_;
    std::vector<detail::peer_leaving> leavers_;
    bool lost_ = false;
};

/// A rank of a group, with what it hears.
struct member {
    std::unique_ptr<heard_events> heard = std::make_unique<heard_events>();
    std::unique_ptr<wc::rendezvous_client> client;
    wc::joined_group group{};

    explicit member(wc::endpoint const& at) {
        client = std::make_unique<wc::rendezvous_client>(at, soon(), heard->listener());
    }
};

detail::join_request wish_of(std::string const& group, int rank, int size) {
    detail::join_request wish{group, rank, size, "settings", {}, 0};
    wish.who = "process of rank " + std::to_string(rank);
    return wish;
}

std::vector<member> form(wc::endpoint const& at, std::string const& name, int size) {
    std::vector<member> members;
    for (int rank = 0; rank < size; ++rank) members.emplace_back(at);
    std::vector<std::string> problems(static_cast<std::size_t>(size));
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size; ++rank) {
        threads.emplace_back([&, rank] {
            auto& mine = members[static_cast<std::size_t>(rank)];
            try {
                mine.group = mine.client->join(wish_of(name, rank, size), soon());
            } catch (std::exception const& problem) {
                problems[static_cast<std::size_t>(rank)] = problem.what();
            }
        });
    }
    for (auto& thread : threads) thread.join();
    for (auto const& problem : problems) BOOST_REQUIRE_MESSAGE(problem.empty(), problem);
    return members;
}

detail::leave_account nothing_done(std::size_t size) {
    return {0, std::vector<std::uint64_t>(size), std::vector<std::uint64_t>(size)};
}

std::size_t entries_of(char const* directory) {
    std::size_t entries = 0;
    DIR* const open = opendir(directory);
    if (open == nullptr) return 0;
    while (readdir(open) != nullptr) ++entries;
    closedir(open);
    return entries;
}

/// A raw connection that says what it likes.
struct raw_client {
    detail::unique_fd fd;
    explicit raw_client(wc::endpoint const& at) : fd{detail::connect_until(at, soon())} {}
    void send(std::string_view bytes) const {
        while (!bytes.empty()) {
            auto const put = ::send(fd.value(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
            if (put < 0 && (errno == EAGAIN || errno == EINTR)) {
                if (!detail::wait_for_io(fd.value(), POLLOUT, deadline::after(2s))) return;
                continue;
            }
            if (put < 0) return;  // dropped: as expected
            bytes.remove_prefix(static_cast<std::size_t>(put));
        }
    }
    /// True when the server closes the connection.
    bool closed(deadline until = soon()) const {
        char buffer[4096];
        while (detail::wait_for_io(fd.value(), POLLIN, until)) {
            auto const got = ::recv(fd.value(), buffer, sizeof buffer, 0);
            if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) return true;
        }
        return false;
    }
};

}  // namespace

BOOST_AUTO_TEST_CASE(keys_and_values) {
    wc::rendezvous_server const server{"127.0.0.1:0"};
    wc::rendezvous_client client{server.at(), soon()};
    std::string const binary("\0\xFF\n", 3);
    BOOST_TEST(!client.find("k", soon()).has_value());
    client.set("k", binary, soon());
    BOOST_TEST(client.find("k", soon()).value() == binary);
    client.set("k", "", soon());
    BOOST_TEST(client.get("k", soon()).empty());
    BOOST_TEST(client.add("n", 3, soon()) == 3);
    BOOST_TEST(client.add("n", -5, soon()) == -2);
    BOOST_CHECK_EXCEPTION(client.add("k", 1, soon()), wc::bad_argument, says("no number"));
    BOOST_TEST(client.erase("k", soon()));
    BOOST_TEST(!client.erase("k", soon()));
    auto const counts = client.counts(soon());
    BOOST_TEST(counts.keys == 1U);
    BOOST_TEST(counts.connections == 1U);
    BOOST_TEST(counts.groups == 0U);
}

BOOST_AUTO_TEST_CASE(the_longest_value_passes_and_one_byte_more_does_not) {
    wc::rendezvous_server const server{"127.0.0.1:0"};
    wc::rendezvous_client client{server.at(), soon()};
    std::string value(detail::limits_on_messages.value, 'v');
    std::string const key(detail::limits_on_messages.key, 'k');
    client.set(key, value, soon());
    BOOST_TEST((client.get(key, soon()) == value));
    value += 'x';
    BOOST_CHECK_THROW(client.set(key, value, soon()), wc::bad_argument);
    BOOST_CHECK_THROW(client.set(key + "k", "", soon()), wc::bad_argument);
    BOOST_CHECK_THROW(client.set("", "v", soon()), wc::bad_argument);
    client.set("still", "here", soon());
}

BOOST_AUTO_TEST_CASE(waiting_ends_when_the_last_key_comes) {
    wc::rendezvous_server const server{"[::1]:0"};
    wc::rendezvous_client waiter{server.at(), soon()};
    wc::rendezvous_client setter{server.at(), soon()};
    std::atomic<int> set{0};
    std::atomic<int> seen{-1};
    std::string problem;
    std::thread waiting{[&] {
        try {
            waiter.wait({"a", "b", "c"}, soon());
            seen = set.load();
        } catch (std::exception const& e) {
            problem = e.what();
        }
    }};
    for (auto const* key : {"a", "b", "c"}) {
        std::this_thread::sleep_for(20ms);
        ++set;
        setter.set(key, "v", soon());
    }
    waiting.join();
    BOOST_TEST(problem == "");
    BOOST_TEST(seen.load() == 3);
    waiter.wait({"a", "b", "c"}, soon());
    waiter.wait({}, soon());
}

BOOST_AUTO_TEST_CASE(waiting_for_what_never_comes_names_the_key) {
    wc::rendezvous_server const server{"127.0.0.1:0"};
    wc::rendezvous_client client{server.at(), soon()};
    client.set("there", "", soon());
    BOOST_CHECK_EXCEPTION(client.wait({"there", "never"}, deadline::after(300ms)), wc::timeout,
                          says("'never'"));
    BOOST_CHECK_THROW(client.wait({"never"}, deadline::after(-1s)), wc::timeout);
    client.set("still", "usable", soon());
}

BOOST_AUTO_TEST_CASE(a_server_may_come_late_and_nobody_is_named_with_host_port_and_time) {
    wc::endpoint at;
    { at = wc::listen_socket{"127.0.0.1:0"}.at(); }
    BOOST_CHECK_EXCEPTION((wc::rendezvous_client{at, deadline::after(200ms)}), wc::timeout,
                          says(wc::to_string(at)));
    std::unique_ptr<wc::rendezvous_server> server;
    std::thread late{[&] {
        std::this_thread::sleep_for(100ms);
        server = std::make_unique<wc::rendezvous_server>(at);
    }};
    wc::rendezvous_client client{at, soon()};
    late.join();
    client.set("k", "v", soon());
}

BOOST_AUTO_TEST_CASE(something_else_on_the_port_is_told_apart) {
    wc::listen_socket const silent{"127.0.0.1:0"};  // accepts and never speaks
    BOOST_CHECK_EXCEPTION((wc::rendezvous_client{silent.at(), deadline::after(200ms)}), wc::timeout,
                          says("does not answer as a rendezvous server"));
    wc::listen_socket const web{"127.0.0.1:0"};
    std::thread serving{[&] {
        for (std::string const answer :
             {"HTTP/1.1 400 Bad Request\r\n\r\n", "WCRV\x07\0\0\0", ""}) {
            detail::wait_for_io(web.descriptor(), POLLIN, soon());
            auto const accepted = web.accept();
            ::send(accepted.value(), answer.data(), answer.size() + (answer.size() == 5 ? 3 : 0),
                   MSG_NOSIGNAL);
            char byte = 0;  // reads the greeting, so that closing does not destroy what was sent
            detail::wait_for_io(accepted.value(), POLLIN, soon());
            [[maybe_unused]] auto const got = ::recv(accepted.value(), &byte, 1, 0);
            std::this_thread::sleep_for(50ms);
        }
    }};
    BOOST_CHECK_EXCEPTION((wc::rendezvous_client{web.at(), soon()}), wc::bad_input,
                          says("no weightcast rendezvous"));
    BOOST_CHECK_EXCEPTION((wc::rendezvous_client{web.at(), soon()}), wc::bad_input,
                          says("speaks version 7"));
    BOOST_CHECK_EXCEPTION((wc::rendezvous_client{web.at(), soon()}), wc::peer_error,
                          says("closed the connection"));
    serving.join();
}

BOOST_AUTO_TEST_CASE(a_server_that_goes_away_ends_every_wait) {
    heard_events heard;
    auto server = std::make_unique<wc::rendezvous_server>(wc::endpoint{"127.0.0.1:0"});
    wc::rendezvous_client client{server->at(), soon(), heard.listener()};
    std::string problem;
    std::thread waiting{[&] {
        try {
            client.wait({"never"}, deadline::after(60s));
        } catch (wc::peer_error const& e) {
            problem = e.what();
        }
    }};
    std::this_thread::sleep_for(50ms);
    server.reset();
    waiting.join();
    BOOST_TEST(problem.find("lost") != std::string::npos);
    BOOST_TEST(heard.lost());
    BOOST_TEST(client.lost());
    BOOST_CHECK_THROW(client.set("k", "v", soon()), wc::peer_error);
    BOOST_TEST(!client.report_quiet(0, soon()));
}

BOOST_AUTO_TEST_CASE(a_group_forms_once_all_are_there) {
    wc::rendezvous_server const server{"127.0.0.1:0", {.host_rank = 0}};
    auto const members = form(server.at(), "g", 5);
    for (auto const& one : members) {
        BOOST_TEST(one.group.generation == members.front().group.generation);
        BOOST_TEST(one.group.host_rank == 0);
        BOOST_TEST(one.group.key_prefix == members.front().group.key_prefix);
    }
    auto const others = form(server.at(), "other", 2);  // side by side
    BOOST_TEST(others.front().group.generation != members.front().group.generation);
    BOOST_TEST(members.front().client->counts(soon()).groups == 2U);
}

BOOST_AUTO_TEST_CASE(a_rank_that_is_missing_is_named) {
    wc::rendezvous_server const server{"127.0.0.1:0"};
    member one{server.at()};
    BOOST_CHECK_EXCEPTION(one.client->join(wish_of("g", 1, 4), deadline::after(400ms)), wc::timeout,
                          says({"ranks 0, 2, 3 of 4", "'g'"}));
    // the place is free again, for this client or another
    auto wish = wish_of("g", 0, 1);
    BOOST_CHECK_NO_THROW(one.client->join(wish, soon()));
}

BOOST_AUTO_TEST_CASE(another_world_size_other_settings_and_a_taken_rank_are_refused_naming_both) {
    wc::rendezvous_server const server{"127.0.0.1:0"};
    member first{server.at()};
    std::string problem;
    std::thread waiting{[&] {
        try {
            first.client->join(wish_of("g", 0, 2), soon());
        } catch (std::exception const& e) {
            problem = e.what();
        }
    }};
    while (first.client->counts(soon()).groups == 0) std::this_thread::sleep_for(1ms);
    member second{server.at()};
    BOOST_CHECK_EXCEPTION(
        second.client->join(wish_of("g", 1, 3), soon()), wc::bad_argument,
        says({"rank 1 (process of rank 1)", "3 ranks", "rank 0 (process of rank 0)", "says 2"}));
    auto wish = wish_of("g", 0, 2);
    wish.who = "the impostor";
    BOOST_CHECK_EXCEPTION(second.client->join(wish, soon()), wc::bad_argument,
                          says({"rank 0 is taken by process of rank 0", "the impostor"}));
    wish = wish_of("g", 1, 2);
    wish.settings = "piece=1";
    BOOST_CHECK_EXCEPTION(second.client->join(wish, soon()), wc::bad_argument,
                          says({"'piece=1'", "'settings'"}));
    for (auto const& [rank, size] : {std::pair{2, 2}, std::pair{-1, 2}, std::pair{0, 0},
                                     std::pair{0, -1}, std::pair{0, 70000}}) {
        BOOST_CHECK_THROW(second.client->join(wish_of("x", rank, size), soon()), wc::bad_argument);
    }
    BOOST_CHECK_THROW(second.client->join(wish_of("", 0, 1), soon()), wc::bad_argument);
    BOOST_CHECK_NO_THROW(second.client->join(wish_of("g", 1, 2), soon()));  // none of that did harm
    waiting.join();
    BOOST_TEST(problem == "");
    BOOST_CHECK_EXCEPTION(second.client->join(wish_of("h", 0, 1), soon()), wc::bad_argument,
                          says("rank of a group already"));
}

BOOST_AUTO_TEST_CASE(those_who_wait_hear_who_was_refused) {
    wc::rendezvous_server const server{"127.0.0.1:0"};
    member first{server.at()};
    std::string problem;
    std::thread waiting{[&] {
        try {
            first.client->join(wish_of("g", 0, 2), deadline::after(1s));
        } catch (wc::timeout const& e) {
            problem = e.what();
        }
    }};
    while (first.client->counts(soon()).groups == 0) std::this_thread::sleep_for(1ms);
    member second{server.at()};
    BOOST_CHECK_THROW(second.client->join(wish_of("g", 1, 3), soon()), wc::bad_argument);
    waiting.join();
    BOOST_TEST(problem.find("rank 1 of 2") != std::string::npos, problem);
    BOOST_TEST(problem.find("says that it has 3 ranks") != std::string::npos, problem);
}

BOOST_AUTO_TEST_CASE(a_rank_that_dies_while_a_group_forms_frees_its_place) {
    wc::rendezvous_server const server{"127.0.0.1:0"};
    member stays{server.at()};
    std::string problem;
    std::thread waiting{[&] {
        try {
            stays.client->join(wish_of("g", 0, 2), soon());
        } catch (std::exception const& e) {
            problem = e.what();
        }
    }};
    while (stays.client->counts(soon()).groups == 0) std::this_thread::sleep_for(1ms);
    auto wish = wish_of("g", 1, 2);
    wish.timeout_ms = 60'000;
    auto const join = detail::frame(detail::message_kind::join, 1, wish.bytes());
    raw_client cut{server.at()};
    cut.send(detail::greeting() +
             join.substr(0, join.size() - 1));  // dies before the last byte of it
    cut.fd.reset();
    member comes{server.at()};
    comes.client->join(wish_of("g", 1, 2), soon());
    waiting.join();
    BOOST_TEST(problem == "");
}

BOOST_AUTO_TEST_CASE(a_place_of_the_dead_is_taken_by_the_next) {
    wc::rendezvous_server const server{"127.0.0.1:0"};
    raw_client first{server.at()};
    auto wish = wish_of("g", 0, 3);
    wish.timeout_ms = 60'000;
    auto const joins = [&] {
        return detail::greeting() + detail::frame(detail::message_kind::join, 1, wish.bytes());
    };
    first.send(joins());
    wish.rank = 1;
    {
        raw_client dies{server.at()};
        dies.send(joins());
        member rival{server.at()};
        for (bool taken = false; !taken;) {
            try {
                rival.client->join(wish_of("g", 1, 3), deadline::after(20ms));
            } catch (wc::bad_argument const&) {
                taken = true;
            } catch (wc::timeout const&) {}
        }
    }
    raw_client second{server.at()};
    second.send(joins());
    member third{server.at()};
    BOOST_CHECK_NO_THROW(third.client->join(wish_of("g", 2, 3), soon()));
}

BOOST_AUTO_TEST_CASE(a_lost_rank_is_told_to_all_at_once) {
    wc::rendezvous_server const server{"127.0.0.1:0"};
    auto members = form(server.at(), "g", 4);
    members[2].client.reset();
    for (std::size_t rank : {0U, 1U, 3U}) {
        auto const failure = members[rank].heard->failure();
        BOOST_REQUIRE(failure.has_value());
        BOOST_TEST(failure->suspect == 2);
        BOOST_TEST((failure->kind == detail::failure_kind::lost));
        BOOST_TEST(failure->text.find("process of rank 2") != std::string::npos);
    }
}

BOOST_AUTO_TEST_CASE(the_first_failure_is_the_groups_and_later_ones_hear_of_it) {
    wc::rendezvous_server const server{"127.0.0.1:0"};
    auto members = form(server.at(), "g", 3);
    detail::group_failure first{
        .kind = detail::failure_kind::aborted, .suspect = 1, .text = "first"};
    BOOST_TEST(members[1].client->report(first, soon()));
    for (auto& one : members) {
        auto const failure = one.heard->failure();
        BOOST_REQUIRE(failure.has_value());
        BOOST_TEST(failure->text == "first");
        BOOST_TEST(failure->reporter == 1);
    }
    detail::group_failure const second{.suspect = 0, .text = "second"};
    BOOST_TEST(members[2].client->report(second, soon()));
    members[0].client.reset();  // a loss after the failure is no news either
    std::this_thread::sleep_for(50ms);
    BOOST_TEST(members[2].heard->failure()->text == "first");
}

BOOST_AUTO_TEST_CASE(a_rank_cannot_report_in_anothers_name_or_without_a_group) {
    wc::rendezvous_server const server{"127.0.0.1:0"};
    auto members = form(server.at(), "g", 2);
    member outsider{server.at()};
    outsider.client->report({.suspect = 0, .text = "nonsense"}, soon());
    members[1].client->report({.reporter = 0, .suspect = 0, .text = "forged"}, soon());
    auto const failure = members[0].heard->failure();
    BOOST_REQUIRE(failure.has_value());
    BOOST_TEST(failure->text == "forged");
    BOOST_TEST(failure->reporter == 1);  // the server knows who spoke
}

BOOST_AUTO_TEST_CASE(the_suspect_is_the_end_of_the_chain_of_waits) {
    wc::rendezvous_server const server{"127.0.0.1:0"};
    auto members = form(server.at(), "g", 4);
    // 3 waits for 2, 2 waits for 1, 1 says nothing: it is the one that is stuck
    members[2].client->report_status({true, true, 5, 1, "broadcasts"}, soon());
    members[0].client->report_status({true, true, 5, 1, "broadcasts"}, soon());
    BOOST_TEST(members[2].client->counts(soon()).groups == 1U);  // the server has seen the status
    BOOST_TEST(members[0].client->counts(soon()).groups == 1U);
    members[3].client->report(
        {.kind = detail::failure_kind::timed_out, .suspect = 2, .text = "late"}, soon());
    auto const failure = members[0].heard->failure();
    BOOST_REQUIRE(failure.has_value());
    BOOST_TEST(failure->suspect == 1);
    BOOST_TEST(failure->reporter == 3);
}

BOOST_AUTO_TEST_CASE(a_circle_of_waits_suspects_nobody_and_progress_takes_a_wait_back) {
    wc::rendezvous_server const server{"127.0.0.1:0"};
    {
        auto members = form(server.at(), "circle", 3);
        members[1].client->report_status({true, false, 0, 2, "receives"}, soon());
        members[2].client->report_status({true, false, 0, 1, "receives"}, soon());
        members[2].client->counts(soon());
        members[1].client->counts(soon());
        members[0].client->report(
            {.kind = detail::failure_kind::timed_out, .suspect = 1, .text = "x"}, soon());
        BOOST_TEST(members[1].heard->failure()->suspect == -1);
    }
    {
        auto members = form(server.at(), "with the reporter", 3);  // who would suspect itself
        members[2].client->report_status({true, false, 0, 0, "receives"}, soon());
        members[2].client->counts(soon());
        members[0].client->report(
            {.kind = detail::failure_kind::timed_out, .suspect = 2, .text = "x"}, soon());
        BOOST_TEST(members[1].heard->failure()->suspect == -1);
    }
    auto members = form(server.at(), "progress", 3);
    members[1].client->report_status({true, false, 0, 2, "receives"}, soon());
    members[1].client->report_status({}, soon());
    members[1].client->counts(soon());
    members[0].client->report({.kind = detail::failure_kind::timed_out, .suspect = 1, .text = "x"},
                              soon());
    BOOST_TEST(members[2].heard->failure()->suspect == 1);
}

BOOST_AUTO_TEST_CASE(joins_that_ask_for_more_seats_than_a_server_has_are_refused) {
    // a seat is memory that a message of 60 bytes asks for
    wc::rendezvous_server const server{"127.0.0.1:0"};
    std::vector<std::unique_ptr<wc::rendezvous_client>> waiting;
    std::vector<std::jthread> joining;
    for (int i = 0; i < 2; ++i) {
        waiting.push_back(std::make_unique<wc::rendezvous_client>(server.at(), soon()));
        joining.emplace_back([&client = *waiting.back(), i] {
            try {
                client.join(wish_of("huge " + std::to_string(i), 0, 65'536),
                            deadline::after(1500ms));
            } catch (wc::error const&) {}  // nobody else comes
        });
    }
    wc::rendezvous_client client{server.at(), soon()};
    while (client.counts(soon()).groups < 2U) std::this_thread::sleep_for(5ms);
    BOOST_CHECK_EXCEPTION(client.join(wish_of("one more", 0, 2), soon()), wc::bad_argument,
                          [](wc::bad_argument const& e) {
                              return std::string{e.what()}.find("131072 ranks already") !=
                                     std::string::npos;
                          });
}

BOOST_AUTO_TEST_CASE(ranks_stuck_in_different_operations_are_told_both) {
    wc::rendezvous_server const server{"127.0.0.1:0"};
    auto members = form(server.at(), "g", 3);
    members[0].client->report_status({true, true, 7, 1, "broadcasts from rank 0"}, soon());
    members[2].client->report_status({true, true, 8, 1, "reduces"},
                                     soon());  // another position: no conflict
    members[2].client->counts(soon());
    members[0].client->counts(soon());
    BOOST_TEST(!members[2].heard->failure(deadline::after(50ms)).has_value());
    members[1].client->report_status({true, true, 7, 0, "reduces"}, soon());
    for (auto& one : members) {
        auto const failure = one.heard->failure();
        BOOST_REQUIRE(failure.has_value());
        BOOST_TEST((failure->kind == detail::failure_kind::mismatch));
        for (auto const* part :
             {"operation 7", "rank 0 broadcasts from rank 0", "rank 1 reduces"}) {
            BOOST_TEST(failure->text.find(part) != std::string::npos, failure->text);
        }
    }
}

BOOST_AUTO_TEST_CASE(forming_a_name_anew_replaces_the_old_group_and_one_line_names_both) {
    std::mutex mutex;
    std::vector<std::string> lines;
    wc::scoped_log_sink const sink{[&](std::string_view line) {
        std::lock_guard const lock{mutex};
        lines.emplace_back(line);
    }};
    wc::rendezvous_server const server{"127.0.0.1:0"};
    auto old_members = form(server.at(), "g", 2);
    auto const prefix = old_members[0].group.key_prefix;
    old_members[0].client->set(prefix + "k", "v", soon());
    auto members = form(server.at(), "g", 3);
    for (auto& one : old_members) {
        auto const failure = one.heard->failure();
        BOOST_REQUIRE(failure.has_value());
        BOOST_TEST((failure->kind == detail::failure_kind::replaced));
    }
    {
        std::lock_guard const lock{mutex};
        BOOST_REQUIRE(lines.size() == 1U);
        BOOST_TEST(lines.front().find("process of rank") != std::string::npos);
        BOOST_TEST(lines.front().find("replaced") != std::string::npos);
    }
    BOOST_TEST(members[0].group.generation > old_members[0].group.generation);
    // what the old ones say now is about the old group only, and their keys go with them
    old_members[1].client->report({.suspect = 0, .text = "late"}, soon());
    BOOST_TEST(members[0].client->find(prefix + "k", soon()).has_value());
    old_members.clear();
    while (members[0].client->find(prefix + "k", soon()).has_value())
        std::this_thread::sleep_for(1ms);
    BOOST_TEST(!members[0].heard->failure(deadline::after(30ms)).has_value());
    BOOST_CHECK_THROW(members[2].client->barrier("b", deadline::after(100ms)), wc::timeout);
}

BOOST_AUTO_TEST_CASE(a_group_that_left_is_not_replaced_but_followed) {
    std::atomic<int> lines{0};
    wc::scoped_log_sink const sink{[&](std::string_view) { ++lines; }};
    wc::rendezvous_server const server{"127.0.0.1:0"};
    auto old_members = form(server.at(), "g", 1);
    old_members[0].client->leave(nothing_done(1), soon());
    auto const members = form(server.at(), "g", 1);
    BOOST_TEST(lines.load() == 0);
    BOOST_TEST(!old_members[0].heard->failure(deadline::after(30ms)).has_value());
}

BOOST_AUTO_TEST_CASE(barriers_hold_until_all_are_in_and_leave_nothing_behind) {
    wc::rendezvous_server const server{"127.0.0.1:0"};
    constexpr int size = 4;
    constexpr int rounds = 50;
    auto members = form(server.at(), "g", size);
    std::atomic<int> entered{0};
    std::atomic<int> early{0};
    std::vector<std::string> problems(size);
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size; ++rank) {
        threads.emplace_back([&, rank] {
            try {
                for (int round = 0; round < rounds; ++round) {
                    ++entered;
                    members[static_cast<std::size_t>(rank)].client->barrier("same name", soon());
                    if (entered.load() < size * (round + 1)) ++early;
                }
            } catch (std::exception const& problem) {
                problems[static_cast<std::size_t>(rank)] = problem.what();
            }
        });
    }
    for (auto& thread : threads) thread.join();
    for (auto const& problem : problems) BOOST_TEST(problem == "");
    BOOST_TEST(early.load() == 0);
    BOOST_TEST(members[0].client->counts(soon()).keys == 0U);
}

BOOST_AUTO_TEST_CASE(a_barrier_that_somebody_misses_names_them_and_can_be_used_again) {
    wc::rendezvous_server const server{"127.0.0.1:0"};
    auto members = form(server.at(), "g", 3);
    BOOST_CHECK_EXCEPTION(members[1].client->barrier("b", deadline::after(400ms)), wc::timeout,
                          says({"ranks 0, 2 of 3", "'b'"}));
    std::vector<std::string> problems(3);
    std::vector<std::thread> threads;
    for (std::size_t rank = 0; rank < 3; ++rank) {
        threads.emplace_back([&, rank] {
            try {
                members[rank].client->barrier("b", soon());
            } catch (std::exception const& problem) {
                problems[rank] = problem.what();
            }
        });
    }
    for (auto& thread : threads) thread.join();
    for (auto const& problem : problems) BOOST_TEST(problem == "");
}

BOOST_AUTO_TEST_CASE(a_barrier_ends_with_the_group_or_with_a_rank_that_leaves) {
    wc::rendezvous_server const server{"127.0.0.1:0"};
    for (bool const dies : {true, false}) {
        auto members = form(server.at(), dies ? "dies" : "leaves", 2);
        std::string problem;
        std::thread waiting{[&] {
            try {
                members[0].client->barrier("b", deadline::after(60s));
            } catch (wc::peer_error const& e) {
                problem = e.what();
            }
        }};
        std::this_thread::sleep_for(50ms);
        if (dies) {
            members[1].client.reset();
        } else {
            BOOST_CHECK_THROW(members[1].client->leave(nothing_done(2), deadline::after(100ms)),
                              wc::timeout);
        }
        waiting.join();
        BOOST_TEST(problem.find("rank 1") != std::string::npos, problem);
        BOOST_CHECK_THROW(members[0].client->barrier("c", soon()), wc::peer_error);
    }
    wc::rendezvous_client outsider{server.at(), soon()};
    BOOST_CHECK_EXCEPTION(outsider.barrier("b", soon()), wc::peer_error, says("joined"));
}

BOOST_AUTO_TEST_CASE(a_rank_is_in_a_barrier_once) {
    wc::rendezvous_server const server{"127.0.0.1:0"};
    auto members = form(server.at(), "g", 2);
    std::thread waiting{[&] {
        try {
            members[0].client->barrier("b", deadline::after(2s));
        } catch (wc::error const&) {}
    }};
    std::this_thread::sleep_for(100ms);
    BOOST_CHECK_EXCEPTION(members[0].client->barrier("b", deadline::after(1s)), wc::peer_error,
                          says("already"));
    waiting.join();
}

BOOST_AUTO_TEST_CASE(leaving_waits_until_nothing_is_under_way_elsewhere) {
    wc::rendezvous_server const server{"127.0.0.1:0"};
    auto members = form(server.at(), "g", 3);
    std::atomic<bool> left{false};
    std::string problem;
    std::thread leaver{[&] {
        try {
            members[0].client->leave({9, {0, 11, 12}, {0, 21, 22}}, soon());
            left = true;
        } catch (std::exception const& e) {
            problem = e.what();
        }
    }};
    for (std::size_t rank : {1U, 2U}) {
        auto const told = members[rank].heard->leaver();
        BOOST_REQUIRE(told.has_value());
        BOOST_TEST(told->rank == 0);
        BOOST_TEST(told->collectives == 9U);
        BOOST_TEST(told->sent == 10U + rank);
        BOOST_TEST(told->received == 20U + rank);
    }
    members[1].client->report_quiet(0, soon());
    members[1].client->counts(soon());
    BOOST_TEST(!left.load());
    members[2].client->report_quiet(0, soon());
    leaver.join();
    BOOST_TEST(problem == "");
    BOOST_TEST(left.load());
    members[0].client.reset();  // the end of one that left is no loss
    BOOST_TEST(!members[1].heard->failure(deadline::after(50ms)).has_value());
}

BOOST_AUTO_TEST_CASE(leaving_does_not_wait_for_the_dead_or_for_a_failed_group) {
    wc::rendezvous_server const server{"127.0.0.1:0"};
    auto members = form(server.at(), "g", 2);
    std::string problem = "still there";
    std::thread leaver{[&] {
        try {
            members[0].client->leave(nothing_done(2), deadline::after(60s));
            problem = "";
        } catch (std::exception const& e) {
            problem = e.what();
        }
    }};
    members[1].heard->leaver();
    members[1].client.reset();
    leaver.join();
    BOOST_TEST(problem == "");

    auto failed = form(server.at(), "failed", 2);
    failed[0].client->report({.suspect = 1, .text = "x"}, soon());
    BOOST_CHECK_NO_THROW(failed[0].client->leave(nothing_done(2), deadline::after(60s)));
    BOOST_CHECK_THROW(failed[0].client->leave(nothing_done(3), soon()), wc::bad_argument);
    wc::rendezvous_client outsider{server.at(), soon()};
    BOOST_CHECK_THROW(outsider.leave(nothing_done(1), soon()), wc::bad_argument);
}

BOOST_AUTO_TEST_CASE(both_may_leave_at_once) {
    wc::rendezvous_server const server{"127.0.0.1:0"};
    for (int round = 0; round < 20; ++round) {
        auto members = form(server.at(), "g", 2);
        std::vector<std::string> problems(2);
        std::vector<std::thread> threads;
        for (std::size_t rank = 0; rank < 2; ++rank) {
            threads.emplace_back([&, rank] {
                try {
                    members[rank].client->leave(nothing_done(2), soon());
                } catch (std::exception const& problem) {
                    problems[rank] = problem.what();
                }
            });
        }
        for (std::size_t rank = 0; rank < 2; ++rank) {
            members[rank].heard->leaver();
            members[rank].client->report_quiet(static_cast<int>(1 - rank), soon());
        }
        for (auto& thread : threads) thread.join();
        for (auto const& problem : problems) BOOST_TEST(problem == "");
    }
}

// --- clients that mean no good ---

BOOST_AUTO_TEST_CASE(garbage_costs_the_server_that_client_only) {
    wc::rendezvous_server const server{"127.0.0.1:0"};
    wc::rendezvous_client good{server.at(), soon()};
    std::mt19937 random{11};
    for (int round = 0; round < 60; ++round) {
        raw_client bad{server.at()};
        if (round % 3 != 0) bad.send(detail::greeting());
        std::string bytes(1 + random() % 3000, '\0');
        for (auto& byte : bytes) byte = static_cast<char>(random());
        if (round % 3 == 2) {  // a frame that is well formed outside, nonsense inside
            bytes = detail::frame(static_cast<detail::message_kind>(random() % 100), 1, bytes);
        }
        bad.send(bytes);
        good.set("k", std::to_string(round), soon());
    }
    raw_client web{server.at()};
    web.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    BOOST_TEST(web.closed());
    raw_client huge{server.at()};
    huge.send(detail::greeting() + std::string("\xFF\xFF\xFF\xFF", 4));
    BOOST_TEST(huge.closed());
    raw_client old{server.at()};
    old.send(std::string("WCRV\x63\0\0\0", 8));
    BOOST_TEST(old.closed());
    raw_client unknown{server.at()};
    unknown.send(detail::greeting() + detail::frame(static_cast<detail::message_kind>(55), 1, ""));
    BOOST_TEST(unknown.closed());
    BOOST_TEST(good.get("k", soon()) == "59");
}

BOOST_AUTO_TEST_CASE(a_silent_a_slow_and_a_deaf_client_block_nobody) {
    wc::rendezvous_server const server{"127.0.0.1:0"};
    raw_client silent{server.at()};
    raw_client slow{server.at()};
    slow.send(detail::greeting() + std::string("\x40\0", 2));  // half a length
    raw_client deaf{server.at()};                              // asks for much and never reads
    deaf.send(detail::greeting());
    wc::rendezvous_client good{server.at(), soon()};
    good.set("big", std::string(1U << 20U, 'x'), soon());
    auto const ask =
        detail::frame(detail::message_kind::get, 1, detail::message_writer{}.text("big").bytes());
    std::string many;
    for (int i = 0; i < 64; ++i) many += ask;
    deaf.send(many);  // 64 MiB of answers: more than the server keeps for anybody
    for (int i = 0; i < 20; ++i) good.set("k" + std::to_string(i), "v", soon());
    BOOST_TEST(deaf.closed());
    BOOST_TEST(good.get("k19", soon()) == "v");
}

BOOST_AUTO_TEST_CASE(a_client_that_does_not_get_to_the_point_is_dropped,
                     *boost::unit_test::label("long")) {
    wc::rendezvous_server const server{"127.0.0.1:0"};
    raw_client silent{server.at()};
    raw_client slow{server.at()};
    slow.send(detail::greeting() + std::string("\x40\0", 2));
    BOOST_TEST(silent.closed(deadline::after(60s)));
    BOOST_TEST(slow.closed(deadline::after(60s)));
}

BOOST_AUTO_TEST_CASE(a_store_that_is_full_says_so_and_connections_are_bounded) {
    wc::server_options options;
    options.limits.store = {.keys = 2, .bytes = 1000};
    options.limits.connections = 3;
    options.limits.waits_per_connection = 2;
    wc::rendezvous_server const server{wc::endpoint{"127.0.0.1:0"}, options};
    wc::rendezvous_client one{server.at(), soon()};
    one.set("a", "1", soon());
    one.set("b", "1", soon());
    BOOST_CHECK_EXCEPTION(one.set("c", "1", soon()), wc::bad_argument, says("full"));
    BOOST_CHECK_EXCEPTION(one.set("a", std::string(1000, 'x'), soon()), wc::bad_argument,
                          says("full"));
    BOOST_TEST(one.get("a", soon()) == "1");
    wc::rendezvous_client two{server.at(), soon()};
    wc::rendezvous_client three{server.at(), soon()};
    BOOST_CHECK_THROW((wc::rendezvous_client{server.at(), deadline::after(2s)}), wc::error);
    BOOST_TEST(three.get("b", soon()) == "1");
    std::vector<std::thread> waits;
    for (int i = 0; i < 2; ++i) {
        waits.emplace_back([&] {
            try {
                two.wait({"never"}, deadline::after(2s));
            } catch (wc::error const&) {}
        });
    }
    std::this_thread::sleep_for(200ms);
    BOOST_CHECK_EXCEPTION(two.wait({"never"}, deadline::after(500ms)), wc::bad_argument,
                          says("too much at once"));
    for (auto& wait : waits) wait.join();
}

BOOST_AUTO_TEST_CASE(a_server_ends_quickly_with_clients_connected) {
    auto server = std::make_unique<wc::rendezvous_server>(wc::endpoint{"127.0.0.1:0"});
    auto const at = server->at();
    auto members = form(at, "g", 3);
    raw_client silent{at};
    auto const began = std::chrono::steady_clock::now();
    server->stop();
    server->stop();
    server.reset();
    BOOST_TEST((std::chrono::steady_clock::now() - began < 10s));
    for (auto& one : members) BOOST_TEST(one.heard->lost());
    wc::rendezvous_server const again{at};  // the port is free at once
    BOOST_TEST((again.at() == at));
}

BOOST_AUTO_TEST_CASE(many_requests_of_many_threads_over_one_client) {
    wc::rendezvous_server const server{"127.0.0.1:0"};
    wc::rendezvous_client client{server.at(), soon()};
    std::vector<std::string> problems(8);
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < 8; ++t) {
        threads.emplace_back([&, t] {
            try {
                auto const key = "key" + std::to_string(t);
                for (int i = 0; i < 50; ++i) {
                    client.set(key, std::to_string(i), soon());
                    if (client.get(key, soon()) != std::to_string(i))
                        problems[t] = "another's value";
                    client.add("sum", 1, soon());
                }
            } catch (std::exception const& problem) {
                problems[t] = problem.what();
            }
        });
    }
    for (auto& thread : threads) thread.join();
    for (auto const& problem : problems) BOOST_TEST(problem == "");
    BOOST_TEST(client.add("sum", 0, soon()) == 400);
}

BOOST_AUTO_TEST_CASE(two_hundred_servers_groups_and_clients_leave_nothing_open) {
    std::size_t descriptors = 0;
    std::size_t threads = 0;
    for (int cycle = 0; cycle < 200; ++cycle) {
        {
            wc::rendezvous_server const server{"127.0.0.1:0"};
            auto members = form(server.at(), "g", 2);
            members[0].client->set(members[0].group.key_prefix + "k", "v", soon());
        }
        if (cycle == 9) {
            descriptors = entries_of("/proc/self/fd");
            threads = entries_of("/proc/self/task");
        }
    }
    BOOST_TEST(entries_of("/proc/self/fd") == descriptors);
    BOOST_TEST(entries_of("/proc/self/task") == threads);
}

BOOST_AUTO_TEST_CASE(a_groups_keys_vanish_with_it) {
    wc::rendezvous_server const server{"127.0.0.1:0"};
    wc::rendezvous_client watcher{server.at(), soon()};
    watcher.set("mine", "stays", soon());
    for (int i = 0; i < 10; ++i) {
        auto members = form(server.at(), "g", 2);
        for (auto& one : members) one.client->set(one.group.key_prefix + "k", "v", soon());
    }
    while (watcher.counts(soon()).groups != 0) std::this_thread::sleep_for(1ms);
    BOOST_TEST(watcher.counts(soon()).keys == 1U);
}

BOOST_AUTO_TEST_SUITE_END()
