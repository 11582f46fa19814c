// SPDX-License-Identifier: Apache-2.0
#include <weightcast/observe/progress_tee.hpp>

#include <string>

#include <boost/test/unit_test.hpp>

#include <weightcast/observe/phase_metrics.hpp>

namespace {

using namespace weightcast;

struct recorder {
    std::string& log;
    char name;
    void begin(phase, std::uint64_t bytes) {
        log += name + std::string{"b"} + std::to_string(bytes) + " ";
    }
    void advance(std::uint64_t bytes, std::string_view tensor) {
        log += name + std::to_string(bytes) + std::string{tensor} + " ";
    }
    void end() { log += name + std::string{"e "}; }
};

BOOST_AUTO_TEST_SUITE(progress_tee_suite)

BOOST_AUTO_TEST_CASE(all_sinks_hear_everything_in_the_order_given) {
    std::string log;
    recorder first{log, 'x'};
    recorder second{log, 'y'};
    progress_tee tee{first, second};
    tee.begin(phase::payload, 7);
    tee.advance(3, "w");
    tee.end();
    BOOST_TEST(log == "xb7 yb7 x3w y3w xe ye ");
}

BOOST_AUTO_TEST_CASE(one_sink_or_none_will_do) {
    phase_metrics metrics;
    progress_tee one{metrics};
    one.begin(phase::vote, 1);
    one.end();
    BOOST_TEST(metrics.of(phase::vote).count == 1U);
    progress_tee<> const none;
    static_assert(ProgressSink<progress_tee<>>);
    static_cast<void>(none);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
