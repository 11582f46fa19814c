// SPDX-License-Identifier: Apache-2.0
#include <weightcast/observe/phase_metrics.hpp>

#include <chrono>

#include <boost/test/unit_test.hpp>

namespace {

using namespace weightcast;
using namespace std::chrono_literals;

struct metered {
    std::chrono::steady_clock::time_point now{};
    phase_metrics metrics{[this] { return now; }};
};

void check_metric(phase_metric const& m, std::uint64_t bytes, double seconds, std::uint64_t count,
                  std::uint64_t failed) {
    BOOST_TEST(m.bytes == bytes);
    BOOST_TEST(m.seconds == seconds, boost::test_tools::tolerance(1e-9));
    BOOST_TEST(m.count == count);
    BOOST_TEST(m.failed == failed);
}

BOOST_AUTO_TEST_SUITE(phase_metrics_suite)

BOOST_AUTO_TEST_CASE(phases_add_up_apart) {
    metered t;
    for (int round = 0; round < 3; ++round) {
        t.metrics.begin(phase::preflight, 10);
        t.now += 10ms;
        t.metrics.end();
        t.metrics.begin(phase::payload, 100);
        t.metrics.advance(60, "a");
        t.now += 1s;
        t.metrics.advance(100, "b");
        t.metrics.end();
        t.now += 5s;  // between phases
    }
    check_metric(t.metrics.of(phase::preflight), 0, 0.03, 3, 0);
    check_metric(t.metrics.of(phase::payload), 300, 3, 3, 0);
    check_metric(t.metrics.of(phase::vote), 0, 0, 0, 0);
}

BOOST_AUTO_TEST_CASE(a_phase_without_end_counts_as_failed_with_what_it_had) {
    metered t;
    t.metrics.begin(phase::payload, 100);
    t.metrics.advance(40, "a");
    t.now += 2s;
    t.metrics.begin(phase::payload, 100);
    t.metrics.advance(100, "a");
    t.now += 1s;
    check_metric(t.metrics.of(phase::payload), 40, 2, 1, 1);  // the open one is not in it yet
    t.metrics.end();
    check_metric(t.metrics.of(phase::payload), 140, 3, 2, 1);
}

BOOST_AUTO_TEST_CASE(ends_without_begin_do_no_harm) {
    metered t;
    t.metrics.end();
    t.metrics.advance(5, "a");
    t.metrics.begin(phase::commit, 0);
    t.metrics.end();
    t.metrics.end();
    check_metric(t.metrics.of(phase::commit), 0, 0, 1, 0);
}

BOOST_AUTO_TEST_CASE(the_steady_clock_is_the_default) {
    phase_metrics metrics;
    metrics.begin(phase::connect, 0);
    metrics.end();
    BOOST_TEST(metrics.of(phase::connect).seconds >= 0.0);
    BOOST_TEST(metrics.of(phase::connect).count == 1U);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
