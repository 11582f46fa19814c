// SPDX-License-Identifier: Apache-2.0
// B16: a free port was probed, released, and bound later by someone else.
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <iostream>
#include <set>
#include <string>
#include <vector>

#include <support/child_process.hpp>
#include <weightcast/comm/listen_socket.hpp>

namespace wc = weightcast;
using namespace std::chrono_literals;
using weightcast::test::child_process;

namespace {

/// A round a line: binds port 0, says which port it got, and holds it until the next line.
int bind_each_round(weightcast::test::child_arguments const&) {
    wc::listen_socket held;
    for (std::string line; std::getline(std::cin, line) && line != "end";) {
        held = wc::listen_socket{"127.0.0.1:0"};
        std::cout << held.at().port() << std::endl;
    }
    return 0;
}
weightcast::test::child const binder{"b16_bind_each_round", &bind_each_round};

}  // namespace

BOOST_AUTO_TEST_SUITE(b16)

BOOST_AUTO_TEST_CASE(b16_sixteen_processes_never_get_one_port_twice) {
    constexpr int processes = 16;
    constexpr int rounds = 50;
    auto const until = wc::deadline::after(90s);
    std::vector<child_process> children;
    for (int i = 0; i < processes; ++i) children.emplace_back("b16_bind_each_round");
    for (int round = 0; round < rounds; ++round) {
        for (auto& child : children) child.write_line("bind");  // all at once
        std::set<std::string> ports;
        for (auto& child : children) ports.insert(child.read_line(until));
        BOOST_TEST(ports.size() == std::size_t{processes});
        BOOST_TEST(!ports.contains("0"));
    }
    for (auto& child : children) child.write_line("end");
    for (auto& child : children) {
        BOOST_TEST(child.wait(until).value_or(weightcast::test::child_end{}) ==
                   (weightcast::test::child_end{0, 0}));
    }
}

BOOST_AUTO_TEST_CASE(b16_a_taken_fixed_port_is_in_use_at_once) {
    auto const until = wc::deadline::after(60s);
    child_process holder{"b16_bind_each_round"};
    holder.write_line("bind");
    auto const port = holder.read_line(until);
    auto const began = std::chrono::steady_clock::now();
    BOOST_CHECK_EXCEPTION((wc::listen_socket{wc::endpoint{"127.0.0.1", std::stoi(port)}, until}),
                          wc::system_failure, [&](wc::system_failure const& e) {
                              std::string const text = e.what();
                              return text.find(std::string{"port "}.append(port)) !=
                                         std::string::npos &&
                                     text.find("in use") != std::string::npos;
                          });
    BOOST_TEST((std::chrono::steady_clock::now() - began < 10s));
}

BOOST_AUTO_TEST_SUITE_END()
