// SPDX-License-Identifier: Apache-2.0
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <string>
#include <vector>

#include <support/says.hpp>
#include <weightcast/comm/detail/interfaces.hpp>
#include <weightcast/comm/resolve.hpp>

BOOST_AUTO_TEST_SUITE(interfaces)

namespace wc = weightcast;
namespace detail = weightcast::detail;
using weightcast::test::says;

namespace {

detail::socket_address address(std::string const& host, int port = 0) {
    return wc::resolve({host, port}, wc::deadline::after(std::chrono::seconds{10})).front();
}
/// A machine with loopback, a wired and a fast network.
std::vector<detail::interface_address> machine() {
    return {{"lo", address("127.0.0.1")},
            {"eth0", address("192.0.2.2")},
            {"ib0", address("198.51.100.9")},
            {"lo", address("::1")},
            {"eth0", address("fd00::2")}};
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_way_to_the_rendezvous_is_taken) {
    auto const wired =
        detail::choose_interface({{}, "192.0.2.1", address("192.0.2.2", 4711), {}}, machine());
    BOOST_TEST(wired.chosen.interface == "eth0");
    BOOST_TEST(wired.chosen.address.host() == "192.0.2.2");
    BOOST_TEST(wired.warning == "");
    auto const six = detail::choose_interface({{}, "fd00::1", address("fd00::2"), {}}, machine());
    BOOST_TEST(six.chosen.interface == "eth0");
    BOOST_TEST(six.chosen.address.host() == "fd00::2");
    auto const named =
        detail::choose_interface({{}, "trainer-0", address("198.51.100.9"), {}}, machine());
    BOOST_TEST(named.chosen.interface == "ib0");
    BOOST_TEST(named.warning == "");
}

BOOST_AUTO_TEST_CASE(loopback_is_fine_where_it_was_asked_for) {
    for (std::string const host : {"127.0.0.1", "::1", "localhost", "127.0.1.1"}) {
        auto const towards = host == "localhost" ? address("127.0.0.1") : address(host);
        auto const choice = detail::choose_interface({{}, host, towards, {}}, machine());
        BOOST_TEST(choice.chosen.interface == "lo");
        BOOST_TEST(choice.chosen.address.host() == towards.host());
        BOOST_TEST(choice.warning == "");
    }
}

BOOST_AUTO_TEST_CASE(a_host_name_that_is_only_loopback_is_warned_of) {
    auto const choice =
        detail::choose_interface({{}, "node7", address("127.0.1.1"), {}}, machine());
    BOOST_TEST(choice.chosen.interface == "lo");
    for (auto const* part :
         {"'node7'", "127.0.1.1", "'lo'", "gloo_options::interface", "eth0 (192.0.2.2"}) {
        BOOST_TEST(choice.warning.find(part) != std::string::npos,
                   part << " in " << choice.warning);
    }
}

BOOST_AUTO_TEST_CASE(the_explicit_option_wins) {
    auto const by_name =
        detail::choose_interface({"ib0", "192.0.2.1", address("192.0.2.2"), {}}, machine());
    BOOST_TEST(by_name.chosen.address.host() == "198.51.100.9");
    auto const by_address = detail::choose_interface(
        {"198.51.100.9", "192.0.2.1", address("192.0.2.2"), {}}, machine());
    BOOST_TEST(by_address.chosen.interface == "ib0");
    auto const over_advertised = detail::choose_interface(
        {"ib0", "192.0.2.1", address("192.0.2.2"), {address("192.0.2.2")}}, machine());
    BOOST_TEST(over_advertised.chosen.interface == "ib0");
    auto const over_loopback =
        detail::choose_interface({"eth0", "node7", address("127.0.1.1"), {}}, machine());
    BOOST_TEST(over_loopback.chosen.interface == "eth0");
    BOOST_TEST(over_loopback.warning == "");
    auto const of_the_family =
        detail::choose_interface({"eth0", "fd00::1", address("fd00::2"), {}}, machine());
    BOOST_TEST(of_the_family.chosen.address.host() == "fd00::2");
}

BOOST_AUTO_TEST_CASE(an_unknown_interface_lists_the_known_ones) {
    BOOST_CHECK_EXCEPTION(
        detail::choose_interface({"eth7", "h", address("192.0.2.2"), {}}, machine()),
        wc::bad_argument,
        says({"'eth7'", "lo (127.0.0.1, ::1)", "eth0 (192.0.2.2, fd00::2)", "ib0"}));
    BOOST_CHECK_EXCEPTION(detail::choose_interface({"ib0", "h", address("fd00::2"), {}}, machine()),
                          wc::bad_argument, says({"'ib0'", "no IPv6 address"}));
    BOOST_CHECK_EXCEPTION(detail::choose_interface({"eth7", "h", address("192.0.2.2"), {}}, {}),
                          wc::bad_argument, says("none"));
}

BOOST_AUTO_TEST_CASE(an_advertised_address_must_be_ours) {
    auto const choice = detail::choose_interface(
        {{}, "0.0.0.0", address("127.0.0.1"), {address("203.0.113.1"), address("198.51.100.9")}},
        machine());
    BOOST_TEST(choice.chosen.interface == "ib0");
    BOOST_CHECK_EXCEPTION(detail::choose_interface(
                              {{}, "h", address("192.0.2.2"), {address("203.0.113.1")}}, machine()),
                          wc::bad_argument, says({"203.0.113.1", "gloo_options::interface"}));
}

BOOST_AUTO_TEST_CASE(an_address_on_no_interface_is_said_to_be_so) {
    BOOST_CHECK_EXCEPTION(
        detail::choose_interface({{}, "h", address("203.0.113.1"), {}}, machine()),
        wc::bad_argument, says("203.0.113.1"));
}

BOOST_AUTO_TEST_CASE(this_machine_has_a_loopback) {
    auto const all = detail::list_interfaces();
    bool found = false;
    for (auto const& one : all) found = found || one.address.is_loopback();
    BOOST_TEST(found);
    BOOST_TEST(detail::describe(all).find("127.0.0.1") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
