// SPDX-License-Identifier: Apache-2.0
#include <weightcast/observe/terminal_progress.hpp>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>

namespace {

using namespace weightcast;
using namespace std::chrono_literals;

// A terminal of that width whose time goes on only when the test says so.
struct stage {
    std::ostringstream out{};
    int columns = 80;
    std::chrono::steady_clock::time_point now{};

    terminal_settings settings(bool interactive = true) {
        terminal_settings s;
        s.out = &out;
        s.interactive = interactive;
        s.columns = [this] { return columns; };
        s.now = [this] { return now; };
        return s;
    }
    std::string take() {
        auto text = out.str();
        out.str({});
        return text;
    }
};

// What a terminal of that width shows in the end: \r goes back, \n goes on, characters overwrite.
std::vector<std::string> shown(std::string_view text, std::size_t columns) {
    std::vector<std::string> lines(1);
    std::size_t column = 0;
    for (char const c : text) {
        if (c == '\r') {
            column = 0;
        } else if (c == '\n') {
            lines.emplace_back();
            column = 0;
        } else {
            BOOST_TEST_REQUIRE((c >= ' ' && c <= '~'));
            BOOST_TEST_REQUIRE(column < columns);  // it would wrap
            auto& line = lines.back();
            if (line.size() <= column) line.resize(column + 1, ' ');
            line[column++] = c;
        }
    }
    for (auto& line : lines) line.erase(line.find_last_not_of(' ') + 1);
    return lines;
}

BOOST_AUTO_TEST_SUITE(terminal_progress_suite)

BOOST_AUTO_TEST_CASE(a_phase_is_drawn_as_it_goes_and_ends_in_a_summary) {
    stage s;
    terminal_progress progress{s.settings()};
    progress.begin(phase::payload, 1'000'000'000);
    BOOST_TEST(s.take().empty());
    s.now += 1s;
    progress.advance(250'000'000, "embed.weight");
    BOOST_TEST(s.take() ==
               "\rpayload [=====>                 ]   25%  250 MB of 1.00 GB  0.25 GB/s  ETA 0:03");
    s.now += 1s;
    progress.advance(1'000'000'000, "head.weight");
    progress.end();
    auto const lines = shown(s.take(), 80);
    BOOST_TEST_REQUIRE(lines.size() == 2U);
    BOOST_TEST(lines[0] == "payload: 1.00 GB in 2.00 s, 0.50 GB/s");
    BOOST_TEST(lines[1].empty());
}

BOOST_AUTO_TEST_CASE(no_terminal_means_not_one_character) {
    stage s;
    {
        terminal_progress progress{s.settings(false)};
        progress.begin(phase::payload, 100);
        s.now += 10s;
        progress.advance(50, "w");
        progress.end();
        progress.begin(phase::vote, 100);
        s.now += 10s;
        progress.advance(50, "w");
    }
    BOOST_TEST(s.take().empty());
}

BOOST_AUTO_TEST_CASE(it_draws_ten_times_a_second_however_often_it_is_told) {
    stage s;
    terminal_progress progress{s.settings()};
    progress.begin(phase::payload, 10'000);
    std::size_t draws = 0;
    for (std::uint64_t i = 0; i < 10'000; ++i) {
        s.now += 100us;
        progress.advance(i, "w");
        if (!s.take().empty()) ++draws;
    }
    BOOST_TEST(draws == 10U);
}

BOOST_AUTO_TEST_CASE(a_shorter_line_leaves_nothing_of_a_longer_one) {
    stage s;
    s.columns = 120;
    terminal_progress progress{s.settings()};
    progress.begin(phase::payload, 100);
    std::string all;
    for (auto const* const name : {"a.very.long.name.of.a.tensor", "b", "another.long.name", ""}) {
        s.now += 1s;
        progress.advance(50, name);
        all += s.take();
        auto const line = shown(all, 120).back();
        BOOST_TEST(line.ends_with(*name == '\0' ? "ETA 0:04" : name));
    }
    progress.end();
    all += s.take();
    BOOST_TEST(shown(all, 120).front() == "payload: 50 B in 4.00 s, 0.00 GB/s");
}

BOOST_AUTO_TEST_CASE(it_never_wraps_on_any_width) {
    for (int columns = -1; columns < 130; ++columns) {
        stage s;
        s.columns = columns;
        {
            terminal_progress progress{s.settings()};
            progress.begin(phase::preflight, 100);
            s.now += 1s;
            progress.advance(50, std::string(200, 'n'));
            progress.end();
        }
        auto const width = static_cast<std::size_t>(columns < 2 ? 2 : columns);
        BOOST_TEST_REQUIRE(shown(s.take(), width - 1).size() == 2U);
    }
}

BOOST_AUTO_TEST_CASE(a_terminal_may_become_narrower_and_wider) {
    stage s;
    terminal_progress progress{s.settings()};
    progress.begin(phase::payload, 100);
    for (int const columns : {120, 40, 10, 200}) {
        s.columns = columns;
        s.now += 1s;
        progress.advance(50, "w");
        auto const text = s.take();
        BOOST_TEST(text.find('\n') == std::string::npos);
        BOOST_TEST(shown(text, 200).back().size() < static_cast<std::size_t>(columns));
    }
}

BOOST_AUTO_TEST_CASE(a_phase_that_moved_nothing_leaves_nothing) {
    stage s;
    terminal_progress progress{s.settings()};
    progress.begin(phase::vote, 0);
    progress.end();
    BOOST_TEST(s.take().empty());
    progress.begin(phase::payload, 100);
    s.now += 1s;
    progress.advance(0, "w");
    progress.end();
    BOOST_TEST((shown(s.take(), 80) == std::vector<std::string>{""}));
}

BOOST_AUTO_TEST_CASE(an_exception_leaves_the_bar_on_its_own_line) {
    stage s;
    try {
        terminal_progress progress{s.settings()};
        progress.begin(phase::payload, 100);
        s.now += 1s;
        progress.advance(50, "w");
        throw std::runtime_error{"peer is gone"};
    } catch (std::runtime_error const& e) {
        s.out << e.what();
    }
    auto const lines = shown(s.take(), 80);
    BOOST_TEST_REQUIRE(lines.size() == 2U);
    BOOST_TEST(lines[0].starts_with("payload ["));
    BOOST_TEST(lines[1] == "peer is gone");
}

BOOST_AUTO_TEST_CASE(a_bar_that_was_not_drawn_leaves_no_empty_line) {
    stage s;
    {
        terminal_progress progress{s.settings()};
        progress.begin(phase::payload, 100);
        progress.advance(50, "w");
    }
    BOOST_TEST(s.take().empty());
}

BOOST_AUTO_TEST_CASE(calls_in_an_odd_order_do_no_harm) {
    stage s;
    terminal_progress progress{s.settings()};
    progress.advance(5, "w");
    progress.end();
    BOOST_TEST(s.take().empty());
    progress.begin(phase::payload, 100);
    s.now += 1s;
    progress.advance(50, "w");
    progress.begin(phase::vote, 10);  // without end
    s.now += 1s;
    progress.advance(10, "w");
    progress.end();
    progress.end();
    auto const lines = shown(s.take(), 80);
    BOOST_TEST_REQUIRE(lines.size() == 3U);
    BOOST_TEST(lines[0].starts_with("payload ["));
    BOOST_TEST(lines[1] == "vote: 10 B in 1.00 s, 0.00 GB/s");
}

BOOST_AUTO_TEST_CASE(a_name_that_dies_after_the_call_is_not_touched_again) {
    stage s;
    terminal_progress progress{s.settings()};
    progress.begin(phase::payload, 100);
    s.now += 1s;
    progress.advance(10, std::string(5000, 'n'));  // freed here
    s.now += 1s;
    progress.end();
    BOOST_TEST(shown(s.take(), 80).front() == "payload: 10 B in 2.00 s, 0.00 GB/s");
}

// A pseudo-terminal of that width that stands for standard error while this lives.
class pseudo_terminal {
  public:
    explicit pseudo_terminal(unsigned short columns) {
        main_ = ::posix_openpt(O_RDWR | O_NOCTTY);
        if (main_ < 0 || ::grantpt(main_) != 0 || ::unlockpt(main_) != 0) return;
        int const line = ::open(::ptsname(main_), O_RDWR | O_NOCTTY);
        if (line < 0) return;
        ::winsize size{};
        size.ws_col = columns;
        ::ioctl(line, TIOCSWINSZ, &size);
        std::cerr.flush();
        saved_ = ::dup(STDERR_FILENO);
        ::dup2(line, STDERR_FILENO);
        ::close(line);
    }
    pseudo_terminal(pseudo_terminal const&) = delete;
    ~pseudo_terminal() {
        give_back();
        if (main_ >= 0) ::close(main_);
    }
    bool open() const { return saved_ >= 0; }
    /// Everything that was written to it; standard error is the old one again.
    std::string text() {
        std::string result;
        ::pollfd ready{main_, POLLIN, 0};
        std::string buffer(4096, '\0');
        while (::poll(&ready, 1, 100) == 1 && (ready.revents & POLLIN) != 0) {
            auto const n = ::read(main_, buffer.data(), buffer.size());
            if (n <= 0) break;
            result.append(buffer, 0, static_cast<std::size_t>(n));
        }
        give_back();
        return result;
    }

  private:
    void give_back() {
        if (saved_ < 0) return;
        ::dup2(saved_, STDERR_FILENO);
        ::close(saved_);
        saved_ = -1;
    }
    int main_ = -1;
    int saved_ = -1;
};

struct environment {
    environment(char const* name, char const* value) : name_{name} {
        if (auto const* const old = std::getenv(name)) old_ = old;
        ::setenv(name, value, 1);
    }
    environment(environment const&) = delete;
    ~environment() { old_.empty() ? ::unsetenv(name_) : ::setenv(name_, old_.c_str(), 1); }

  private:
    char const* name_;
    std::string old_{};
};

BOOST_AUTO_TEST_CASE(a_real_terminal_is_found_and_its_width_kept) {
    environment const kind{"TERM", "xterm"};
    pseudo_terminal terminal{61};
    if (!terminal.open()) {
        BOOST_TEST_MESSAGE("skipped: no pseudo-terminal can be opened here");
        return;
    }
    {
        terminal_settings settings;  // as users have it, but drawn each time
        settings.interval = 0ms;
        terminal_progress progress{settings};
        progress.begin(phase::payload, 1000);
        for (std::uint64_t i = 0; i <= 10; ++i) progress.advance(100 * i, "model.layers.11.weight");
        progress.end();
    }
    auto text = terminal.text();
    for (std::size_t at = 0; (at = text.find("\r\n", at)) != std::string::npos;) text.erase(at, 1);
    auto const lines = shown(text, 60);
    BOOST_TEST_REQUIRE(lines.size() == 2U);
    BOOST_TEST(lines[0].starts_with("payload: 1.00 kB in 0."));
    BOOST_TEST(text.find("[====") == std::string::npos);  // too narrow for a bar with these facts
    BOOST_TEST(text.find("50%  500 B of 1.00 kB") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_terminal_that_cannot_go_back_is_none) {
    environment const kind{"TERM", "dumb"};
    pseudo_terminal const terminal{80};
    if (!terminal.open()) return;
    BOOST_TEST(!is_terminal(STDERR_FILENO));
}

BOOST_AUTO_TEST_CASE(pipes_and_files_are_no_terminals) {
    int ends[2];
    BOOST_TEST_REQUIRE(::pipe(ends) == 0);
    BOOST_TEST(!is_terminal(ends[1]));
    BOOST_TEST(terminal_columns(ends[1]) == 80);
    ::close(ends[0]);
    ::close(ends[1]);
    BOOST_TEST(!is_terminal(-1));
    BOOST_TEST(terminal_columns(-1) == 80);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
