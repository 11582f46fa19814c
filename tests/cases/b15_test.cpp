// SPDX-License-Identifier: Apache-2.0
// B15: a client tried to reach the any-address that the server merely binds to.
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <string>

#include <support/remote_rank.hpp>
#include <support/says.hpp>

namespace {

using namespace weightcast;
using namespace weightcast::test;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(b15)

BOOST_AUTO_TEST_CASE(b15_an_any_address_needs_an_advertised_one) {
    for (std::string const host : {"0.0.0.0", "::"}) {
        for (int const rank : {0, 1}) {
            gloo_options const options{.rank = rank, .size = 2, .at = endpoint{host, 29500}};
            auto const begin = std::chrono::steady_clock::now();
            BOOST_CHECK_EXCEPTION(gloo_communicator::join(options), bad_argument,
                                  says({"advertise address needed", host}));
            BOOST_TEST((std::chrono::steady_clock::now() - begin < 10s));  // at configuration
        }
    }
    gloo_options const useless{.rank = 1, .size = 2, .at = "0.0.0.0:29500", .advertise = "::"};
    BOOST_CHECK_EXCEPTION(gloo_communicator::join(useless), bad_argument, says("advertise is ::"));
}

BOOST_AUTO_TEST_CASE(b15_the_advertised_address_is_the_one_that_is_reached) {
    remote_rank receiver;
    gloo_options options{
        .name = "b15", .rank = 0, .size = 2, .at = "0.0.0.0:0", .advertise = "127.0.0.1"};
    options.on_listening = [&](endpoint const& at) {
        BOOST_TEST(at.host() == "0.0.0.0");
        receiver.join(to_string(endpoint{"127.0.0.1", at.port()}), "b15", 1, 2);
    };
    auto c = gloo_communicator::join(options);
    BOOST_REQUIRE(receiver.answer() == "joined");
    receiver.broadcast(0, 1000, 3);
    BOOST_TEST(broadcast_once(c, 0, 1000, 3, patient()) == "ok");
    BOOST_TEST(receiver.answer() == "ok");
}

BOOST_AUTO_TEST_CASE(b15_a_failed_connect_names_host_port_and_time) {
    endpoint nobody;
    { nobody = listen_socket{"127.0.0.1:0"}.at(); }
    gloo_options options{.name = "b15", .rank = 1, .size = 2, .at = nobody};
    options.connect_deadline = 400ms;
    BOOST_CHECK_EXCEPTION(gloo_communicator::join(options), timeout,
                          says({"127.0.0.1:" + std::to_string(nobody.port()), "within 0.", " s"}));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
