// SPDX-License-Identifier: Apache-2.0
// B18: the host name resolved only to loopback, and the transport fell back to it in silence.
#include <boost/test/unit_test.hpp>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <future>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <support/remote_rank.hpp>
#include <support/says.hpp>
#include <weightcast/comm/detail/interfaces.hpp>

namespace {

using namespace weightcast;
using namespace weightcast::test;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(b18)

bool has(std::string const& text, std::string const& part) {
    return text.find(part) != std::string::npos;
}

/// Joins a group of two whose ranks differ in `adjust`; what each rank got: "joined" or an error.
template <class Adjust>
std::vector<std::string> outcomes_of_two(Adjust adjust) {
    std::vector<std::string> outcomes(2);
    std::promise<endpoint> listening;
    auto const where = listening.get_future().share();
    std::vector<std::thread> threads;
    for (int rank = 0; rank < 2; ++rank) {
        threads.emplace_back([&, rank] {
            auto& outcome = outcomes[static_cast<std::size_t>(rank)];
            try {
                gloo_options options{.name = "b18", .rank = rank, .size = 2};
                options.at = "127.0.0.1:0";
                options.connect_deadline = 20s;
                adjust(options);
                options.on_listening = [&](endpoint const& at) { listening.set_value(at); };
                // where rank 0 fails before it listens, rank 1 must not need it
                if (rank == 1 && where.wait_for(2s) == std::future_status::ready) {
                    options.at = options.at.with_port(where.get().port());
                } else if (rank == 1) {
                    options.at = options.at.with_port(9);
                }
                auto const c = gloo_communicator::join(options);
                outcome = "joined";
            } catch (...) {
                outcome = describe_exception();
            }
        });
    }
    for (auto& thread : threads) thread.join();
    return outcomes;
}

std::optional<detail::interface_address> other_interface() {
    auto const all = detail::list_interfaces();
    auto const found = std::ranges::find_if(all, [](auto const& one) {
        return !one.address.is_loopback() && one.address.family() == AF_INET;
    });
    if (found == all.end()) return std::nullopt;
    return *found;
}

BOOST_AUTO_TEST_CASE(b18_a_name_that_is_only_loopback_is_warned_of) {
    detail::interface_wish wish{.host = "node7"};
    wish.towards = resolve({"127.0.1.1", 0}, deadline::after(10s)).front();
    auto const choice = detail::choose_interface(wish, detail::list_interfaces());
    BOOST_TEST(has(choice.warning, "'node7'"), choice.warning);
    BOOST_TEST(has(choice.warning, "interface 'lo'"), choice.warning);
    BOOST_TEST(has(choice.warning, "set gloo_options::interface"), choice.warning);
}

BOOST_AUTO_TEST_CASE(b18_the_warning_is_logged_where_this_machine_is_such_a_one) {
    std::array<char, 256> name{};
    BOOST_REQUIRE(gethostname(name.data(), name.size() - 1) == 0);
    std::string const host{name.data()};
    std::vector<detail::socket_address> addresses;
    try {
        addresses = resolve({host, 0}, deadline::after(10s));
    } catch (error const&) {}
    auto const loopback = [](auto const& a) { return a.is_loopback(); };
    if (host == "localhost" || addresses.empty() || !std::ranges::all_of(addresses, loopback)) {
        BOOST_TEST_MESSAGE("skipped: this machine's name is no loopback address");
        return;
    }
    std::mutex mutex;
    std::vector<std::string> lines;
    scoped_log_sink const sink{[&](std::string_view line) {
        std::lock_guard const lock{mutex};
        lines.emplace_back(line);
    }};
    for (auto const& outcome :
         outcomes_of_two([&](gloo_options& o) { o.at = endpoint{host, 0}; })) {
        BOOST_TEST(outcome == "joined");
    }
    BOOST_TEST(lines.size() == 2U);  // one a rank
    for (auto const& line : lines) BOOST_TEST(has(line, "gloo_options::interface"), line);
}

BOOST_AUTO_TEST_CASE(b18_the_explicit_interface_wins) {
    for (auto const& outcome : outcomes_of_two([](gloo_options& o) { o.interface = "lo"; })) {
        BOOST_TEST(outcome == "joined");
    }
    auto const other = other_interface();
    if (!other) return;
    auto const outcomes = outcomes_of_two([&](gloo_options& o) { o.interface = other->interface; });
    for (auto const& outcome : outcomes) BOOST_TEST(outcome == "joined");
}

BOOST_AUTO_TEST_CASE(b18_an_unknown_interface_lists_those_there_are) {
    auto const outcomes = outcomes_of_two([](gloo_options& o) { o.interface = "eth99"; });
    for (auto const& outcome : outcomes) {
        BOOST_TEST(has(outcome, "interface 'eth99' is none of this machine's"), outcome);
        BOOST_TEST(has(outcome, "lo (127.0.0.1"), outcome);
    }
}

BOOST_AUTO_TEST_CASE(b18_loopback_on_one_side_only_is_an_error_that_names_both) {
    auto const other = other_interface();
    if (!other) {
        BOOST_TEST_MESSAGE("skipped: this machine has loopback only");
        return;
    }
    auto const begin = std::chrono::steady_clock::now();
    auto const outcomes = outcomes_of_two([&](gloo_options& o) {
        if (o.rank == 1) o.interface = other->interface;
    });
    BOOST_TEST((std::chrono::steady_clock::now() - begin < 15s));  // and not at the deadline
    for (auto const& outcome : outcomes) {
        BOOST_TEST(has(outcome, "rank 0 at 127.0.0.1 (interface lo)"), outcome);
        BOOST_TEST(has(outcome, "rank 1 at " + other->address.host()), outcome);
    }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
