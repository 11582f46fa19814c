// SPDX-License-Identifier: Apache-2.0
#include <boost/test/unit_test.hpp>

#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <weightcast/base/log.hpp>

BOOST_AUTO_TEST_SUITE(base_log)

namespace wc = weightcast;

BOOST_AUTO_TEST_CASE(a_sink_hears_each_line_and_the_one_before_comes_back) {
    std::vector<std::string> outer;
    std::vector<std::string> inner;
    {
        wc::scoped_log_sink const first{[&](std::string_view line) { outer.emplace_back(line); }};
        wc::log_line("one");
        {
            wc::scoped_log_sink const second{
                [&](std::string_view line) { inner.emplace_back(line); }};
            wc::log_line("two");
        }
        wc::log_line("three");
    }
    BOOST_TEST(outer == (std::vector<std::string>{"one", "three"}),
               boost::test_tools::per_element());
    BOOST_TEST(inner == (std::vector<std::string>{"two"}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(setting_a_sink_returns_the_one_before) {
    int heard = 0;
    auto const before = wc::set_log_sink([&](std::string_view) { ++heard; });
    auto const mine = wc::set_log_sink(before);
    BOOST_TEST(static_cast<bool>(mine));
    mine("called by hand");
    BOOST_TEST(heard == 1);
}

BOOST_AUTO_TEST_CASE(a_sink_that_throws_harms_nobody) {
    wc::scoped_log_sink const sink{[](std::string_view) { throw std::runtime_error{"full"}; }};
    wc::log_line("goes to standard error");
    wc::log_line("and so does this");
}

BOOST_AUTO_TEST_CASE(lines_of_many_threads_come_whole_and_one_at_a_time) {
    constexpr int threads = 8;
    constexpr int each = 200;
    std::vector<std::string> lines;  // no lock here: the sink is called by one thread at a time
    {
        wc::scoped_log_sink const sink{[&](std::string_view line) { lines.emplace_back(line); }};
        std::vector<std::thread> writers;
        for (int t = 0; t < threads; ++t) {
            writers.emplace_back([t] {
                for (int i = 0; i < each; ++i) {
                    wc::log_line(std::string(static_cast<std::size_t>(t + 1), 'x'));
                }
            });
        }
        for (auto& writer : writers) writer.join();
    }
    BOOST_TEST(lines.size() == std::size_t{threads * each});
    std::vector<int> counts(threads, 0);
    for (auto const& line : lines) {
        BOOST_REQUIRE(!line.empty());
        BOOST_REQUIRE(line.size() <= std::size_t{threads});
        ++counts[line.size() - 1];
    }
    for (int const count : counts) BOOST_TEST(count == each);
}

BOOST_AUTO_TEST_CASE(sinks_may_change_while_others_log) {
    auto const before = wc::set_log_sink([](std::string_view) {});
    std::thread writer{[] {
        for (int i = 0; i < 500; ++i) wc::log_line("under way");
    }};
    for (int i = 0; i < 500; ++i) wc::set_log_sink([](std::string_view) {});
    writer.join();
    wc::set_log_sink(before);
}

BOOST_AUTO_TEST_SUITE_END()
