// SPDX-License-Identifier: Apache-2.0
#include <weightcast/base/sinks.hpp>

#include <chrono>
#include <string>
#include <type_traits>
#include <vector>

#include <boost/test/unit_test.hpp>

namespace {

using namespace weightcast;

struct recorder {
    std::vector<std::string> calls;
    void begin(phase where, std::uint64_t bytes) {
        calls.push_back("begin " + std::string{to_string(where)} + " " + std::to_string(bytes));
    }
    void advance(std::uint64_t bytes, std::string_view tensor) {
        calls.push_back(std::to_string(bytes) + " " + std::string{tensor});
    }
    void end() { calls.emplace_back("end"); }
};

void transfer(ProgressSink auto& sink) {
    sink.begin(phase::payload, 3);
    sink.advance(1, "a");
    sink.advance(3, "b");
    sink.end();
}

BOOST_AUTO_TEST_SUITE(sinks_suite)

BOOST_AUTO_TEST_CASE(a_sink_hears_what_the_transfer_tells) {
    recorder sink;
    transfer(sink);
    BOOST_CHECK((sink.calls == std::vector<std::string>{"begin payload 3", "1 a", "3 b", "end"}));
}

BOOST_AUTO_TEST_CASE(silence_is_empty_and_never_throws) {
    static_assert(std::is_empty_v<no_progress> && std::is_empty_v<no_trace>);
    no_progress progress;
    transfer(progress);
    static_assert(noexcept(progress.advance(1, std::string_view{})));
    no_trace trace;
    std::chrono::steady_clock::time_point const point{};
    static_assert(noexcept(trace.span(std::string_view{}, point, point)));
    trace.span("x", point, point);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
