// SPDX-License-Identifier: Apache-2.0
// `weightcast demo` when a process dies, hangs or is told to stop: one line, exit 1, and nobody left behind.

#include <boost/test/unit_test.hpp>

#include <signal.h>
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <boost/json.hpp>

#include <tools/model_files.hpp>
#include <tools/program.hpp>

using namespace weightcast;
using namespace weightcast::test;

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// A demo that would go on for hours.
class endless_demo {
  public:
    explicit endless_demo(child_arguments more = {}) : process_{start(more)} {}

    child_process& process() noexcept { return process_; }
    /// The process of a rank, once it has said so.
    pid_t pid(int rank) {
        auto const word = "rank " + std::to_string(rank) + " pid ";
        auto const until = patience();
        for (;;) {
            auto const& text = process_.errors();
            auto const at = text.find(word);
            if (at != std::string::npos && text.find('\n', at) != std::string::npos) {
                return std::stoi(text.substr(at + word.size()));
            }
            if (until.expired() || process_.wait(deadline::after(milliseconds{10}))) {
                throw std::runtime_error{"no '" + word + "' came: " + text};
            }
        }
    }
    std::vector<pid_t> pids() {
        std::vector<pid_t> all;
        for (int rank = 0; rank <= 2; ++rank) all.push_back(pid(rank));
        return all;
    }
    /// Until that round's row is on the screen.
    void await_round(int round) {
        auto const row = std::to_string(round) + " ";
        for (;;) {
            auto line = process_.read_line(patience());
            line.erase(0, line.find_first_not_of(' '));
            if (line.starts_with(row)) return;
        }
    }

  private:
    child_process start(child_arguments const& more) {
        auto const model = folder_ / "model.safetensors";
        // enough bytes for a round to be long, and cheap to make
        std::vector<file_tensor> tensors;
        for (int i = 0; i < 8; ++i) {
            std::string const name = "layers." + std::to_string(i);
            tensors.push_back({name + ".w", "F32", {1024, 1024}, std::string(4U << 20U, 'w')});
            tensors.push_back(made_tensor(name + ".norm", "F32", {1024}, 4));
        }
        write_file(model, safetensors_bytes(tensors));
        child_arguments all{"demo", "--model", model, "--rounds", "1000000"};
        all.insert(all.end(), more.begin(), more.end());
        return start_program(all);
    }
    temporary_folder folder_{};
    child_process process_;
};

/// Bytes that the loopback device has carried.
std::uint64_t loopback_bytes() {
    std::ifstream devices{"/proc/net/dev"};
    for (std::string line; std::getline(devices, line);) {
        auto const name = line.find("lo:");
        if (name != std::string::npos) return std::stoull(line.substr(name + 3));
    }
    throw std::runtime_error{"/proc/net/dev has no loopback device"};
}
void await_loopback_traffic(std::uint64_t bytes) {
    auto const begin = loopback_bytes();
    auto const until = patience();
    while (loopback_bytes() - begin < bytes && !until.expired()) {}
}

/// True once the process is no more, or is a zombie that waits for its new parent.
bool is_gone(pid_t pid) {
    std::ifstream status{"/proc/" + std::to_string(pid) + "/stat"};
    std::string line;
    if (!std::getline(status, line)) return true;
    auto const end = line.rfind(')');
    return end != std::string::npos && line.compare(end, 4, ") Z ") == 0;
}

void check_nobody_left(std::vector<pid_t> const& pids) {
    for (auto const pid : pids) {
        auto const until = deadline::after(seconds{30});
        while (!is_gone(pid) && !until.expired()) std::this_thread::sleep_for(milliseconds{5});
        BOOST_TEST(is_gone(pid), "process " << pid << " is left behind");
    }
}

