// SPDX-License-Identifier: Apache-2.0
// Drills: a peer process is killed at a random moment of running updates, again and again. Each survivor hears of it
// within its limit, goes on with a new peer, and this process holds no more after the last drill than after the tenth.
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <iostream>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <comm/gloo_makers.hpp>
#include <support/process_resources.hpp>
#include <support/update_rank.hpp>
#include <weightcast/base/log.hpp>

namespace weightcast::test {
namespace {

using namespace std::chrono_literals;
using clock_type = std::chrono::steady_clock;

constexpr int size = 3;
constexpr auto stall = 2000ms;
constexpr auto margin = 500ms;

update_place place_of(int rank) { return {.rank = rank, .size = size, .stall = stall}; }

/// Joins, says so, and runs updates until it is killed. Arguments: rank, and where to join.
int run_until_killed(child_arguments const& arguments) {
    int const rank = std::stoi(arguments.at(0));
    auto const place = place_of(rank);
    if (rank == 0) {
        update_sender sender{place};
        sender.join(arguments.at(1));
        for (;;) static_cast<void>(sender.update(1));
    }
    update_receiver receiver{place};
    receiver.join(arguments.at(1));
    for (;;) static_cast<void>(receiver.update(1));
}
child const drill_victim{"drill_victim", &run_until_killed};

/// One of this process's ranks: runs updates until one fails, and notes when.
struct survivor {
    std::string failure{};
    clock_type::time_point returned{};
    int updates = 0;

    template <class Update>
    void run(std::atomic<int>& running, Update const& update) {
        try {
            for (;; ++updates) {
                update();
                if (updates == 0) ++running;
            }
        } catch (...) {
            returned = clock_type::now();
            failure = failure_line();
            if (updates == 0) ++running;
        }
    }
};

/// The ranks of this process, which live through all drills. One of three is a process of its own in each.
class drill_ground {
  public:
    drill_ground() {
        held_.emplace_back(cpu_device, update_specs(), 0);
        held_.emplace_back(cpu_device, update_specs(), 0);
        for (std::size_t i = 0; i < 2; ++i) held_[i].add_to(tables_[i].main());
        for (std::size_t i = 0; i < 2; ++i) {
            workers_.emplace_back(dense_engine<gloo_communicator, parameter_tables<>>{
                joining<gloo_communicator>(), tables_[i], limits_of(place_of(0))});
        }
    }

    /// Kills rank `victim` that long after all ranks have done an update; says what is wrong, or "".
    std::string drill(int victim, std::chrono::microseconds after) {
        meeting_point where;
        on_listening_ = [&](endpoint const& at) { where.tell(at); };
        std::optional<child_process> dying;
        std::vector<survivor> survivors(size);
        std::atomic<int> running{0};
        clock_type::time_point killed;
        {
            std::vector<std::jthread> threads;
            auto const start = [&](std::string const& at) {
                dying.emplace("drill_victim", child_arguments{std::to_string(victim), at});
            };
            if (victim == 0) {
                start("127.0.0.1:0");
                where.tell(endpoint{dying->read_line(deadline::after(60s)).substr(10)});
            }
            for (int rank = 0; rank < size; ++rank) {
                if (rank == victim) continue;
                threads.emplace_back([&, rank] {
                    survivors[static_cast<std::size_t>(rank)].run(running, member(rank, where));
                });
            }
            if (victim != 0) start(to_string(where.get()));
            auto const until = deadline::after(60s);
            while (running < size - 1 && !until.expired()) std::this_thread::sleep_for(1ms);
            std::this_thread::sleep_for(after);
            killed = clock_type::now();
            dying->kill();
        }
        leave();
        for (int rank = 0; rank < size; ++rank) {
            if (rank == victim) continue;
            auto const said = complaint(survivors[static_cast<std::size_t>(rank)], victim, killed);
            if (!said.empty()) return "rank " + std::to_string(rank) + ": " + said;
        }
        return "";
    }
    std::chrono::milliseconds slowest() const noexcept { return slowest_; }

