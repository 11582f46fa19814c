// SPDX-License-Identifier: Apache-2.0
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <weightcast/base/log.hpp>
#include <weightcast/comm/group_registry.hpp>

BOOST_AUTO_TEST_SUITE(group_registry)

namespace wc = weightcast;

namespace {

/// Lines of the process log, while it lives.
struct heard_lines {
    std::vector<std::string> lines;
    wc::scoped_log_sink sink{[this](std::string_view line) { lines.emplace_back(line); }};
};

}  // namespace

BOOST_AUTO_TEST_CASE(groups_of_different_names_live_side_by_side) {
    heard_lines log;
    wc::group_registry registry;
    int replaced = 0;
    auto const a = registry.enter({"a", 0, "group a"}, [&](std::string_view) { ++replaced; });
    auto const b = registry.enter({"b", 0, "group b"}, [&](std::string_view) { ++replaced; });
    BOOST_TEST(registry.size() == 2U);
    BOOST_TEST(replaced == 0);
    BOOST_TEST(log.lines.empty());
}

BOOST_AUTO_TEST_CASE(ranks_of_one_process_share_a_name) {
    heard_lines log;
    wc::group_registry registry;
    int replaced = 0;
    auto const zero = registry.enter({"g", 0, "rank 0"}, [&](std::string_view) { ++replaced; });
    auto const one = registry.enter({"g", 1, "rank 1"}, [&](std::string_view) { ++replaced; });
    BOOST_TEST(registry.size() == 2U);
    BOOST_TEST(replaced == 0);
    BOOST_TEST(log.lines.empty());
}

BOOST_AUTO_TEST_CASE(the_same_name_and_rank_replaces_and_one_line_names_both) {
    heard_lines log;
    wc::group_registry registry;
    std::vector<std::string> reasons;
    auto const old = registry.enter({"g", 2, "the old one (port 1)"},
                                    [&](std::string_view why) { reasons.emplace_back(why); });
    auto const fresh = registry.enter({"g", 2, "the new one (port 2)"},
                                      [&](std::string_view why) { reasons.emplace_back(why); });
    BOOST_REQUIRE(log.lines.size() == 1U);
    BOOST_REQUIRE(reasons.size() == 1U);
    BOOST_TEST(log.lines.front() == reasons.front());
    for (auto const* part : {"'g'", "rank 2", "the old one (port 1)", "the new one (port 2)"}) {
        BOOST_TEST(log.lines.front().find(part) != std::string::npos, "missing: " << part);
    }
    BOOST_TEST(registry.size() == 1U);
    BOOST_TEST(old.holds());  // it still has to leave; that must not take the name from the new one
}

BOOST_AUTO_TEST_CASE(the_old_one_leaving_later_does_not_take_the_name_from_the_new_one) {
    heard_lines log;
    wc::group_registry registry;
    int old_replaced = 0;
    int fresh_replaced = 0;
    auto old = registry.enter({"g", 0, "old"}, [&](std::string_view) { ++old_replaced; });
    auto fresh = registry.enter({"g", 0, "fresh"}, [&](std::string_view) { ++fresh_replaced; });
    old.leave();
    BOOST_TEST(registry.size() == 1U);
    auto const third = registry.enter({"g", 0, "third"}, [](std::string_view) {});
    BOOST_TEST(old_replaced == 1);
    BOOST_TEST(fresh_replaced == 1);
    BOOST_TEST(log.lines.size() == 2U);
    fresh.leave();
    BOOST_TEST(registry.size() == 1U);
}

BOOST_AUTO_TEST_CASE(one_that_left_is_not_told) {
    heard_lines log;
    wc::group_registry registry;
    int replaced = 0;
    {
        auto const gone = registry.enter({"g", 0, "gone"}, [&](std::string_view) { ++replaced; });
    }
    BOOST_TEST(registry.size() == 0U);
    auto const fresh = registry.enter({"g", 0, "fresh"}, [&](std::string_view) { ++replaced; });
    BOOST_TEST(replaced == 0);
    BOOST_TEST(log.lines.empty());
}

BOOST_AUTO_TEST_CASE(entries_move_and_leave_once) {
    heard_lines log;
    wc::group_registry registry;
    wc::group_registry::entry held;
    BOOST_TEST(!held.holds());
    held.leave();  // nothing held: nothing happens
    held = registry.enter({"g", 0, "first"}, [](std::string_view) {});
    wc::group_registry::entry moved{std::move(held)};
    BOOST_TEST(moved.holds());
    BOOST_TEST(!held.holds());  // the stated moved-from state
    held.leave();
    BOOST_TEST(registry.size() == 1U);
    moved = registry.enter({"other", 0, "second"}, [](std::string_view) {});
    BOOST_TEST(registry.size() == 1U);  // "g" was given up by the assignment
    moved.leave();
    moved.leave();
    BOOST_TEST(registry.size() == 0U);
}

BOOST_AUTO_TEST_CASE(leaving_waits_for_a_replacement_under_way) {
    heard_lines log;
    wc::group_registry registry;
    std::atomic<bool> inside{false};
    std::atomic<bool> finish{false};
    std::atomic<bool> callback_done{false};
    auto old = registry.enter({"g", 0, "old"}, [&](std::string_view) {
        inside = true;
        while (!finish) std::this_thread::yield();
        callback_done = true;
    });
    std::thread joiner{
        [&] { auto const fresh = registry.enter({"g", 0, "fresh"}, [](std::string_view) {}); }};
    while (!inside) std::this_thread::yield();
    std::atomic<bool> done_when_left{false};
    std::thread leaver{[&] {
        old.leave();
        done_when_left = callback_done.load();
    }};
    std::this_thread::sleep_for(std::chrono::milliseconds{20});
    finish = true;
    leaver.join();
    joiner.join();
    BOOST_TEST(done_when_left.load());  // what the callback touches may be destroyed after leave()
}

BOOST_AUTO_TEST_CASE(of_many_that_enter_at_once_one_is_left_and_each_other_is_told_once) {
    heard_lines log;
    wc::group_registry registry;
    constexpr int count = 16;
    std::vector<std::atomic<int>> told(count);
    std::vector<wc::group_registry::entry> entries(count);
    std::vector<std::thread> threads;
    for (int i = 0; i < count; ++i) {
        threads.emplace_back([&, i] {
            auto const index = static_cast<std::size_t>(i);
            entries[index] = registry.enter({"g", 0, std::to_string(i)},
                                            [&, index](std::string_view) { ++told[index]; });
        });
    }
    for (auto& thread : threads) thread.join();
    int total = 0;
    for (auto const& one : told) {
        BOOST_TEST(one.load() <= 1);
        total += one.load();
    }
    BOOST_TEST(total == count - 1);
    BOOST_TEST(log.lines.size() == std::size_t{count - 1});
    BOOST_TEST(registry.size() == 1U);
}

BOOST_AUTO_TEST_CASE(the_process_has_one_registry) {
    BOOST_TEST(&wc::group_registry::process() == &wc::group_registry::process());
}

BOOST_AUTO_TEST_SUITE_END()
