// SPDX-License-Identifier: Apache-2.0
// Three hosts: network namespaces of their own, joined by a bridge in a fourth. One is cut off in the middle of an update,
// one has a slow link. Skipped, with the reason, where this machine allows no namespaces.
#include <boost/test/unit_test.hpp>

#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include <support/update_fleet.hpp>

namespace weightcast::test {
namespace {

using namespace std::chrono_literals;
using clock_type = std::chrono::steady_clock;

/// Runs a program of the system; true when it succeeds. Its words go to the test's log.
bool succeeds(std::string const& command) { return std::system(command.c_str()) == 0; }

/// Namespaces with addresses 10.77.0.1.. and fd77::1..; gone with this object.
class three_hosts {
  public:
    static constexpr int count = 3;

    three_hosts() {
        must("ip netns add " + wires());
        for (int i = 0; i < count; ++i) must("ip netns add " + name(i));
        must(on_wires("link add br0 type bridge mcast_snooping 0 forward_delay 0"));
        must(on_wires("link set br0 up"));
        for (int i = 0; i < count; ++i) plug_in(i);
    }
    three_hosts(three_hosts const&) = delete;
    ~three_hosts() {
        for (int i = 0; i < count; ++i) succeeds("ip netns del " + name(i));
        succeeds("ip netns del " + wires());
    }
    std::vector<std::string> names() const { return {name(0), name(1), name(2)}; }
    /// No packet goes to that host or comes from it, and nobody is told.
    void cut_off(int host) { must(on_wires("link set p" + std::to_string(host) + " down")); }
    void mend(int host) { must(on_wires("link set p" + std::to_string(host) + " up")); }
    /// False where this kernel has no such queue.
    bool slow_down(int host, std::string const& rate) {
        return succeeds("ip netns exec " + wires() + " tc qdisc add dev p" + std::to_string(host) +
                        " root tbf rate " + rate + " burst 32kb latency 400ms");
    }

    /// For Boost.Test: whether this machine allows it.
    static boost::test_tools::assertion_result allowed(boost::unit_test::test_unit_id) {
        auto const probe = "wc" + std::to_string(::getpid()) + "probe";
        bool const made = succeeds("ip netns add " + probe + " 2>/dev/null");
        bool const wired =
            made && succeeds("ip -n " + probe + " link add br0 type bridge 2>/dev/null");
        if (made) succeeds("ip netns del " + probe);
        boost::test_tools::assertion_result result{wired};
        if (!made) result.message() << "`ip netns add` is not allowed here, or iproute2 is missing";
        if (made && !wired) result.message() << "this kernel has no bridges";
        return result;
    }

  private:
    static std::string prefix() { return "wc" + std::to_string(::getpid()); }
    static std::string wires() { return prefix() + "wires"; }
    static std::string name(int host) { return prefix() + "host" + std::to_string(host); }
    static std::string on_wires(std::string const& words) {
        return "ip -n " + wires() + " " + words;
    }
    static void must(std::string const& command) {
        if (!succeeds(command)) throw std::runtime_error{"failed: " + command};
    }
    static void plug_in(int host) {
        auto const port = "p" + std::to_string(host);
        auto const here = "ip -n " + name(host) + " ";
        auto const number = std::to_string(host + 1);
        must(on_wires("link add " + port + " type veth peer name e0 netns " + name(host)));
        must(on_wires("link set " + port + " master br0 up"));
        must(here + "addr add 10.77.0." + number + "/24 dev e0");
        must(here + "-6 addr add fd77::" + number + "/64 dev e0 nodad");
        must(here + "link set lo up");
        must(here + "link set e0 up");
    }
};
auto const where_allowed = boost::unit_test::precondition(&three_hosts::allowed);

std::vector<std::string> const families{"10.77.0.1:0", "[fd77::1]:0"};

BOOST_AUTO_TEST_SUITE(hosts)

BOOST_AUTO_TEST_CASE(a_host_that_is_cut_off_in_mid_transfer_is_named_and_comes_back,
                     *where_allowed) {
    for (auto const& at : families) {
        BOOST_TEST_CONTEXT(at) {
            three_hosts hosts;
            update_fleet fleet{at, hosts.names(), update_fleet::stall};
            fleet.form();
            fleet.good_update(1);
            BOOST_REQUIRE(fleet.of(2).ask("stop payload") == "set");
            fleet.begin_update(2);
            BOOST_REQUIRE(fleet.of(2).line() == "at payload");
            auto const cut = clock_type::now();
            hosts.cut_off(2);
            fleet.of(2).tell("go");
            for (int const rank : {0, 1})
                check_failure(fleet.of(rank).hear(), "payload", 2, cut, update_fleet::stall);
            auto const alone = fleet.of(2).hear();  // it sees no other: whom it names is its guess
            BOOST_TEST(alone.begins("failed "), alone.text);
            BOOST_TEST(alone.has(" in payload "), alone.text);
            BOOST_TEST((alone.at - cut < update_fleet::stall + update_fleet::margin), alone.text);
            for (int const rank : {1, 2}) BOOST_TEST(fleet.of(rank).ask("state") == "mixed 1");
            hosts.mend(2);
            fleet.form();  // the same three processes
            fleet.good_update(3);
        }
    }
}

BOOST_AUTO_TEST_CASE(a_slow_link_is_no_dead_one, *where_allowed) {
    for (auto const& at : families) {
        BOOST_TEST_CONTEXT(at) {
            three_hosts hosts;
            update_fleet fleet{at, hosts.names(), 6000ms};
            fleet.form();
            fleet.good_update(1);
            if (!hosts.slow_down(2, "2mbit")) {
                BOOST_TEST_MESSAGE("skipped: this kernel limits no rates (tc, tbf)");
                return;
            }
            auto const began = clock_type::now();
            fleet.good_update(2);  // 0.7 MB at 0.25 MB/s
            BOOST_TEST((clock_type::now() - began > 2s));
        }
    }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weightcast::test
