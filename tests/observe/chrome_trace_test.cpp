// SPDX-License-Identifier: Apache-2.0
// What a trace file says, read by a JSON parser that is not ours.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <locale>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <vector>

#include <unistd.h>

#include <boost/json.hpp>
#include <boost/test/unit_test.hpp>

#include <weightcast/observe/chrome_trace.hpp>

namespace weightcast::test {
namespace {

using namespace std::chrono_literals;
using time_point = std::chrono::steady_clock::time_point;
using object = boost::json::object;

static_assert(TraceSink<chrome_trace>);
static_assert(TraceSink<chrome_trace::track_sink>);
static_assert(!std::is_copy_constructible_v<chrome_trace>);

std::string text_of(chrome_trace const& trace) {
    std::ostringstream out;
    trace.write(out);
    return out.str();
}
object parsed(chrome_trace const& trace) {
    return boost::json::parse(text_of(trace))
        .as_object();  // throws for what is no JSON or no UTF-8
}
std::vector<object> events(chrome_trace const& trace, std::string_view kind) {
    std::vector<object> all;
    auto const file = parsed(trace);
    for (auto const& event : file.at("traceEvents").as_array()) {
        if (event.as_object().at("ph").as_string() == kind) all.push_back(event.as_object());
    }
    return all;
}
std::string string_of(boost::json::value const& value) {
    return {value.as_string().data(), value.as_string().size()};
}
std::string name_of(object const& event) { return string_of(event.at("name")); }
/// Names of tracks by tid.
std::map<std::int64_t, std::string> tracks(chrome_trace const& trace) {
    std::map<std::int64_t, std::string> names;
    for (auto const& event : events(trace, "M")) {
        if (name_of(event) != "thread_name") continue;
        names[event.at("tid").as_int64()] = string_of(event.at("args").as_object().at("name"));
    }
    return names;
}
/// The name after a round through the file.
std::string written(std::string_view name) {
    chrome_trace trace;
    trace.span(name, {}, {});
    trace.track(name).span("x", {}, {});
    auto const spans = events(trace, "X");
    BOOST_REQUIRE(spans.size() == 2U);
    BOOST_TEST(tracks(trace).at(2) == name_of(spans[0]));
    return name_of(spans[0]);
}

BOOST_AUTO_TEST_SUITE(chrome_trace_suite)

BOOST_AUTO_TEST_CASE(spans_have_microseconds_of_the_steady_clock_a_process_and_a_track) {
    chrome_trace trace{{.process_id = 77, .process_name = "rank 3"}};
    auto unpack = trace.track("unpack");
    auto wire = trace.track("wire");
    wire.span("chunk 0", time_point{1500ns}, time_point{4s});
    unpack.span("layer.0", time_point{10'000'000'000'001ns}, time_point{10'000'000'000'003ns});
    auto const spans = events(trace, "X");
    BOOST_REQUIRE(spans.size() == 2U);
    BOOST_TEST(name_of(spans[0]) == "chunk 0");
    BOOST_TEST(spans[0].at("ts").as_double() == 1.5);
    BOOST_TEST(spans[0].at("dur").as_double() == 3'999'998.5);
    BOOST_TEST(spans[0].at("pid").as_int64() == 77);
    BOOST_TEST(spans[0].at("tid").as_int64() == 2);
    BOOST_TEST(name_of(spans[1]) == "layer.0");
    BOOST_TEST(spans[1].at("ts").as_double() == 10'000'000'000.001);
    BOOST_TEST(spans[1].at("dur").as_double() == 0.002);
    BOOST_TEST(spans[1].at("tid").as_int64() == 1);
    BOOST_TEST((tracks(trace) == std::map<std::int64_t, std::string>{{1, "unpack"}, {2, "wire"}}));
    auto const file = parsed(trace);
    BOOST_TEST(file.at("displayTimeUnit").as_string() == "ms");
    BOOST_TEST(file.at("otherData").as_object().at("dropped_spans").as_int64() == 0);
}

BOOST_AUTO_TEST_CASE(metadata_names_the_process_and_orders_the_tracks) {
    chrome_trace trace{{.process_id = 5, .process_name = "trainer"}};
    static_cast<void>(trace.track("b"));
    static_cast<void>(trace.track("a"));
    std::map<std::int64_t, std::int64_t> order;
    for (auto const& event : events(trace, "M")) {
        BOOST_TEST(event.at("pid").as_int64() == 5);
        auto const& args = event.at("args").as_object();
        if (name_of(event) == "process_name") BOOST_TEST(args.at("name").as_string() == "trainer");
        if (name_of(event) == "thread_sort_index")
            order[event.at("tid").as_int64()] = args.at("sort_index").as_int64();
    }
    BOOST_TEST(events(trace, "M").size() == 5U);
    BOOST_TEST((order == std::map<std::int64_t, std::int64_t>{{1, 0}, {2, 1}}));
}

BOOST_AUTO_TEST_CASE(an_empty_trace_is_a_file_of_this_process) {
    chrome_trace const trace;
    BOOST_TEST(events(trace, "X").empty());
    auto const metadata = events(trace, "M");
    BOOST_REQUIRE(metadata.size() == 1U);
    BOOST_TEST(metadata[0].at("pid").as_int64() == ::getpid());
    BOOST_TEST(metadata[0].at("args").as_object().at("name").as_string() == "weightcast");
}

BOOST_AUTO_TEST_CASE(a_track_asked_for_twice_is_one_and_the_traces_own_is_main) {
    chrome_trace trace;
    trace.track("pack").span("a", {}, {});
    trace.track("pack").span("b", {}, {});
    trace.span("c", {}, {});
    trace.track("main").span("d", {}, {});
    BOOST_TEST((tracks(trace) == std::map<std::int64_t, std::string>{{1, "pack"}, {2, "main"}}));
    std::string order;
    for (auto const& span : events(trace, "X")) {
        order += name_of(span) + std::to_string(span.at("tid").as_int64());
    }
    BOOST_TEST(order == "a1b1c2d2");
}

BOOST_AUTO_TEST_CASE(later_spans_than_may_be_are_counted_in_the_file) {
    chrome_trace trace{{.max_spans = 3}};
    auto pack = trace.track("pack");
    for (int i = 0; i < 10; ++i) pack.span(std::to_string(i), {}, {});
    BOOST_TEST(trace.size() == 3U);
    BOOST_TEST(trace.dropped() == 7U);
    auto const spans = events(trace, "X");
    BOOST_REQUIRE(spans.size() == 3U);
    BOOST_TEST(name_of(spans[2]) == "2");
    BOOST_TEST(parsed(trace).at("otherData").as_object().at("dropped_spans").as_int64() == 7);

    chrome_trace none{{.max_spans = 0}};
    none.span("a", {}, {});
    BOOST_TEST(none.size() == 0U);
    BOOST_TEST(none.dropped() == 1U);
}

BOOST_AUTO_TEST_CASE(a_span_that_ends_before_it_begins_has_no_length) {
    chrome_trace trace;
    trace.span("a", time_point{2us}, time_point{1us});
    trace.span("b", time_point{-1500ns}, time_point{0us});
    auto const spans = events(trace, "X");
    BOOST_REQUIRE(spans.size() == 2U);
    BOOST_TEST(spans[0].at("ts").as_double() == 2.0);
    BOOST_TEST(spans[0].at("dur").as_double() == 0.0);
    BOOST_TEST(spans[1].at("ts").as_double() == -1.5);
    BOOST_TEST(spans[1].at("dur").as_double() == 1.5);
}

BOOST_AUTO_TEST_CASE(microseconds_are_exact_to_the_nanosecond) {
    using detail::in_microseconds;
    BOOST_TEST(in_microseconds(0ns) == "0.000");
    BOOST_TEST(in_microseconds(1ns) == "0.001");
    BOOST_TEST(in_microseconds(1010ns) == "1.010");
    BOOST_TEST(in_microseconds(-1ns) == "-0.001");
    BOOST_TEST(in_microseconds(std::chrono::nanoseconds::max()) == "9223372036854775.807");
    BOOST_TEST(in_microseconds(std::chrono::nanoseconds::min()) == "-9223372036854775.808");
}

BOOST_AUTO_TEST_CASE(names_come_through_whatever_they_hold) {
    std::string every;
    for (int c = 0; c < 128; ++c) every.push_back(static_cast<char>(c));
    for (std::string const& name :
         {std::string{}, every, std::string{"a\"b\\c/d"},
          std::string{"\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80"},
          std::string{"\xC2\x80 \xDF\xBF \xE0\xA0\x80 \xED\x9F\xBF \xEE\x80\x80 \xEF\xBF\xBF"},
          std::string{"\xF0\x90\x80\x80 \xF4\x8F\xBF\xBF"}}) {
        BOOST_TEST(written(name) == name);
    }
}

BOOST_AUTO_TEST_CASE(bytes_that_are_no_utf8_become_the_replacement_character) {
    std::string const replacement = "\xEF\xBF\xBD";
    for (std::string_view const bytes :
         {"\x80", "\xBF", "\xC0\xAF", "\xC1\xBF", "\xC3", "\xE2\x82", "\xE0\x9F\xBF",
          "\xED\xA0\x80", "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF",
          "\xF0\x9F\x98"}) {
        std::string expected = "<";
        for (std::size_t i = 0; i < bytes.size(); ++i) expected += replacement;
        BOOST_TEST(written("<" + std::string{bytes}) == expected);  // cut short by the end
        BOOST_TEST(written("<" + std::string{bytes} + ">") == expected + ">");
    }
    BOOST_TEST(written("\xE2\x82\xC3\xA9") == replacement + replacement + "\xC3\xA9");
}

struct grouping : std::numpunct<char> {
    char do_decimal_point() const override { return ','; }
    char do_thousands_sep() const override { return '.'; }
    std::string do_grouping() const override { return "\3"; }
};

BOOST_AUTO_TEST_CASE(the_streams_locale_and_width_change_nothing) {
    chrome_trace trace{{.process_id = 1234567}};
    trace.span("a", time_point{123456789us}, time_point{223456789us});
    std::ostringstream out;
    out.imbue(std::locale{std::locale::classic(), new grouping});
    out.width(500);
    trace.write(out);
    BOOST_TEST(out.str() == text_of(trace));
}

BOOST_AUTO_TEST_CASE(threads_write_into_tracks_of_their_own_while_the_file_is_written) {
    chrome_trace trace{{.max_spans = 3000}};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&trace, t] {
            auto sink = trace.track("thread " + std::to_string(t));
            for (int i = 0; i < 1000; ++i)
                sink.span("s", time_point{1us * i}, time_point{1us * (i + 1)});
        });
    }
    for (int i = 0; i < 10; ++i) BOOST_TEST(events(trace, "X").size() <= 3000U);
    for (auto& thread : threads) thread.join();
    BOOST_TEST(trace.size() == 3000U);
    BOOST_TEST(trace.dropped() == 1000U);
    BOOST_TEST(tracks(trace).size() == 4U);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weightcast::test
