// SPDX-License-Identifier: Apache-2.0
// B14: a bare IPv6 address made a malformed URL, or was cut at its first colon.
#include <boost/test/unit_test.hpp>

#include <string>

#include <support/remote_rank.hpp>
#include <weightcast/comm/endpoint.hpp>

namespace {

using namespace weightcast;
using namespace weightcast::test;

BOOST_AUTO_TEST_SUITE(b14)

BOOST_AUTO_TEST_CASE(b14_addresses_parse_format_and_parse_again) {
    for (std::string const host :
         {"::1", "[::1]", "fd00::5", "127.0.0.1", "localhost", "fe80::1%eth0"}) {
        endpoint const at{host, 29500};
        BOOST_TEST(at.port() == 29500);
        BOOST_TEST((endpoint{to_string(at)} == at), to_string(at));
        BOOST_TEST((endpoint{at.host(), at.port()} == at), to_string(at));
    }
    BOOST_TEST((endpoint{"::1", 29500} == endpoint{"[::1]", 29500}));
    BOOST_CHECK_THROW(endpoint{"host:99999"}, bad_argument);
    BOOST_CHECK_THROW(endpoint{":29500"}, bad_argument);
}

BOOST_AUTO_TEST_CASE(b14_two_processes_meet_at_ipv6_loopback) {
    for (std::string const host : {"::1", "[::1]"}) {
        remote_rank receiver;
        gloo_options options{.name = "b14", .rank = 0, .size = 2, .at = endpoint{host, 0}};
        options.on_listening = [&](endpoint const& at) {
            receiver.join(to_string(at), "b14", 1, 2);
        };
        auto c = gloo_communicator::join(options);
        BOOST_REQUIRE(receiver.answer() == "joined");
        receiver.broadcast(0, 100'000, 3);
        BOOST_TEST(broadcast_once(c, 0, 100'000, 3, patient()) == "ok");
        BOOST_TEST(receiver.answer() == "ok");
    }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