/// "weightcast: <what> failed in phase <phase> at rank R (pid P, ...): ...", and nothing but it.
void check_failure_line(outcome const& run, std::string const& rank,
                        std::vector<std::string> const& phases) {
    BOOST_TEST(run.exit_code == 1);
    std::vector<std::string> ours;
    for (auto const& line : messages(run.err)) {
        if (line.find(" failed in phase ") != std::string::npos) ours.push_back(line);
    }
    BOOST_REQUIRE_MESSAGE(ours.size() == 1, run.err);
    BOOST_TEST(ours[0].starts_with("weightcast: "));
    BOOST_TEST(ours[0].find(" at " + rank) != std::string::npos, ours[0]);
    bool known = false;
    for (auto const& p : phases) {
        known = known || ours[0].find(" failed in phase " + p + " at ") != std::string::npos;
    }
    BOOST_TEST(known, ours[0]);
    BOOST_TEST_MESSAGE(ours[0]);
}

std::string killed(int rank, pid_t pid) {
    return "rank " + std::to_string(rank) + " (pid " + std::to_string(pid) +
           ", killed by signal 9): ";
}

std::vector<std::string> const of_a_round{"preflight", "payload", "vote", "commit"};

}  // namespace

BOOST_AUTO_TEST_SUITE(demo_failure)

BOOST_AUTO_TEST_CASE(a_worker_killed_in_mid_round_ends_the_demo) {
    for (int const rank : {1, 2}) {
        for (int const delay_ms : {0, 40}) {
            endless_demo demo;
            auto const pids = demo.pids();
            demo.await_round(1);
            std::this_thread::sleep_for(milliseconds{delay_ms});
            auto const begin = std::chrono::steady_clock::now();
            ::kill(pids[static_cast<std::size_t>(rank)], SIGKILL);
            auto const run = finish(demo.process());
            BOOST_TEST((std::chrono::steady_clock::now() - begin < seconds{20 + 10}));
            check_failure_line(run, killed(rank, pids[static_cast<std::size_t>(rank)]), of_a_round);
            BOOST_TEST(run.err.find("round ") != std::string::npos);
            check_nobody_left(pids);
        }
    }
}

BOOST_AUTO_TEST_CASE(a_worker_that_dies_while_bytes_move_is_told_with_its_tensor) {
    // others may use the loopback device too, and the machine may be slow to let this thread run: tried anew
    bool in_payload = false;
    for (int attempt = 0; attempt < 20 && !in_payload; ++attempt) {
        endless_demo demo;
        auto const pids = demo.pids();
        demo.await_round(1);
        await_loopback_traffic(4U << 20U);
        ::kill(pids[1], SIGKILL);
        auto const run = finish(demo.process());
        check_failure_line(run, killed(1, pids[1]), of_a_round);
        if (run.err.find("in phase payload") == std::string::npos) continue;
        in_payload = true;
        BOOST_TEST(run.err.find("payload: tensor 'layers.") != std::string::npos, run.err);
    }
    BOOST_TEST(in_payload);
}

BOOST_AUTO_TEST_CASE(json_is_whole_when_a_worker_is_killed) {
    endless_demo demo{{"--json"}};
    auto const pids = demo.pids();
    ::kill(pids[2], SIGKILL);
    auto const run = finish(demo.process());
    BOOST_TEST(run.exit_code == 1);
    auto const document = json_of(run);
    BOOST_TEST((keys_of(document) == std::vector<std::string>{"model", "tensors", "bytes", "policy",
                                                              "tp", "rounds", "workers",
                                                              "trainer_digest", "verified"}));
    BOOST_TEST(!document.at("verified").as_bool());
    BOOST_TEST(document.at("workers").as_array().size() == 2U);
}

BOOST_AUTO_TEST_CASE(a_worker_killed_before_the_first_round) {
    endless_demo demo;
    auto const pid = demo.pid(1);
    ::kill(pid, SIGKILL);
    auto const run = finish(demo.process());
    auto phases = of_a_round;
    phases.emplace_back("connect");
    check_failure_line(run, killed(1, pid), phases);
    check_nobody_left(demo.pids());
}

BOOST_AUTO_TEST_CASE(a_worker_that_hangs_ends_the_demo_at_its_deadline) {
    endless_demo demo{{"--deadline", "2"}};
    auto const pids = demo.pids();
    demo.await_round(1);
    ::kill(pids[2], SIGSTOP);
    auto const run = finish(demo.process());
    BOOST_TEST(run.exit_code == 1);
    BOOST_TEST(run.err.find(" failed in phase ") != std::string::npos, run.err);
    check_nobody_left(pids);  // the one that hangs too
}

