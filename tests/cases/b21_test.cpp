// SPDX-License-Identifier: Apache-2.0
// B21: after a trainer crash the server kept a dead communicator, and had to be restarted. Here: the
// communicator's part of it.
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <memory>
#include <string>

#include <support/remote_rank.hpp>

namespace {

using namespace weightcast;
using namespace weightcast::test;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(b21)

bool has(std::string const& text, std::string const& part) {
    return text.find(part) != std::string::npos;
}

BOOST_AUTO_TEST_CASE(b21_a_new_sender_joins_the_same_group_after_a_crash) {
    scoped_log_sink const quiet{[](std::string_view) {}};
    auto sender = std::make_unique<remote_rank>();
    sender->join("127.0.0.1:0", "weights", 0, 2);
    auto const at = sender->answer().substr(10);  // "listening 127.0.0.1:P"
    auto receiver = gloo_communicator::join({.name = "weights", .rank = 1, .size = 2, .at = at});
    BOOST_REQUIRE(sender->answer() == "joined");

    for (std::uint64_t crash = 0; crash < 3; ++crash) {
        // an update of two tensors; the sender dies between them
        sender->broadcast(0, 50'000, 10 + crash);
        BOOST_TEST(broadcast_once(receiver, 0, 50'000, 10 + crash, patient()) == "ok");
        BOOST_TEST(sender->answer() == "ok");
        sender->process().kill();
        auto const second = broadcast_once(receiver, 0, 50'000, 20, patient());
        BOOST_TEST(has(second, "failed peer_error suspect 0"), second);

        // the same name, the same port, another process; this one goes on
        sender = std::make_unique<remote_rank>();
        sender->join(at, "weights", 0, 2);
        receiver = gloo_communicator::join({.name = "weights", .rank = 1, .size = 2, .at = at});
        BOOST_REQUIRE(sender->answer().starts_with("listening"));
        BOOST_REQUIRE(sender->answer() == "joined");
        for (std::uint64_t tensor = 0; tensor < 2; ++tensor) {
            sender->broadcast(0, 50'000, 30 + tensor);
            BOOST_TEST(broadcast_once(receiver, 0, 50'000, 30 + tensor, patient()) == "ok");
            BOOST_TEST(sender->answer() == "ok");
        }
    }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
