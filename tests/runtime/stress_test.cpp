// SPDX-License-Identifier: Apache-2.0
// Many callers at once: on one stream, across streams, with events and memory that they share.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "runtime/host_support.hpp"

namespace {

using namespace weightcast;
using namespace weightcast::test;

/// Runs the body on that many threads, each with its number, and waits for all.
template <class Body>
void on_threads(std::size_t count, Body body) {
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < count; ++i) threads.emplace_back([&body, i] { body(i); });
    for (auto& t : threads) t.join();
}

BOOST_AUTO_TEST_SUITE(stress_suite)

BOOST_AUTO_TEST_CASE(many_callers_push_on_one_stream) {
    constexpr std::size_t callers = 6;
    constexpr std::uint32_t each = 3'000;
    stream<runtime> const s{host0};
    std::array<std::uint32_t, callers> next{};  // written on the stream's thread alone
    std::uint64_t out_of_order = 0;
    on_threads(callers, [&](std::size_t caller) {
        for (std::uint32_t i = 0; i < each; ++i) {
            runtime::enqueue(s, [slot = &next[caller], i, &out_of_order]() noexcept {
                if ((*slot)++ != i) ++out_of_order;
            });
        }
    });
    BOOST_TEST(runtime::wait(s, soon()));
    BOOST_TEST(out_of_order == 0U);
    BOOST_TEST(std::ranges::count(next, each) == static_cast<long>(callers));
    BOOST_TEST(s.query());
}

BOOST_AUTO_TEST_CASE(a_ring_of_streams_passes_a_number_on) {
    constexpr std::size_t count = 5;
    constexpr int laps = 200;
    settings_scope const delayed{{.max_delay = std::chrono::microseconds{20}, .delay_seed = 11}};
    std::vector<stream<runtime>> streams;
    std::vector<event<runtime>> passed(count);
    for (std::size_t i = 0; i < count; ++i) {
        streams.emplace_back(device{device_kind::host, static_cast<int>(i % 4)});
    }
    std::uint64_t number = 0;  // touched by all streams, one after the other
    for (int lap = 0; lap < laps; ++lap) {
        for (std::size_t i = 0; i < count; ++i) {
            runtime::stream_wait(streams[i], passed[(i + count - 1) % count]);
            runtime::enqueue(streams[i], [&number]() noexcept { ++number; });
            passed[i].record(streams[i]);
        }
    }
    BOOST_TEST(passed.back().wait(soon()));
    BOOST_TEST(number == count * laps);
}

BOOST_AUTO_TEST_CASE(many_callers_share_events) {
    constexpr std::size_t callers = 4;
    stream<runtime> const left{host0};
    stream<runtime> const right{host1};
    event<runtime> const shared;
    std::atomic<int> failures{0};
    on_threads(callers, [&](std::size_t caller) {
        auto const& mine = caller % 2 == 0 ? left : right;
        for (int i = 0; i < 1'000; ++i) {
            shared.record(mine);
            runtime::stream_wait(caller % 2 == 0 ? right : left, shared);
            if (i % 50 == 0 && !shared.wait(soon())) failures.fetch_add(1);
            static_cast<void>(shared.query());
        }
    });
    BOOST_TEST(failures.load() == 0);
    BOOST_TEST(runtime::wait(left, soon()));
    BOOST_TEST(runtime::wait(right, soon()));
}

BOOST_AUTO_TEST_CASE(many_callers_allocate) {
    constexpr std::size_t callers = 4;
    settings_scope const poisoning{
        {.poison_freed = true, .max_delay = std::chrono::microseconds{5}, .delay_seed = 12}};
    std::array<std::uint64_t, 2> const before{runtime::memory(host0).active,
                                              runtime::memory(host1).active};
    std::atomic<int> wrong{0};
    on_threads(callers, [&](std::size_t caller) {
        stream<runtime> const s{caller % 2 == 0 ? host0 : host1};
        std::size_t volatile unknown = 1;
        for (std::size_t i = 0; i < 200; ++i) {
            auto const bytes = (i * 37 + caller * 101) % 5'000 + unknown;
            device_buffer<runtime> const memory{bytes, i % 3 == 0 ? host0 : host1, s};
            auto const mark = static_cast<int>(caller + 1);
            runtime::enqueue(
                s, [p = memory.data(), bytes, mark]() noexcept { std::memset(p, mark, bytes); });
            runtime::enqueue(s, [p = memory.data(), bytes, mark, &wrong]() noexcept {
                auto const* const read = static_cast<unsigned char const*>(p);
                if (read[0] != mark || read[bytes - 1] != mark) wrong.fetch_add(1);
            });
        }
        if (!runtime::wait(s, soon())) wrong.fetch_add(1);
    });
    BOOST_TEST(wrong.load() == 0);
    BOOST_TEST(runtime::memory(host0).active == before[0]);
    BOOST_TEST(runtime::memory(host1).active == before[1]);
    runtime::trim(host0);
    runtime::trim(host1);
}

BOOST_AUTO_TEST_CASE(streams_come_and_go_on_many_threads) {
    constexpr std::size_t callers = 4;
    std::atomic<int> ran{0};
    std::atomic<int> failures{0};
    on_threads(callers, [&](std::size_t caller) {
        for (int i = 0; i < 50; ++i) {
            stream<runtime> const s{caller % 2 == 0 ? host2 : cpu_device};
            event<runtime> const e;
            runtime::enqueue(s, [&ran]() noexcept { ran.fetch_add(1, std::memory_order_release); });
            e.record(s);
            if (i % 4 == 0 && !runtime::wait_device(2, soon())) failures.fetch_add(1);
            if (i % 2 == 0 && !e.wait(soon())) failures.fetch_add(1);
        }
    });
    for (auto const until = soon(); ran.load() != 200 && !until.expired();)
        std::this_thread::yield();
    BOOST_TEST(ran.load() == 200);
    BOOST_TEST(failures.load() == 0);
}

BOOST_AUTO_TEST_CASE(waiters_on_many_threads_all_wake) {
    stream<runtime> const s{host0};
    event<runtime> const e;
    std::atomic<int> woken{0};
    stream_blocker<runtime> blocker{s.ref()};
    e.record(s);
    std::vector<std::thread> waiters;
    for (int i = 0; i < 8; ++i) {
        waiters.emplace_back([&] {
            if (e.wait(soon())) woken.fetch_add(1);
        });
    }
    std::this_thread::sleep_for(std::chrono::milliseconds{20});
    BOOST_TEST(woken.load() == 0);
    blocker.open();
    for (auto& t : waiters) t.join();
    BOOST_TEST(woken.load() == 8);
}

BOOST_AUTO_TEST_CASE(an_operation_may_push_operations) {
    stream<runtime> const outer{host0};
    stream<runtime> const inner{host1};
    std::uint32_t ran = 0;
    event<runtime> const pushed;
    runtime::enqueue(outer, [on = inner.ref(), e = pushed.ref(), &ran]() noexcept {
        runtime::enqueue(on, [&ran]() noexcept { ++ran; });
        runtime::record(e, on);
    });
    BOOST_TEST(runtime::wait(outer, soon()));
    BOOST_TEST(pushed.wait(soon()));
    BOOST_TEST(ran == 1U);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
