// SPDX-License-Identifier: Apache-2.0
// B82: one of several workers failed and the fleet was left on two versions, or the failure was never checked.
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <support/fleet_rank.hpp>

namespace weightcast::test {
namespace {

using namespace std::chrono_literals;

/// A trainer and four receivers, each of these a process, that hold version 1.
struct four_receivers {
    std::shared_ptr<rendezvous_server> server =
        std::make_shared<rendezvous_server>(endpoint{"127.0.0.1:0"});
    fleet_sender<dense_trainer<gloo_communicator>> sender{
        dense_trainer<gloo_communicator>{
            joining<gloo_communicator>({.connect_deadline = 5s, .server = server}), fleet_packing(),
            fleet_transfer_limits()},
        {.name = "fleet", .at = server->at()},
        fleet_test_settings(failure_policy::stop)};
    std::vector<std::unique_ptr<fleet_rank>> ranks;

    four_receivers() {
        for (std::size_t i = 1; i <= 4; ++i) {
            ranks.push_back(std::make_unique<fleet_rank>("r" + std::to_string(i), server->at()));
            sender.wait_for(i, deadline::after(60s));
        }
        BOOST_REQUIRE(send(1).ok());
    }
    fleet_rank& third() { return *ranks[2]; }
    fleet_result send(std::uint64_t seed) {
        test_model const model{cpu_device, fleet_specs(), seed};
        auto source = model.source();
        return sender.update(source);
    }
    fleet_result repair(std::uint64_t seed) {
        test_model const model{cpu_device, fleet_specs(), seed};
        auto source = model.source();
        return sender.repair(source, {"r3"});
    }
    void others_hold(std::string const& state) {
        for (std::size_t const i : {0U, 1U, 3U}) BOOST_TEST(ranks[i]->state() == state);
    }
};

void check(fleet_result const& result, bool ok, std::string const& members) {
    BOOST_TEST(result.ok() == ok, result.message);
    BOOST_TEST(text_of(result) == members, text_of(result) << ": " << result.message);
}
/// The third is brought to version 2, by itself; then all go on together.
void check_repair(four_receivers& fleet) {
    check(fleet.repair(2), true, "r3 updated 2");
    BOOST_TEST(fleet.third().state() == "2 whole " + digest_of_seed(2));
    fleet.others_hold("2 whole " + digest_of_seed(2));
    auto const next = fleet.send(3);
    BOOST_TEST(next.ok(), next.message);
    BOOST_TEST(next.count(member_status::updated) == 4U);
}

BOOST_AUTO_TEST_SUITE(b82)

BOOST_AUTO_TEST_CASE(b82_a_receiver_whose_caches_stay_is_named_and_repaired_alone) {
    four_receivers fleet;
    fleet.third().trouble("hook");
    auto const result = fleet.send(2);
    check(result, false, "r1 updated 2, r2 updated 2, r3 not serving 2, r4 updated 2");
    BOOST_TEST(result.of("r3").message.find("no cache answers") != std::string::npos);
    BOOST_CHECK_THROW(static_cast<void>(result.or_throw()), peer_error);
    check_repair(fleet);
}

BOOST_AUTO_TEST_CASE(b82_a_receiver_that_is_left_behind_is_named_and_repaired_alone) {
    four_receivers fleet;
    fleet.third().trouble("lag");
    auto const result = fleet.send(2);
    check(result, false, "r1 updated 2, r2 updated 2, r3 rolled back 1, r4 updated 2");
    BOOST_TEST(result.message.find("member 'r3' is rolled back at version 1") != std::string::npos);
    check_repair(fleet);
}

BOOST_AUTO_TEST_CASE(b82_a_receiver_killed_before_its_commit_is_repaired_after_its_restart) {
    four_receivers fleet;
    fleet.third().trouble("commit");
    auto const result = fleet.send(2);
    check(result, false, "r1 updated 2, r2 updated 2, r3 unknown 1, r4 updated 2");
    BOOST_TEST(fleet.sender.forget("r3"));
    fleet.ranks[2] = std::make_unique<fleet_rank>("r3", fleet.server->at());  // with old weights
    BOOST_TEST(fleet.third().state().starts_with("default "));
    fleet.sender.wait_for(4, deadline::after(60s));
    check_repair(fleet);
}

BOOST_AUTO_TEST_CASE(b82_when_one_votes_no_nobody_has_published_and_the_next_update_reaches_all) {
    four_receivers fleet;
    fleet.third().trouble("vote-no");
    auto const result = fleet.send(2);
    check(result, false, "r1 rolled back 1, r2 rolled back 1, r3 refused 1, r4 rolled back 1");
    BOOST_TEST(result.message.find("a full disk") != std::string::npos);
    BOOST_TEST(fleet.sender.version().number == 1U);
    auto const next = fleet.send(3);
    check(next, true, "r1 updated 3, r2 updated 3, r3 updated 3, r4 updated 3");
    BOOST_TEST(fleet.third().state() == "3 whole " + digest_of_seed(3));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weightcast::test
