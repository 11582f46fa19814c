// SPDX-License-Identifier: Apache-2.0
// Fleets: who takes part in which update, who is dropped, who waits, and what each holds afterwards.
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <support/fleet_rank.hpp>
#include <support/test_source.hpp>

namespace weightcast::test {
namespace {

using namespace std::chrono_literals;

// --- what does not compile ---
using local_trainer = dense_trainer<local_communicator>;
using local_sender = fleet_sender<local_trainer>;
template <class S, class Source>
concept updates_from = requires(S& s, Source&& source) { s.update(std::forward<Source>(source)); };
template <class S, class Source>
concept repairs_from =
    requires(S& s, Source&& source) { s.repair(std::forward<Source>(source), {}); };
static_assert(updates_from<local_sender, table_source<>&> &&
              repairs_from<local_sender, table_source<>&>);
static_assert(!updates_from<local_sender, table_source<>> &&
              !repairs_from<local_sender, table_source<>>);
static_assert(!updates_from<local_sender, int&>);
template <class E>
concept makes_a_fleet_sender = requires { typename fleet_sender<E>; };
template <class E>
concept makes_a_fleet_member = requires { typename fleet_member<E>; };
static_assert(makes_a_fleet_sender<local_trainer> && !makes_a_fleet_sender<test_engine>);
static_assert(makes_a_fleet_member<test_engine> && !makes_a_fleet_member<local_trainer>);
static_assert(!std::constructible_from<local_trainer, communicator_factory<gloo_communicator>>);
static_assert(!std::is_move_constructible_v<fleet_member<test_engine>>);

/// A trainer in this process, with its server.
template <class C>
struct fleet_trainer {
    std::shared_ptr<rendezvous_server> server;
    fleet_sender<dense_trainer<C>> sender;

    fleet_trainer(communicator_factory<C> factory, std::shared_ptr<rendezvous_server> at,
                  fleet_settings settings)
        : server{std::move(at)},
          sender{dense_trainer<C>{std::move(factory), fleet_packing(), fleet_transfer_limits()},
                 {.name = "fleet", .at = server->at()},
                 settings} {}

    fleet_result send(std::uint64_t seed, update_options const& options = {}) {
        test_model const model{cpu_device, fleet_specs(), seed};
        auto source = model.source();
        return sender.update(source, options);
    }
    fleet_result repair(std::uint64_t seed, std::vector<std::string> const& ids) {
        test_model const model{cpu_device, fleet_specs(), seed};
        auto source = model.source();
        return sender.repair(source, ids);
    }
    void wait_for(std::size_t receivers) { sender.wait_for(receivers, deadline::after(60s)); }
};
std::shared_ptr<rendezvous_server> server_at(endpoint const& at = "127.0.0.1:0") {
    return std::make_shared<rendezvous_server>(at);
}
void check(fleet_result const& result, update_status status, std::string const& members) {
    BOOST_TEST(to_string(result.status) == to_string(status), result.message);
    BOOST_TEST(text_of(result) == members, text_of(result) << ": " << result.message);
    BOOST_TEST((result.failure == nullptr) == (status != update_status::failed));
}

// --- threads ---
struct local_fleet : local_halls {
    fleet_trainer<local_communicator> trainer;
    std::vector<std::unique_ptr<fleet_receiver<local_communicator>>> receivers;

