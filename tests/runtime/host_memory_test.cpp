// SPDX-License-Identifier: Apache-2.0
// What the pools of host_runtime keep and what they give back, seen through their counters.
#include <weightcast/runtime/detail/host_memory.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <deque>
#include <thread>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "runtime/host_support.hpp"

namespace {

using namespace weightcast;
using namespace weightcast::test;

constexpr std::size_t kib = 1024;

/// A device that no other test of this file has touched, and its streams.
class fresh_pool {
  public:
    explicit fresh_pool(int index) : where{device_kind::host, index} {
        auto const until = soon();
        while (runtime::memory(where).reserved != 0 && !until.expired()) runtime::trim(where);
        BOOST_TEST_REQUIRE(runtime::memory(where).reserved == 0U);
    }
    std::uint64_t reserved() const { return runtime::memory(where).reserved; }
    /// A buffer that comes and goes, and the stream has left it.
    void pass(std::size_t bytes, stream<runtime> const& s) const {
        { device_buffer<runtime> const passing{bytes, where, s}; }
        BOOST_TEST(runtime::wait(s, soon()));
    }
    device where;
};

BOOST_AUTO_TEST_SUITE(host_memory_suite)

BOOST_AUTO_TEST_CASE(a_staging_buffer_of_64_mib_stays_flat) {
    fresh_pool const pool{3};
    stream<runtime> const s{pool.where};
    constexpr std::size_t bytes = 64 * kib * kib;
    for (int cycle = 0; cycle < 50; ++cycle) {
        {
            device_buffer<runtime> const staging{bytes, pool.where, s};
            BOOST_TEST(runtime::memory(pool.where).active == bytes);
        }
        BOOST_TEST(runtime::memory(pool.where).active == 0U);
        BOOST_TEST(pool.reserved() == bytes);
    }
}

BOOST_AUTO_TEST_CASE(an_outgrown_block_goes_back) {
    fresh_pool const pool{3};
    stream<runtime> const s{pool.where};
    for (std::size_t bytes = kib; bytes <= 256 * kib; bytes *= 2) pool.pass(bytes, s);
    BOOST_TEST(pool.reserved() == 256 * kib);
}

BOOST_AUTO_TEST_CASE(an_outgrown_block_in_use_goes_back_later) {
    fresh_pool const pool{3};
    stream<runtime> const s{pool.where};
    {
        stream_blocker<runtime> const blocker{s.ref()};
        for (std::size_t bytes = kib; bytes <= 256 * kib; bytes *= 2) {
            device_buffer<runtime> const passing{bytes, pool.where, s};
        }
        BOOST_TEST(pool.reserved() == 511 * kib);  // the stream has not left any
    }
    BOOST_TEST(runtime::wait(s, soon()));
    BOOST_TEST(pool.reserved() == 256 * kib);
}

BOOST_AUTO_TEST_CASE(a_block_that_fits_again_is_outgrown_no_longer) {
    fresh_pool const pool{3};
    stream<runtime> const s{pool.where};
    stream_blocker<runtime> blocker{s.ref()};
    void* small = nullptr;
    {
        device_buffer<runtime> const first{kib, pool.where, s};
        small = first.data();
    }
    { device_buffer<runtime> const larger{8 * kib, pool.where, s}; }
    device_buffer<runtime> const again{kib, pool.where, s};
    BOOST_TEST(again.data() == small);
    blocker.open();
    BOOST_TEST(runtime::wait(s, soon()));
    BOOST_TEST(pool.reserved() == 9 * kib);
}

BOOST_AUTO_TEST_CASE(a_block_is_not_wasted_on_a_small_request) {
    fresh_pool const pool{3};
    stream<runtime> const s{pool.where};
    pool.pass(64 * kib, s);
    device_buffer<runtime> const half{32 * kib, pool.where, s};  // twice as large: just right
    BOOST_TEST(pool.reserved() == 64 * kib);
    fresh_pool const other{2};
    other.pass(64 * kib, s);
    device_buffer<runtime> const less{32 * kib - 256, other.where, s};
    BOOST_TEST(other.reserved() == 96 * kib - 256);
}

BOOST_AUTO_TEST_CASE(the_smallest_that_fits_is_taken) {
    fresh_pool const pool{3};
    stream<runtime> const s{pool.where};
    std::array<void*, 3> data{};
    {
        device_buffer<runtime> const a{12 * kib, pool.where, s};
        device_buffer<runtime> const b{10 * kib, pool.where, s};
        device_buffer<runtime> const c{14 * kib, pool.where, s};
        data = {a.data(), b.data(), c.data()};
    }
    device_buffer<runtime> const first{9 * kib, pool.where, s};
    device_buffer<runtime> const second{9 * kib, pool.where, s};
    device_buffer<runtime> const third{13 * kib, pool.where, s};
    BOOST_TEST(first.data() == data[1]);
    BOOST_TEST(second.data() == data[0]);
    BOOST_TEST(third.data() == data[2]);
}

BOOST_AUTO_TEST_CASE(what_is_free_stays_below_the_peak) {
    settings_scope const many{{.device_count = 64}};
    fresh_pool const pool{40};  // never used before: its peak is what this test makes it
    std::vector<stream<runtime>> streams;
    for (int i = 0; i < 8; ++i) streams.emplace_back(host0);
    {
        std::deque<stream_blocker<runtime>> blockers;  // no stream can leave its block
        for (auto const& s : streams) {
            blockers.emplace_back(s.ref());
            device_buffer<runtime> const passing{64 * kib, pool.where, s};
        }
        BOOST_TEST(pool.reserved() == 8 * 64 * kib);
    }
    for (auto const& s : streams) BOOST_TEST(runtime::wait(s, soon()));
    BOOST_TEST(runtime::memory(pool.where).peak == 64 * kib);
    device_buffer<runtime> const small{kib, pool.where,
                                       streams[0]};  // none fits: time to look at them
    BOOST_TEST(pool.reserved() == 65 * kib);
}

BOOST_AUTO_TEST_CASE(trim_gives_back_what_is_idle_and_no_more) {
    fresh_pool const pool{3};
    stream<runtime> const idle{pool.where};
    stream<runtime> const busy{pool.where};
    device_buffer<runtime> const used{4 * kib, pool.where, idle};
    stream_blocker<runtime> blocker{busy.ref()};
    { device_buffer<runtime> const in_flight{8 * kib, pool.where, busy}; }
    pool.pass(16 * kib, idle);
    BOOST_TEST(pool.reserved() == 20 * kib + 8 * kib);
    runtime::trim(pool.where);
    BOOST_TEST(pool.reserved() == 12 * kib);
    blocker.open();
    BOOST_TEST(runtime::wait(busy, soon()));
    runtime::trim(pool.where);
    BOOST_TEST(pool.reserved() == 4 * kib);
    BOOST_TEST(runtime::locate(used.data()) == pool.where);
}

BOOST_AUTO_TEST_CASE(an_idle_block_goes_to_another_stream) {
    fresh_pool const pool{3};
    std::size_t volatile const bytes = 16 * kib;
    bool reused = false;
    for (auto const until = soon(); !reused && !until.expired();) {
        stream<runtime> const first{pool.where};
        stream<runtime> const second{host0};
        void* data = nullptr;
        {
            device_buffer<runtime> const b{bytes, pool.where, first};
            data = b.data();
            runtime::enqueue(first, [p = b.data(), n = bytes]() noexcept { std::memset(p, 1, n); });
        }
        // nothing here may wait for the first stream: then the thread sanitizer sees whether the second does
        std::this_thread::sleep_for(std::chrono::milliseconds{20});
        device_buffer<runtime> const again{bytes, pool.where, second};
        reused = again.data() == data;
        runtime::enqueue(second,
                         [p = again.data(), n = bytes]() noexcept { std::memset(p, 2, n); });
        BOOST_TEST(runtime::wait(second, soon()));
    }
    BOOST_TEST(reused);
}

BOOST_AUTO_TEST_CASE(freed_memory_is_overwritten_in_the_streams_order) {
    fresh_pool const pool{3};
    settings_scope const poisoning{{.poison_freed = true}};
    stream<runtime> const s{pool.where};
    constexpr std::size_t bytes = 1'000;
    std::vector<unsigned char> seen(bytes, 0);
    auto const look = [&](void const* p) {
        return [p, to = seen.data()]() noexcept { std::memcpy(to, p, bytes); };
    };
    {
        stream_blocker<runtime> const blocker{s.ref()};
        void* const p = runtime::allocate(bytes, pool.where, s);
        runtime::enqueue(s, [p]() noexcept { std::memset(p, 5, bytes); });
        runtime::enqueue(s, look(p));
        runtime::deallocate(p, s);  // the look comes first
    }
    BOOST_TEST(runtime::wait(s, soon()));
    BOOST_TEST(std::ranges::count(seen, 5) == static_cast<long>(bytes));
    void* const again = runtime::allocate(bytes, pool.where, s);
    runtime::enqueue(s, look(again));
    BOOST_TEST(runtime::wait(s, soon()));
    BOOST_TEST(std::ranges::count(seen, detail::host_poison_pattern) == static_cast<long>(bytes));
    runtime::deallocate(again, s);
}

BOOST_AUTO_TEST_CASE(poisoning_may_be_turned_on_and_off_between) {
    fresh_pool const pool{3};
    stream<runtime> const s{pool.where};
    std::size_t volatile const unknown = 0;
    for (int i = 0; i < 8; ++i) {
        settings_scope const set{{.poison_freed = i % 2 == 0}};
        auto const bytes = 900 - 30 * static_cast<std::size_t>(i % 3) + unknown;
        device_buffer<runtime> const b{bytes, pool.where, s};
        runtime::enqueue(s, [p = b.data(), bytes]() noexcept { std::memset(p, 7, bytes); });
    }
    BOOST_TEST(runtime::wait(s, soon()));
    runtime::trim(pool.where);
    BOOST_TEST(pool.reserved() == 0U);
}

BOOST_AUTO_TEST_CASE(each_device_has_a_pool_and_so_has_the_cpu) {
    fresh_pool const third{3};
    fresh_pool const second{2};
    stream<runtime> const s{host0};
    auto const of_cpu = runtime::memory(cpu_device).active;
    device_buffer<runtime> const a{kib, third.where, s};
    device_buffer<runtime> const b{kib, cpu_device, s};
    BOOST_TEST(third.reserved() == kib);
    BOOST_TEST(second.reserved() == 0U);
    BOOST_TEST(runtime::memory(cpu_device).active == of_cpu + kib);
    BOOST_TEST(runtime::locate(b.data()) == cpu_device);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