BOOST_AUTO_TEST_CASE(workers_leave_a_trainer_that_hangs) {
    endless_demo demo{{"--deadline", "2", "--announce-deadline", "2"}};
    auto const pids = demo.pids();
    demo.await_round(1);
    demo.process().stop();
    check_nobody_left({pids[1], pids[2]});
    demo.process().resume();
    auto const run = finish(demo.process());
    BOOST_TEST(run.exit_code == 1);
    BOOST_TEST(run.err.find(" failed in phase ") != std::string::npos, run.err);
}

BOOST_AUTO_TEST_CASE(signals_to_the_trainer_end_its_workers_first) {
    for (int const signal : {SIGINT, SIGTERM, SIGHUP}) {
        endless_demo demo;
        auto const pids = demo.pids();
        if (signal == SIGTERM) demo.await_round(1);
        ::kill(demo.process().pid(), signal);
        auto const end = demo.process().wait(patience());
        BOOST_REQUIRE(end.has_value());
        BOOST_TEST(end->signal == signal);
        for (auto const pid : pids) BOOST_TEST(::kill(pid, 0) == -1);  // reaped
        BOOST_TEST(messages(demo.process().errors()).empty(), demo.process().errors());
    }
}

BOOST_AUTO_TEST_CASE(a_signal_that_was_ignored_stays_ignored) {
    temporary_folder const folder;
    auto const model = folder / "model.safetensors";
    write_file(model, safetensors_bytes(mixed_model()));
    child_process shell{
        "shell",
        {"trap '' HUP INT; exec \"$WEIGHTCAST_PROGRAM\" demo --rounds 1000000 --model '" + model +
         "'"}};
    auto const await_row = [&](std::string const& row) {
        while (shell.read_line(patience()).find(" " + row + " ") == std::string::npos) {}
    };
    await_row("1");
    ::kill(shell.pid(), SIGHUP);
    ::kill(shell.pid(), SIGINT);
    await_row("5");
    ::kill(shell.pid(), SIGTERM);
    auto const end = shell.wait(patience());
    BOOST_REQUIRE(end.has_value());
    BOOST_TEST(end->signal == SIGTERM);
}

BOOST_AUTO_TEST_CASE(workers_do_not_outlive_a_trainer_that_is_killed) {
    endless_demo demo;
    auto const pids = demo.pids();
    demo.await_round(1);
    demo.process().kill();
    BOOST_REQUIRE(demo.process().wait(patience()).has_value());
    check_nobody_left(pids);
}

BOOST_AUTO_TEST_CASE(a_worker_that_is_stopped_does_not_outlive_its_trainer) {
    endless_demo demo;
    auto const pids = demo.pids();
    ::kill(pids[1], SIGSTOP);
    demo.process().kill();
    BOOST_REQUIRE(demo.process().wait(patience()).has_value());
    check_nobody_left(pids);
}

BOOST_AUTO_TEST_CASE(a_demo_over_threads_is_ended_by_signals_too) {
    endless_demo demo{{"--transport", "local"}};
    demo.await_round(1);
    ::kill(demo.process().pid(), SIGINT);
    auto const end = demo.process().wait(patience());
    BOOST_REQUIRE(end.has_value());
    BOOST_TEST(end->signal == SIGINT);
}

BOOST_AUTO_TEST_CASE(workers_know_metadata_and_an_address_only) {
    endless_demo demo{{"--seed", "123456789"}};
    auto const pid = demo.pids()[1];
    demo.await_round(1);
    auto const proc = "/proc/" + std::to_string(pid);
    for (std::string const file : {"/cmdline", "/environ", "/maps"}) {
        auto const text = read_file(proc + file);
        BOOST_TEST(text.find("model.safetensors") == std::string::npos, file);
        BOOST_TEST(text.find("123456789") == std::string::npos, file);
    }
    for (auto const& entry : std::filesystem::directory_iterator{proc + "/fd"}) {
        std::error_code gone;
        auto const target = std::filesystem::read_symlink(entry.path(), gone).string();
        BOOST_TEST(target.find(".safetensors") == std::string::npos);
    }
}

BOOST_AUTO_TEST_SUITE_END()