    explicit local_fleet(int size, failure_policy policy = failure_policy::stop)
        : trainer{factory(), server_at(), fleet_test_settings(policy)} {
        for (int i = 1; i <= size; ++i) {
            add("r" + std::to_string(i));
            trainer.wait_for(static_cast<std::size_t>(i));
        }
    }
    fleet_receiver<local_communicator>& add(std::string const& id) {
        auto& one = receivers.emplace_back(std::make_unique<fleet_receiver<local_communicator>>(
            factory(), fleet_place{.name = "fleet", .at = trainer.server->at()}, id));
        one->serve([](std::string const&) {});
        return *one;
    }
    rendezvous_counts counts() const {
        auto const soon = deadline::after(5s);
        return rendezvous_client{trainer.server->at(), soon}.counts(soon);
    }
};

BOOST_AUTO_TEST_SUITE(fleet)

BOOST_AUTO_TEST_CASE(members_get_each_update_in_one_generation) {
    local_fleet fleet{3};
    for (std::uint64_t n = 1; n <= 3; ++n) {
        auto const v = std::to_string(n);
        check(fleet.trainer.send(100 * n), update_status::updated,
              "r1 updated " + v + ", r2 updated " + v + ", r3 updated " + v);
        BOOST_TEST(fleet.trainer.sender.generation() == 1U);
    }
    for (auto& one : fleet.receivers) BOOST_TEST(one->state() == "3 whole " + digest_of_seed(300));
    // keys of what is over do not pile up: queue, taken, trainer, generations and the current generation
    BOOST_TEST(fleet.counts().keys == 5U);
}

BOOST_AUTO_TEST_CASE(who_registers_later_comes_in_with_the_next_full_update) {
    local_fleet fleet{1};
    check(fleet.trainer.send(1), update_status::updated, "r1 updated 1");
    fleet.add("r2");
    fleet.trainer.wait_for(2);
    check(fleet.trainer.send(2, {.coverage = update_coverage::partial}), update_status::updated,
          "r1 updated 2, r2 pending default");
    BOOST_TEST(fleet.trainer.sender.generation() == 1U);
    check(fleet.trainer.send(3), update_status::updated, "r1 updated 3, r2 updated 3");
    BOOST_TEST(fleet.trainer.sender.generation() == 2U);
    check(fleet.trainer.send(4, {.coverage = update_coverage::partial}), update_status::updated,
          "r1 updated 4, r2 updated 4");
    BOOST_TEST(fleet.counts().keys == 5U);
}

BOOST_AUTO_TEST_CASE(a_receiver_that_leaves_is_not_waited_for) {
    local_fleet fleet{3};
    check(fleet.trainer.send(1), update_status::updated,
          "r1 updated 1, r2 updated 1, r3 updated 1");
    fleet.receivers[1]->stop();
    fleet.receivers[1]->member().leave();
    auto const begin = std::chrono::steady_clock::now();
    check(fleet.trainer.send(2), update_status::updated, "r1 updated 2, r3 updated 2");
    BOOST_TEST((std::chrono::steady_clock::now() - begin < 3s));
    BOOST_TEST(fleet.counts().keys == 5U);
}

BOOST_AUTO_TEST_CASE(a_fleet_without_receivers_is_a_failure) {
    local_fleet fleet{0};
    auto const result = fleet.trainer.send(1);
    check(result, update_status::failed, "");
    BOOST_CHECK_THROW(static_cast<void>(result.or_throw()), peer_error);
    BOOST_CHECK_THROW(fleet.trainer.sender.wait_for(1, deadline::after(300ms)), timeout);
}

BOOST_AUTO_TEST_CASE(under_stop_a_lost_receiver_fails_the_update_until_it_is_forgotten) {
    local_fleet fleet{2};
    check(fleet.trainer.send(1), update_status::updated, "r1 updated 1, r2 updated 1");
    auto& lost = *fleet.receivers[1];
    lost.trouble().set("payload", [&] { lost.member().interrupt(); });
    auto const result = fleet.trainer.send(2);
    BOOST_TEST(!result.ok());
    BOOST_TEST(result.of("r1").version.number == 1U);
    BOOST_TEST(result.attempts == 1);
    lost.stop();
    check(fleet.trainer.send(3), update_status::failed, "r1 unchanged 1, r2 unknown 1");
    BOOST_TEST(fleet.trainer.sender.forget("r2"));
    BOOST_TEST(!fleet.trainer.sender.forget("r2"));
    check(fleet.trainer.send(4), update_status::updated, "r1 updated 4");
    BOOST_TEST(fleet.receivers[0]->state() == "4 whole " + digest_of_seed(4));
}

BOOST_AUTO_TEST_CASE(under_continue_without_the_rest_get_the_same_version) {
    local_fleet fleet{3, failure_policy::continue_without};
    check(fleet.trainer.send(1), update_status::updated,
          "r1 updated 1, r2 updated 1, r3 updated 1");
    auto& lost = *fleet.receivers[1];
    lost.trouble().set("payload", [&] { fleet.receivers[1]->member().interrupt(); });
    std::jthread const ends{[&] {
        std::this_thread::sleep_for(50ms);
        lost.stop();
    }};
    auto const result = fleet.trainer.send(2);
    check(result, update_status::updated, "r1 updated 2, r3 updated 2, r2 dropped 1");
    BOOST_TEST(result.attempts == 2);
    BOOST_TEST(fleet.receivers[2]->state() == "2 whole " + digest_of_seed(2));
}

BOOST_AUTO_TEST_CASE(a_refusal_is_no_loss) {
    local_fleet fleet{2, failure_policy::continue_without};
    check(fleet.trainer.send(1), update_status::updated, "r1 updated 1, r2 updated 1");
    test_model const other{cpu_device, tensors_of_bytes({10}), 1};
    auto source = other.source();
    auto const result = fleet.trainer.sender.update(source);
    BOOST_TEST(!result.ok());
    BOOST_CHECK_THROW(static_cast<void>(result.or_throw()), refused_update);
    BOOST_TEST(text_of(result) == "r1 refused 1, r2 unchanged 1", text_of(result)
                                                                      << result.message);
    check(fleet.trainer.send(3), update_status::updated, "r1 updated 3, r2 updated 3");
    BOOST_TEST(fleet.trainer.sender.generation() == 1U);
}

BOOST_AUTO_TEST_CASE(what_a_source_throws_reaches_the_caller_and_the_fleet_forms_anew) {
    local_fleet fleet{2};
    test_model const model{cpu_device, fleet_specs(), 5};
    recording_source source{model};
    source.before = [](std::size_t i) {
        if (i == 2) throw std::runtime_error{"the optimizer is not done"};
    };
    BOOST_CHECK_THROW(fleet.trainer.sender.update(source), std::runtime_error);
    check(fleet.trainer.send(2), update_status::updated, "r1 updated 2, r2 updated 2");
}

BOOST_AUTO_TEST_CASE(wrong_places_limits_and_ids_are_told) {
    local_fleet fleet{1};
    auto const made = [&](fleet_place place, fleet_settings settings) {
        local_sender const sender{local_trainer{fleet.factory()}, std::move(place), settings};
    };
    auto const at = fleet.trainer.server->at();
    BOOST_CHECK_THROW(made({.name = "", .at = at}, {}), bad_argument);
    BOOST_CHECK_THROW(made({.name = "f"}, {}), bad_argument);
    BOOST_CHECK_THROW(made({.name = "f", .at = at}, {.limits = {.attempts = 0}}), bad_argument);
    BOOST_CHECK_THROW((fleet_receiver<local_communicator>{fleet.factory(), {.at = at}, ""}),
                      bad_argument);
    BOOST_CHECK_THROW(fleet.trainer.repair(1, {"r1"}), lifecycle_error);
    check(fleet.trainer.send(1), update_status::updated, "r1 updated 1");
    BOOST_CHECK_THROW(fleet.trainer.repair(1, {"r7"}), bad_argument);
    BOOST_CHECK_THROW(fleet.trainer.repair(1, {}), bad_argument);
}

BOOST_AUTO_TEST_CASE(a_member_without_a_trainer_gives_up_in_time) {
    local_halls halls;
    auto const server = server_at();
    fleet_receiver<local_communicator> alone{
        halls.factory(), {.name = "fleet", .at = server->at()}, "r1"};
    auto const begin = std::chrono::steady_clock::now();
    BOOST_TEST(alone.serve_one(1s).starts_with("timeout"));
    BOOST_TEST((std::chrono::steady_clock::now() - begin < 3s));
}

// --- processes ---
struct gloo_fleet {
    fleet_settings settings;
    std::unique_ptr<fleet_trainer<gloo_communicator>> trainer;
    std::vector<std::unique_ptr<fleet_rank>> ranks;

