// SPDX-License-Identifier: Apache-2.0
// B30: a stuck transfer was waited for without a limit, and nothing told where it was.
#include <boost/test/unit_test.hpp>

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include <support/child_process.hpp>
#include <support/gloo_fleet.hpp>
#include <support/progress_hook.hpp>
#include <weightcast/engine/joining.hpp>
#include <weightcast/session/weight_sender.hpp>
#include <weightcast/session/weight_worker.hpp>

namespace weightcast::test {
namespace {

using namespace std::chrono_literals;
using clock_type = std::chrono::steady_clock;

constexpr std::int64_t tensor_bytes = std::int64_t{16} << 20U;
constexpr std::uint64_t chunk_bytes = std::uint64_t{4} << 20U;
constexpr int chunks_of_four_tensors = 16;

/// Ten tensors; their bytes are no matter.
struct ten_tensors {
    std::vector<std::vector<std::byte>> memory;
    ten_tensors() : memory(10, std::vector<std::byte>(static_cast<std::size_t>(tensor_bytes))) {}
    template <class AddTo>
    void add_to(AddTo& list) {
        for (std::size_t i = 0; i < memory.size(); ++i) {
            list.add("t" + std::to_string(i),
                     tensor_view<>{memory[i].data(), dtype::uint8, {tensor_bytes}});
        }
    }
};

/// A receiver whose whole process stands still when it has half of the fifth tensor. Argument: where to join.
int stand_still(child_arguments const& arguments) {
    ten_tensors held;
    parameter_tables<> tables;
    held.add_to(tables.main());
    progress_hook const hook{[](int step) {
        if (step != chunks_of_four_tensors + 1) return;
        std::cout << "still" << std::endl;
        ::kill(::getpid(), SIGSTOP);
    }};
    weight_worker worker{
        hooked_engine_over<gloo_communicator>{joining<gloo_communicator>(), tables, {}, hook},
        {.at = arguments.at(0), .rank = 1, .size = 2}};
    static_cast<void>(worker.serve_one());
    return 0;
}
child const still_receiver{"b30_receiver", &stand_still};

BOOST_AUTO_TEST_SUITE(b30)

BOOST_AUTO_TEST_CASE(
    b30_a_receiver_that_stops_reading_ends_the_update_within_the_limit_of_the_call) {
    ten_tensors model;
    table_source<> source;
    model.add_to(source);
    std::optional<child_process> receiver;
    gloo_options base{.grace = 1s};
    base.on_listening = [&](endpoint const& at) {
        receiver.emplace("b30_receiver", child_arguments{to_string(at)});
    };
    weight_sender sender{
        dense_trainer<gloo_communicator>{
            joining<gloo_communicator>(base),
            {.packing = {.chunk_bytes = chunk_bytes, .direct_from = std::uint64_t{1} << 40U}}},
        {{.at = "127.0.0.1:0", .rank = 0, .size = 2}}};
    BOOST_TEST(sender.engine().limits().stall == transfer_limits{}.stall);
    sender.engine().limits().stall = 2s;  // of this call and those after it

    auto const began = clock_type::now();
    auto const result = sender.update(source);
    auto const took = clock_type::now() - began;
    BOOST_TEST(receiver->read_line(deadline::after(10s)) == "still");
    BOOST_TEST((took < 4s), std::chrono::duration<double>(took).count());
    BOOST_TEST((took >= 2s));

    auto const& group = result.groups.at(0);
    BOOST_REQUIRE(group.failure != nullptr);
    BOOST_TEST((group.where == phase::payload));
    try {
        std::rethrow_exception(group.failure);
    } catch (timeout const& e) {
        auto const& facts = e.facts();
        BOOST_TEST(facts.tensor == "t4", e.what());
        BOOST_TEST((facts.where == phase::payload));
        BOOST_TEST(facts.suspect == 1);
        BOOST_TEST((group.ranks.at(1) == rank_status::lost));
        std::string const message = e.what();
        BOOST_TEST(message.find("payload: tensor 't4': no byte moved for 2000 ms") == 0U, message);
        BOOST_TEST(message.find("bytes done)") != std::string::npos, message);
    }
}

BOOST_AUTO_TEST_CASE(b30_every_default_limit_is_finite) {
    transfer_limits const limits;
    BOOST_TEST((limits.announcement == 30min));
    BOOST_TEST((limits.stall == 20s));
    BOOST_TEST((limits.update == 300s));
    BOOST_TEST((gloo_options{}.connect_deadline == 30s));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weightcast::test
