// SPDX-License-Identifier: Apache-2.0
#include <weightcast/base/deadline.hpp>

#include <chrono>
#include <limits>
#include <thread>

#include <boost/test/unit_test.hpp>

namespace {

using namespace weightcast;
using namespace std::chrono_literals;
using clock_type = deadline::clock;

constexpr auto never = clock_type::time_point::max();

BOOST_AUTO_TEST_SUITE(deadline_suite)

BOOST_AUTO_TEST_CASE(a_span_becomes_a_point) {
    auto const before = clock_type::now();
    auto const until = deadline::after(10s);
    auto const behind = clock_type::now();
    BOOST_CHECK(until.point() >= before + 10s);
    BOOST_CHECK(until.point() <= behind + 10s);
    BOOST_TEST(!until.expired());
    BOOST_CHECK(until.remaining() > 0s);
    BOOST_CHECK(until.remaining() <= 10s);
}

BOOST_AUTO_TEST_CASE(a_passed_deadline_has_nothing_left) {
    auto const past = deadline::at(clock_type::now() - 1h);
    BOOST_TEST(past.expired());
    BOOST_CHECK(past.remaining() == clock_type::duration::zero());
    BOOST_TEST(past.remaining_ms() == 0);
    BOOST_TEST(deadline::at(clock_type::time_point::min()).expired());
    BOOST_TEST(deadline::at(clock_type::time_point::min()).remaining_ms() == 0);
}

BOOST_AUTO_TEST_CASE(it_expires_as_time_goes_on) {
    auto const until = deadline::after(1ms);
    std::this_thread::sleep_for(2ms);
    BOOST_TEST(until.expired());
}

BOOST_AUTO_TEST_CASE(spans_beyond_the_clock_end_at_its_last_point) {
    BOOST_CHECK(deadline::after(std::chrono::hours::max()).point() == never);
    BOOST_CHECK(deadline::after(std::chrono::duration<double>{1e300}).point() == never);
    BOOST_CHECK(
        deadline::after(std::chrono::duration<double>{std::numeric_limits<double>::infinity()})
            .point() == never);
    BOOST_CHECK(deadline::after(clock_type::duration::max()).point() == never);
    BOOST_TEST(!deadline::at(never).expired());
    BOOST_TEST(deadline::at(never).remaining_ms() == 1'000'000'000);
}

BOOST_AUTO_TEST_CASE(spans_that_are_not_positive_have_expired) {
    BOOST_TEST(deadline::after(0s).expired());
    BOOST_TEST(deadline::after(-5s).expired());
    BOOST_TEST(deadline::after(std::chrono::hours::min()).expired());
    BOOST_TEST(deadline::after(std::chrono::duration<double>{-1e300}).expired());
    BOOST_TEST(
        deadline::after(std::chrono::duration<double>{std::numeric_limits<double>::quiet_NaN()})
            .expired());
}

BOOST_AUTO_TEST_CASE(milliseconds_are_rounded_up_so_that_no_wait_spins) {
    auto const until = deadline::after(std::chrono::microseconds{900'000'000});
    BOOST_TEST(until.remaining_ms() > 800'000);
    BOOST_TEST(until.remaining_ms() <= 900'000);
    auto const soon = deadline::at(clock_type::now() + 200ms);
    if (!soon.expired()) BOOST_TEST(soon.remaining_ms() >= 0);
    // less than a millisecond left is one millisecond, not none
    for (int i = 0; i < 100; ++i) {
        auto const short_one = deadline::at(clock_type::now() + 900us);
        auto const left = short_one.remaining_ms();
        if (!short_one.expired()) BOOST_TEST(left == 1);
    }
}

BOOST_AUTO_TEST_CASE(the_earlier_of_two_wins) {
    auto const soon = deadline::after(1s);
    auto const late = deadline::after(2s);
    BOOST_CHECK(earlier(soon, late) == soon);
    BOOST_CHECK(earlier(late, soon) == soon);
    BOOST_CHECK(earlier(soon, soon) == soon);
    BOOST_CHECK(soon < late);
    BOOST_CHECK(soon != late);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
