// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <locale>
#include <sstream>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <support/says.hpp>
#include <weightcast/observe/metrics_text.hpp>

namespace weightcast::test {
namespace {

using namespace std::chrono_literals;

struct metered {
    std::chrono::steady_clock::time_point now{};
    phase_metrics metrics{[this] { return now; }};

    void run(phase where, std::uint64_t bytes, std::chrono::nanoseconds time) {
        metrics.begin(where, bytes);
        metrics.advance(bytes, "w");
        now += time;
        metrics.end();
    }
};

std::string text_of(std::vector<labelled_metrics> const& all) {
    std::ostringstream out;
    write_prometheus(out, all);
    return out.str();
}

BOOST_AUTO_TEST_SUITE(metrics_text_suite)

BOOST_AUTO_TEST_CASE(the_text_is_exactly_this) {
    metered m;
    m.run(phase::preflight, 0, 250ms);
    m.run(phase::payload, 18'000'000'000'000'000'000U, 1s);
    m.run(phase::payload, 7, 100ms);
    m.metrics.begin(phase::vote, 0);
    m.now += 2s;
    m.metrics.begin(phase::commit, 0);  // the vote did not come to its end, and this one is open
    std::ostringstream out;
    write_prometheus(out, m.metrics, {{"rank", "3"}, {"model", "a\"b\\c\nd {x=\"y\"}"}});
    std::string const labels = R"(,rank="3",model="a\"b\\c\nd {x=\"y\"}"} )";
    auto const sample = [&](std::string const& name, std::string const& where,
                            std::string const& value) {
        return "weightcast_phase_" + name + "_total{phase=\"" + where + "\"" + labels + value +
               "\n";
    };
    BOOST_TEST(
        out.str() ==
        "# HELP weightcast_phase_seconds_total Seconds in a phase of weight updates, failed "
        "ones included.\n"
        "# TYPE weightcast_phase_seconds_total counter\n" +
            sample("seconds", "connect", "0") + sample("seconds", "preflight", "0.25") +
            sample("seconds", "payload", "1.1") + sample("seconds", "vote", "2") +
            sample("seconds", "commit", "0") +
            "# HELP weightcast_phase_bytes_total Bytes moved in a phase of weight updates.\n"
            "# TYPE weightcast_phase_bytes_total counter\n" +
            sample("bytes", "connect", "0") + sample("bytes", "preflight", "0") +
            sample("bytes", "payload", "18000000000000000007") + sample("bytes", "vote", "0") +
            sample("bytes", "commit", "0") +
            "# HELP weightcast_phase_runs_total Times that a phase of weight updates ran, "
            "failed ones included.\n"
            "# TYPE weightcast_phase_runs_total counter\n" +
            sample("runs", "connect", "0") + sample("runs", "preflight", "1") +
            sample("runs", "payload", "2") + sample("runs", "vote", "1") +
            sample("runs", "commit", "0") +
            "# HELP weightcast_phase_failures_total Times that a phase of weight updates did "
            "not come to its end.\n"
            "# TYPE weightcast_phase_failures_total counter\n" +
            sample("failures", "connect", "0") + sample("failures", "preflight", "0") +
            sample("failures", "payload", "0") + sample("failures", "vote", "1") +
            sample("failures", "commit", "0"));
}

BOOST_AUTO_TEST_CASE(metrics_of_several_have_help_and_type_once) {
    metered a;
    metered b;
    a.run(phase::commit, 5, 1s);
    b.run(phase::commit, 6, 1s);
    auto const text = text_of({{&a.metrics, {}}, {&b.metrics, {{"_rank1", ""}}}});
    auto const count = [&](std::string const& what) {
        std::size_t n = 0;
        for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
        return n;
    };
    BOOST_TEST(count("# HELP ") == 4U);
    BOOST_TEST(count("# TYPE ") == 4U);
    BOOST_TEST(count("\n") == 8U + 4 * 2 * 5);
    BOOST_TEST(count("weightcast_phase_bytes_total{phase=\"commit\"} 5\n") == 1U);
    BOOST_TEST(count("weightcast_phase_bytes_total{phase=\"commit\",_rank1=\"\"} 6\n") == 1U);
    BOOST_TEST(text.find("} 5\nweightcast_phase_bytes_total{phase=\"connect\",_rank1") !=
               std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_text_of_nobody_has_no_samples) {
    BOOST_TEST(text_of({}).find('{') == std::string::npos);
    metered m;
    std::ostringstream out;
    write_prometheus(out, m.metrics);
    BOOST_TEST(out.str() == text_of({{&m.metrics, {}}}));
}

BOOST_AUTO_TEST_CASE(labels_that_prometheus_would_not_read_are_refused) {
    metered m;
    auto const refused = [&](std::vector<metric_label> const& labels, std::string const& name) {
        std::ostringstream out;
        std::vector<labelled_metrics> const all{{&m.metrics, {}}, {&m.metrics, labels}};
        BOOST_CHECK_EXCEPTION(write_prometheus(out, all), bad_argument,
                              (says{"label '" + name + "'", "letters, digits and underscores"}));
        BOOST_TEST(out.str().empty());
    };
    for (std::string const name : {"", "1a", "a-b", "a b", "a:b", "__name", "phase", "\xC3\xA9"}) {
        refused({{name, "x"}}, name);
    }
    refused({{"rank", "1"}, {"model", "x"}, {"rank", "2"}}, "rank");
    for (std::string const name : {"a", "Z", "_", "_a", "a__", "z9", "Phase", "phases"}) {
        BOOST_TEST(text_of({{&m.metrics, {{name, "x"}}}}).find("," + name + "=\"x\"}") !=
                   std::string::npos);
    }
}

BOOST_AUTO_TEST_CASE(metrics_that_are_null_are_refused) {
    BOOST_CHECK_EXCEPTION(text_of({{nullptr, {}}}), bad_argument, says{"null"});
}

struct grouping : std::numpunct<char> {
    char do_decimal_point() const override { return ','; }
    char do_thousands_sep() const override { return '.'; }
    std::string do_grouping() const override { return "\3"; }
};

BOOST_AUTO_TEST_CASE(the_streams_locale_width_and_precision_change_nothing) {
    metered m;
    m.run(phase::payload, 123'456'789, 1'234'567'890'123ns);
    std::ostringstream out;
    out.imbue(std::locale{std::locale::classic(), new grouping});
    out.width(300);
    out.precision(2);
    write_prometheus(out, m.metrics);
    BOOST_TEST(out.str() == text_of({{&m.metrics, {}}}));
    BOOST_TEST(out.str().find("{phase=\"payload\"} 1234.567890123\n") != std::string::npos);
    BOOST_TEST(out.str().find("{phase=\"payload\"} 123456789\n") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weightcast::test