  private:
    /// Joins at its first call, and is an update at each.
    std::function<void()> member(int rank, meeting_point const& where) {
        auto joined = std::make_shared<bool>(false);
        if (rank == 0) {
            return [this, joined] {
                if (!std::exchange(*joined, true))
                    sender_.init({init_of(place_of(0), "127.0.0.1:0")});
                auto source = model_.source();
                static_cast<void>(sender_.update(source).or_throw());
            };
        }
        auto& worker = workers_[static_cast<std::size_t>(rank - 1)];
        return [joined, rank, &where, &worker] {
            if (!std::exchange(*joined, true))
                worker.init(init_of(place_of(rank), to_string(where.get())));
            static_cast<void>(worker.serve_one());
        };
    }
    void leave() {
        sender_.engine().shutdown();
        for (auto& worker : workers_) worker.engine().shutdown();
    }
    std::string complaint(survivor const& one, int victim, clock_type::time_point killed) {
        if (one.updates == 0) return "no update passed: " + one.failure;
        if (one.failure.find(" suspect " + std::to_string(victim) + " ") == std::string::npos)
            return "another suspect than " + std::to_string(victim) + ": " + one.failure;
        auto const took =
            std::chrono::duration_cast<std::chrono::milliseconds>(one.returned - killed);
        slowest_ = std::max(slowest_, took);
        if (took <= stall + margin) return "";
        return "returned " + std::to_string(took.count()) + " ms after the kill: " + one.failure;
    }
    communicator_factory<gloo_communicator> listening() {
        return [this](group_init const& init) {
            gloo_options base{};
            base.on_listening = on_listening_;
            return joining<gloo_communicator>(base)(init);
        };
    }

    std::function<void(endpoint const&)> on_listening_{};
    test_model model_{cpu_device, update_specs(), 1};
    std::deque<test_model> held_;
    parameter_tables<> tables_[2];
    weight_sender<dense_trainer<gloo_communicator>> sender_{
        dense_trainer<gloo_communicator>{listening(), update_settings(), limits_of(place_of(0))}};
    std::deque<weight_worker<dense_engine<gloo_communicator, parameter_tables<>>>> workers_;
    std::chrono::milliseconds slowest_{};
};

void run_drills(int count) {
    constexpr unsigned seed = 20'260;
    std::mt19937 random{seed};
    BOOST_TEST_MESSAGE(count << " drills, seed " << seed);
    std::mutex mutex;
    std::vector<std::string> kept;
    scoped_log_sink const log{[&](std::string_view line) {
        std::lock_guard const lock{mutex};
        if (line.find("is kept") != std::string_view::npos) kept.emplace_back(line);
    }};
    drill_ground ground;
    process_resources const before = process_resources::now();
    process_resources after_ten;
    for (int n = 1; n <= count; ++n) {
        auto const said = ground.drill(n % size, std::chrono::microseconds{random() % 40'000});
        BOOST_REQUIRE_MESSAGE(said.empty(), "drill " << n << ", " << said);
        if (n == 10) after_ten = process_resources::settled(before);
    }
    auto const at_end = process_resources::settled(after_ten);
    BOOST_TEST_MESSAGE("slowest survivor: "
                       << ground.slowest().count() << " ms; after 10: " << after_ten.descriptors
                       << " descriptors, " << after_ten.threads << " threads, "
                       << after_ten.resident_bytes << " bytes; at the end: " << at_end.descriptors
                       << ", " << at_end.threads << ", " << at_end.resident_bytes);
    BOOST_TEST(at_end.descriptors == after_ten.descriptors);
    BOOST_TEST(at_end.threads == after_ten.threads);
    if (!is_sanitized())  // sanitizers keep freed memory
        BOOST_TEST(at_end.resident_bytes < after_ten.resident_bytes + (std::size_t{4} << 20U));
    for (auto const& line : kept) BOOST_ERROR(line);
}

BOOST_AUTO_TEST_SUITE(drill)

BOOST_AUTO_TEST_CASE(
    a_hundred_peers_killed_at_random_leave_survivors_that_go_on_and_nothing_behind) {
    run_drills(is_sanitized() ? 30 : 100);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weightcast::test