    gloo_fleet(int size, failure_policy policy) : settings{fleet_test_settings(policy)} {
        begin(server_at());
        for (int i = 1; i <= size; ++i) {
            add("r" + std::to_string(i));
            trainer->wait_for(static_cast<std::size_t>(i));
        }
    }
    void begin(std::shared_ptr<rendezvous_server> server) {
        auto factory = joining<gloo_communicator>({.connect_deadline = 5s, .server = server});
        trainer = std::make_unique<fleet_trainer<gloo_communicator>>(std::move(factory), server,
                                                                     settings);
    }
    fleet_rank& add(std::string const& id) {
        return *ranks.emplace_back(std::make_unique<fleet_rank>(id, trainer->server->at()));
    }
};

BOOST_AUTO_TEST_CASE(
    a_receiver_killed_in_the_payload_is_dropped_and_one_that_registers_meanwhile_is_next) {
    gloo_fleet fleet{4, failure_policy::continue_without};
    check(fleet.trainer->send(1), update_status::updated,
          "r1 updated 1, r2 updated 1, r3 updated 1, r4 updated 1");
    fleet.ranks[1]->trouble("payload");
    test_model const model{cpu_device, fleet_specs(), 2};
    recording_source source{model};
    bool added = false;
    source.before = [&](std::size_t i) {
        if (i != 2 || std::exchange(added, true)) return;
        fleet.add("r5");
        fleet.trainer->wait_for(5);
    };
    auto const result = fleet.trainer->sender.update(source);
    BOOST_TEST(result.ok(), result.message);
    BOOST_TEST(result.attempts == 2);
    BOOST_TEST(result.version.number == 2U);
    BOOST_TEST((result.of("r2").status == member_status::dropped));
    for (auto const* id : {"r1", "r3", "r4"}) {
        BOOST_TEST((result.of(id).status == member_status::updated));
        BOOST_TEST(result.of(id).version.number == 2U);
    }
    BOOST_TEST((result.of("r5").status == member_status::pending), text_of(result));
    for (std::size_t const i : {0U, 2U, 3U})
        BOOST_TEST(fleet.ranks[i]->state() == "2 whole " + digest_of_seed(2));
    check(fleet.trainer->send(3), update_status::updated,
          "r1 updated 3, r3 updated 3, r4 updated 3, r5 updated 3");
    BOOST_TEST(fleet.ranks[4]->state() == "3 whole " + digest_of_seed(3));
}

BOOST_AUTO_TEST_CASE(when_all_receivers_are_killed_the_update_is_an_error) {
    gloo_fleet fleet{4, failure_policy::continue_without};
    check(fleet.trainer->send(1), update_status::updated,
          "r1 updated 1, r2 updated 1, r3 updated 1, r4 updated 1");
    for (auto& one : fleet.ranks) one->trouble("payload");
    auto const begin = std::chrono::steady_clock::now();
    auto const result = fleet.trainer->send(2);
    BOOST_TEST(!result.ok());
    BOOST_TEST(result.members.size() == 4U);
    BOOST_TEST(result.count(member_status::dropped) == 4U, text_of(result));
    BOOST_CHECK_THROW(static_cast<void>(result.or_throw()), error);
    BOOST_TEST((std::chrono::steady_clock::now() - begin < 60s));
    fleet.add("r1");
    fleet.trainer->wait_for(1);
    check(fleet.trainer->send(3), update_status::updated, "r1 updated 3");
}

BOOST_AUTO_TEST_CASE(a_process_that_leaves_is_not_waited_for_and_one_killed_while_idle_is_dropped) {
    gloo_fleet fleet{3, failure_policy::continue_without};
    check(fleet.trainer->send(1), update_status::updated,
          "r1 updated 1, r2 updated 1, r3 updated 1");
    fleet.ranks[0]->leave();
    check(fleet.trainer->send(2), update_status::updated, "r2 updated 2, r3 updated 2");
    fleet.ranks[1]->process().kill();
    check(fleet.trainer->send(3), update_status::updated, "r3 updated 3, r2 dropped 2");
}

BOOST_AUTO_TEST_CASE(a_process_that_died_after_it_registered_costs_no_connect_deadline) {
    gloo_fleet fleet{2, failure_policy::continue_without};
    fleet.ranks[1]->process().kill();
    auto const result = fleet.trainer->send(1);
    check(result, update_status::updated, "r1 updated 1, r2 dropped default");
    BOOST_TEST(result.attempts == 1);
    BOOST_TEST(result.of("r2").message.find("did not answer") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(receivers_find_a_trainer_that_was_restarted) {
    gloo_fleet fleet{2, failure_policy::stop};
    check(fleet.trainer->send(1), update_status::updated, "r1 updated 1, r2 updated 1");
    auto const at = fleet.trainer->server->at();
    fleet.trainer.reset();
    fleet.begin(server_at(at));  // with its server
    fleet.trainer->wait_for(2);
    BOOST_TEST(fleet.trainer->send(5, {.number = 5}).ok());
    auto const kept = fleet.trainer->server;  // the server outlives the next trainer
    fleet.trainer.reset();
    fleet.begin(kept);
    fleet.trainer->wait_for(2);
    auto const result = fleet.trainer->send(6, {.number = 6});
    BOOST_TEST(result.ok(), result.message);
    for (auto& one : fleet.ranks) BOOST_TEST(one->state() == "6 whole " + digest_of_seed(6));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weightcast::test
