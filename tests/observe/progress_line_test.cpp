// SPDX-License-Identifier: Apache-2.0
#include <weightcast/observe/detail/progress_line.hpp>

#include <cstdint>
#include <limits>
#include <string>

#include <boost/test/unit_test.hpp>

namespace {

using namespace weightcast::detail;

constexpr auto largest = std::numeric_limits<std::uint64_t>::max();

BOOST_AUTO_TEST_SUITE(progress_line_suite)

BOOST_AUTO_TEST_CASE(sizes_have_three_digits_and_a_unit) {
    BOOST_TEST(human_bytes(0) == "0 B");
    BOOST_TEST(human_bytes(999) == "999 B");
    BOOST_TEST(human_bytes(1000) == "1.00 kB");
    BOOST_TEST(human_bytes(1234) == "1.23 kB");
    BOOST_TEST(human_bytes(12'345) == "12.3 kB");
    BOOST_TEST(human_bytes(90'900'000) == "90.9 MB");
    BOOST_TEST(human_bytes(999'499) == "999 kB");
    BOOST_TEST(human_bytes(999'500) == "1.00 MB");  // never "1000 kB"
    BOOST_TEST(human_bytes(9'996) == "10.0 kB");
    BOOST_TEST(human_bytes(1'000'000'000'000) == "1.00 TB");
    BOOST_TEST(human_bytes(largest) == "18.4 EB");
}

BOOST_AUTO_TEST_CASE(rates_without_time_are_not_invented) {
    BOOST_TEST(human_rate(1'500'000'000, 2) == "0.75 GB/s");
    BOOST_TEST(human_rate(0, 2) == "0.00 GB/s");
    BOOST_TEST(human_rate(1, 0) == "-- GB/s");
    BOOST_TEST(human_rate(1, -1) == "-- GB/s");
    BOOST_TEST(human_rate(1, std::numeric_limits<double>::quiet_NaN()) == "-- GB/s");
}

BOOST_AUTO_TEST_CASE(times_are_clocks_and_round_up) {
    BOOST_TEST(human_clock(0) == "0:00");
    BOOST_TEST(human_clock(0.1) == "0:01");
    BOOST_TEST(human_clock(59.2) == "1:00");
    BOOST_TEST(human_clock(754) == "12:34");
    BOOST_TEST(human_clock(12'345) == "3:25:45");
    BOOST_TEST(human_clock(-1) == "--:--");
    BOOST_TEST(human_clock(1e300) == "--:--");
    BOOST_TEST(human_clock(std::numeric_limits<double>::quiet_NaN()) == "--:--");
    BOOST_TEST(human_clock(std::numeric_limits<double>::infinity()) == "--:--");
}

BOOST_AUTO_TEST_CASE(a_wide_line_has_everything) {
    progress_state const state{"payload", "encoder.layer.3", 45, 100, 9};
    BOOST_TEST(
        progress_line(state, 200) ==
        "payload [=============>                ]   45%  45 B of 100 B  0.00 GB/s  ETA 0:11  "
        "encoder.layer.3");
}

BOOST_AUTO_TEST_CASE(a_narrower_line_loses_the_name_then_the_bar_then_its_end) {
    progress_state const state{"payload", "model.encoder.layer.3.weight", 45, 100, 9};
    BOOST_TEST(
        progress_line(state, 91) ==
        "payload [=============>                ]   45%  45 B of 100 B  0.00 GB/s  ETA 0:11");
    BOOST_TEST(
        progress_line(state, 95) ==
        "payload [=============>                ]   45%  45 B of 100 B  0.00 GB/s  ETA 0:11  "
        "...3.weight");
    BOOST_TEST(progress_line(state, 70) ==
               "payload [========>         ]   45%  45 B of 100 B  0.00 GB/s  ETA 0:11");
    BOOST_TEST(progress_line(state, 55) == "payload   45%  45 B of 100 B  0.00 GB/s  ETA 0:11");
    BOOST_TEST(progress_line(state, 20) == "payload   45%  45 B ");
    BOOST_TEST(progress_line(state, 1) == "p");
    BOOST_TEST(progress_line(state, 0).empty());
}

BOOST_AUTO_TEST_CASE(no_line_is_ever_wider_than_the_terminal) {
    std::string const name(300, 'n');
    for (std::size_t columns = 0; columns < 220; ++columns) {
        for (std::uint64_t const done :
             {std::uint64_t{0}, std::uint64_t{1}, largest / 2, largest}) {
            for (std::uint64_t const total : {std::uint64_t{0}, std::uint64_t{1}, largest}) {
                for (double const seconds : {0.0, 1e-9, 3600.0, 1e18}) {
                    progress_state const state{"preflight", name, done, total, seconds};
                    BOOST_TEST_REQUIRE(progress_line(state, columns).size() <= columns);
                    BOOST_TEST_REQUIRE(progress_summary(state, columns).size() <= columns);
                }
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(ends_of_the_bar_are_exact) {
    auto const bar_of = [](std::uint64_t done) {
        return bar(fraction_done({"", "", done, 100, 1}), 10);
    };
    BOOST_TEST(bar_of(0) == "[>         ]");
    BOOST_TEST(bar_of(99) == "[=========>]");
    BOOST_TEST(bar_of(100) == "[==========]");
    BOOST_TEST(bar_of(200) == "[==========]");  // more than was announced
}

BOOST_AUTO_TEST_CASE(nothing_done_has_no_time_left_to_tell) {
    BOOST_TEST(progress_facts({"", "", 0, 100, 5}) == "  0%  0 B of 100 B  0.00 GB/s  ETA --:--");
    BOOST_TEST(progress_facts({"", "", 0, 100, 0}) == "  0%  0 B of 100 B  -- GB/s  ETA --:--");
    BOOST_TEST(progress_facts({"", "", 100, 100, 5}) ==
               "100%  100 B of 100 B  0.00 GB/s  ETA 0:00");
}

BOOST_AUTO_TEST_CASE(an_unknown_total_has_no_bar) {
    BOOST_TEST(progress_line({"vote", "w", 5, 0, 1}, 80) == "vote  5 B  0.00 GB/s  w");
}

BOOST_AUTO_TEST_CASE(names_cannot_move_the_cursor) {
    auto const line = progress_line({"vote", "a\n\x1B[2Jb\xC3\xBC\x7F", 5, 0, 1}, 80);
    BOOST_TEST(line == "vote  5 B  0.00 GB/s  a??[2Jb???");
}

BOOST_AUTO_TEST_CASE(a_summary_says_what_was_done) {
    BOOST_TEST(progress_summary({"payload", "", 90'900'000, 90'900'000, 0.12}, 80) ==
               "payload: 90.9 MB in 0.12 s, 0.76 GB/s");
    BOOST_TEST(progress_summary({"payload", "", 1, 1, 0}, 80) == "payload: 1 B in 0.00 s, -- GB/s");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
