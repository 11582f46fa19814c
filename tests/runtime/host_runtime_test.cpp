// SPDX-License-Identifier: Apache-2.0
// What host_runtime has beyond the laws: operations, settings, checks of copies, device waits, limits.
#include <weightcast/runtime/host_runtime.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <limits>
#include <thread>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "runtime/host_support.hpp"
#include "support/says.hpp"

namespace {

using namespace weightcast;
using namespace weightcast::test;
using namespace std::chrono_literals;

static_assert(DeviceRuntime<host_runtime>);
static_assert(std::is_trivially_copyable_v<host_stream_ref>);
static_assert(std::is_trivially_copyable_v<host_event_ref>);

BOOST_AUTO_TEST_SUITE(host_runtime_suite)

// --- operations ---

BOOST_AUTO_TEST_CASE(an_operation_runs_on_a_thread_of_its_stream) {
    stream<runtime> const one{host0};
    stream<runtime> const other{host0};
    std::array<std::thread::id, 3> ran{};
    auto const note = [&](stream<runtime> const& on, std::size_t i) {
        runtime::enqueue(on, [slot = &ran[i]]() noexcept { *slot = std::this_thread::get_id(); });
    };
    note(one, 0);
    note(one, 1);
    note(other, 2);
    BOOST_TEST(runtime::wait(one, soon()));
    BOOST_TEST(runtime::wait(other, soon()));
    BOOST_TEST((ran[0] != std::this_thread::get_id()));
    BOOST_TEST((ran[0] == ran[1]));
    BOOST_TEST((ran[0] != ran[2]));
}

BOOST_AUTO_TEST_CASE(an_operation_arrives_byte_for_byte_whatever_its_size) {
    stream<runtime> const s{host0};
    auto const check = [&]<std::size_t Bytes>(std::integral_constant<std::size_t, Bytes>) {
        struct operation {
            std::array<unsigned char, Bytes> bytes;
            std::array<unsigned char, Bytes>* out;
            void operator()() const noexcept { *out = bytes; }
        };
        operation work{};
        std::array<unsigned char, Bytes> out{};
        for (std::size_t i = 0; i < Bytes; ++i)
            work.bytes[i] = static_cast<unsigned char>(i * 5 + 1);
        work.out = &out;
        runtime::enqueue(s, work);
        BOOST_TEST(runtime::wait(s, soon()));
        BOOST_TEST((out == work.bytes));
    };
    check(std::integral_constant<std::size_t, 1>{});
    check(std::integral_constant<std::size_t, 7>{});
    check(std::integral_constant<std::size_t, 8>{});
    check(std::integral_constant<std::size_t, 9>{});
    check(std::integral_constant<std::size_t, 88>{});
    check(std::integral_constant<std::size_t, 311>{});
    check(std::integral_constant<std::size_t, 312>{});  // 320 bytes with the pointer
}

BOOST_AUTO_TEST_CASE(an_operation_keeps_its_alignment) {
    struct alignas(16) aligned {
        std::uint32_t value;
    };
    stream<runtime> const s{host0};
    std::uintptr_t at = 1;
    std::uint32_t seen = 0;
    aligned const held{17};
    runtime::enqueue(s, [held, &at, &seen]() noexcept {
        at = reinterpret_cast<std::uintptr_t>(&held) % 16;
        seen = held.value;
    });
    BOOST_TEST(runtime::wait(s, soon()));
    BOOST_TEST(at == 0U);
    BOOST_TEST(seen == 17U);
}

BOOST_AUTO_TEST_CASE(a_queue_grows_and_keeps_its_order) {
    constexpr std::uint32_t count = 20'000;
    stream<runtime> const s{host0};
    std::vector<std::uint32_t> ran;
    ran.reserve(count);
    for (int round = 0; round < 3; ++round) {  // the second time nothing grows
        ran.clear();
        stream_blocker<runtime> blocker{s.ref()};
        for (std::uint32_t i = 0; i < count; ++i) {
            runtime::enqueue(s, [&ran, i]() noexcept { ran.push_back(i); });
        }
        BOOST_TEST(!s.query());
        blocker.open();
        BOOST_TEST(runtime::wait(s, soon()));
        BOOST_TEST(ran.size() == count);
        BOOST_TEST(std::ranges::is_sorted(ran));
    }
}

BOOST_AUTO_TEST_CASE(a_queue_grows_while_its_thread_runs) {
    stream<runtime> const s{host0};
    std::uint32_t next = 0;
    bool in_order = true;
    for (std::uint32_t i = 0; i < 50'000; ++i) {
        runtime::enqueue(s,
                         [&next, &in_order, i]() noexcept { in_order = in_order && next++ == i; });
        if (i % 5'000 == 0) BOOST_TEST(runtime::wait(s, soon()));  // sometimes it runs dry
    }
    BOOST_TEST(runtime::wait(s, soon()));
    BOOST_TEST(in_order);
    BOOST_TEST(next == 50'000U);
}

BOOST_AUTO_TEST_CASE(more_points_than_a_ring_holds_may_be_outstanding) {
    stream<runtime> const s{host0};
    stream_blocker<runtime> blocker{s.ref()};
    std::vector<event<runtime>> events(500);
    for (auto const& e : events) e.record(s);
    BOOST_TEST(std::ranges::none_of(events, [](auto const& e) { return e.query(); }));
    blocker.open();
    BOOST_TEST(events.back().wait(soon()));
    BOOST_TEST(std::ranges::all_of(events, [](auto const& e) { return e.query(); }));
    for (int i = 0; i < 1'000; ++i) events.front().record(s);  // an old point is used again
    BOOST_TEST(events.back().query());
    BOOST_TEST(events.front().wait(soon()));
}

BOOST_AUTO_TEST_CASE(a_stream_waits_for_streams_of_every_kind) {
    stream<runtime> const of_cpu{cpu_device};
    stream<runtime> const of_host{host1};
    std::uint32_t value = 0;
    std::uint32_t seen = 0;
    stream_blocker<runtime> blocker{of_cpu.ref()};
    runtime::enqueue(of_cpu, [&value]() noexcept { value = 5; });
    event<runtime> const written{of_cpu.ref()};
    runtime::stream_wait(of_host, written);
    runtime::enqueue(of_host, [&value, &seen]() noexcept { seen = value; });
    BOOST_TEST(!runtime::wait(of_host, at_once()));
    blocker.open();
    BOOST_TEST(runtime::wait(of_host, soon()));
    BOOST_TEST(seen == 5U);
}

BOOST_AUTO_TEST_CASE(a_stream_that_waits_for_itself_goes_on) {
    stream<runtime> const s{host0};
    event<runtime> const e{s.ref()};
    runtime::stream_wait(s, e);
    BOOST_TEST(runtime::wait(s, soon()));
}

// --- handles that are no longer good ---

BOOST_AUTO_TEST_CASE(a_destroyed_stream_is_found_out) {
    auto const dead = stream<runtime>{host0}.ref();
    event<runtime> const e;
    auto const destroyed = says{"this stream was destroyed"};
    BOOST_CHECK_EXCEPTION(static_cast<void>(runtime::query(dead)), contract_violation, destroyed);
    BOOST_CHECK_EXCEPTION(static_cast<void>(runtime::device_of(dead)), contract_violation,
                          destroyed);
    BOOST_CHECK_EXCEPTION(static_cast<void>(runtime::wait(dead, soon())), contract_violation,
                          destroyed);
    BOOST_CHECK_EXCEPTION(runtime::enqueue(dead, []() noexcept {}), contract_violation, destroyed);
    BOOST_CHECK_EXCEPTION(runtime::record(e, dead), contract_violation, destroyed);
    BOOST_CHECK_EXCEPTION(static_cast<void>(runtime::allocate(8, host0, dead)), contract_violation,
                          destroyed);
    BOOST_CHECK_EXCEPTION(runtime::mark_communicator_stream(dead), contract_violation, destroyed);
    stream<runtime> const s{host0};
    e.record(s);
    BOOST_TEST(runtime::wait(s, soon()));
    BOOST_CHECK_EXCEPTION(runtime::stream_wait(dead, e), contract_violation, destroyed);
    // also when another stream has taken its place
    std::vector<stream<runtime>> others;
    for (int i = 0; i < 8; ++i) others.emplace_back(host1);
    BOOST_CHECK_EXCEPTION(static_cast<void>(runtime::query(dead)), contract_violation, destroyed);
}

BOOST_AUTO_TEST_CASE(a_destroyed_event_is_found_out) {
    auto const dead = event<runtime>{}.ref();
    event<runtime> const in_its_place;
    stream<runtime> const s{host0};
    auto const destroyed = says{"this event was destroyed"};
    BOOST_CHECK_EXCEPTION(static_cast<void>(runtime::query(dead)), contract_violation, destroyed);
    BOOST_CHECK_EXCEPTION(static_cast<void>(runtime::wait(dead, soon())), contract_violation,
                          destroyed);
    BOOST_CHECK_EXCEPTION(runtime::record(dead, s), contract_violation, destroyed);
    BOOST_CHECK_EXCEPTION(runtime::stream_wait(s, dead), contract_violation, destroyed);
}

BOOST_AUTO_TEST_CASE(destroying_a_stuck_stream_returns_at_once) {
    event<runtime> const end;
    std::uint32_t ran = 0;
    {
        stream<runtime> stuck{host0};
        stream_blocker<runtime> blocker{stuck.ref()};
        blocker.wait_until_started();
        runtime::enqueue(stuck, [&ran]() noexcept { ++ran; });
        end.record(stuck);
        { auto const gone = std::move(stuck); }
        BOOST_TEST(!end.query());
        BOOST_TEST(!runtime::wait_device(0, at_once()));  // its work is still the device's
    }
    BOOST_TEST(end.wait(soon()));
    BOOST_TEST(ran == 1U);
    BOOST_TEST(runtime::wait_device(0, soon()));
}

BOOST_AUTO_TEST_CASE(streams_come_and_go) {
    std::atomic<int> ran{0};
    for (int i = 0; i < 200; ++i) {
        stream<runtime> const s{i % 2 == 0 ? host0 : cpu_device};
        runtime::enqueue(s, [&ran]() noexcept { ran.fetch_add(1, std::memory_order_release); });
        if (i % 3 == 0) BOOST_TEST(runtime::wait(s, soon()));
    }
    for (auto const until = soon(); ran.load() != 200 && !until.expired();)
        std::this_thread::yield();
    BOOST_TEST(ran.load() == 200);
}

// --- settings ---

BOOST_AUTO_TEST_CASE(defaults_need_no_call) {
    BOOST_TEST((runtime::settings() == host_runtime_settings{}));
    BOOST_TEST(runtime::device_count() == 4);
    BOOST_TEST(runtime::current_device() == 0);
}

BOOST_AUTO_TEST_CASE(devices_may_grow_at_any_time_and_shrink_while_nothing_is_alive) {
    settings_scope const restored{{.device_count = 4}};
    {
        stream<runtime> const alive{host0};
        runtime::configure({.device_count = 6});
        stream<runtime> const of_new{{device_kind::host, 5}};
        BOOST_TEST(runtime::device_count() == 6);
        BOOST_CHECK_EXCEPTION(runtime::configure({.device_count = 5}), contract_violation,
                              says({"device_count goes from 6 to 5", "alive"}));
        BOOST_TEST(runtime::device_count() == 6);
    }
    {
        event<runtime> const alive;
        BOOST_CHECK_THROW(runtime::configure({.device_count = 5}), contract_violation);
    }
    {
        stream<runtime> s{host0};
        void* const alive = runtime::allocate(8, host0, s);
        auto const on = s.release();
        BOOST_CHECK_THROW(runtime::configure({.device_count = 5}), contract_violation);
        runtime::deallocate(alive, on);
        runtime::destroy_stream(on);
    }
    runtime::set_current_device(5);
    runtime::configure({.device_count = 2});
    BOOST_TEST(runtime::device_count() == 2);
    BOOST_TEST(runtime::current_device() == 0);
    BOOST_CHECK_EXCEPTION(runtime::set_current_device(2), bad_argument,
                          says({"host:2", "host:0 to host:1"}));
}

BOOST_AUTO_TEST_CASE(settings_out_of_range_change_nothing) {
    auto const before = runtime::settings();
    BOOST_CHECK_EXCEPTION(runtime::configure({.device_count = 0}), bad_argument,
                          says({"device_count is 0", "1 to 64"}));
    BOOST_CHECK_EXCEPTION(runtime::configure({.device_count = 65}), bad_argument, says("65"));
    BOOST_CHECK_EXCEPTION(runtime::configure({.device_count = -1}), bad_argument, says("-1"));
    BOOST_CHECK_EXCEPTION(runtime::configure({.device_count = 8, .max_delay = -1us}), bad_argument,
                          says("max_delay is -1 us"));
    BOOST_CHECK_THROW(runtime::configure({.max_delay = 60'000'001us}), bad_argument);
    BOOST_TEST((runtime::settings() == before));
    settings_scope const all{{.device_count = 64, .max_delay = 60'000'000us}};
    stream<runtime> const last{{device_kind::host, 63}};
    BOOST_TEST(last.where().index == 63);
}

BOOST_AUTO_TEST_CASE(delays_come_from_their_seed) {
    std::vector<std::uint32_t> drawn;
    bool in_range = true;
    for (std::uint64_t stream = 0; stream < 20; ++stream) {
        for (std::uint64_t operation = 1; operation <= 50; ++operation) {
            auto const delay = detail::host_delay(1, stream, operation, 999);
            in_range = in_range && delay <= 999;
            drawn.push_back(delay);
        }
    }
    BOOST_TEST(in_range);
    BOOST_TEST(std::ranges::min(drawn) < 50U);
    BOOST_TEST(std::ranges::max(drawn) > 950U);
    std::ranges::sort(drawn);
    BOOST_TEST((std::ranges::unique(drawn).begin() - drawn.begin()) >
               550);  // 1000 draws, 632 expected
    static_assert(detail::host_delay(1, 2, 3, 1000) == detail::host_delay(1, 2, 3, 1000));
    static_assert(detail::host_delay(1, 2, 3, 1000) != detail::host_delay(2, 2, 3, 1000));
    static_assert(detail::host_delay(1, 2, 3, 1000) != detail::host_delay(1, 3, 3, 1000));
    static_assert(detail::host_delay(1, 2, 3, 0) == 0);
    static_assert(detail::host_delay(1, 2, 3, 0xFFFFFFFF) <= 0xFFFFFFFF);
}

BOOST_AUTO_TEST_CASE(delayed_operations_take_their_time) {
    settings_scope const delayed{{.max_delay = 20ms, .delay_seed = 7}};
    stream<runtime> const s{host0};
    auto const begin = std::chrono::steady_clock::now();
    for (int i = 0; i < 10; ++i) runtime::enqueue(s, []() noexcept {});
    BOOST_TEST(runtime::wait(s, soon()));
    BOOST_TEST((std::chrono::steady_clock::now() - begin >= 20ms));  // 110 ms in the mean
}

BOOST_AUTO_TEST_CASE(a_delay_is_drawn_at_the_call) {
    stream<runtime> const s{host0};
    stream_blocker<runtime> blocker{s.ref()};
    { settings_scope const slow{{.max_delay = 60'000'000us, .delay_seed = 1}}; }
    runtime::enqueue(s, []() noexcept {});
    blocker.open();
    BOOST_TEST(runtime::wait(s, soon()));
}

// --- copies ---

BOOST_AUTO_TEST_CASE(a_copy_knows_where_its_memory_is) {
    stream<runtime> const s{host0};
    device_buffer<runtime> const of_0{64, host0, s};
    device_buffer<runtime> const of_1{64, host1, s};
    std::array<std::byte, 64> plain{};
    auto const copy = [&](void* to, device to_device, void const* from, device from_device,
                          std::size_t bytes) {
        runtime::copy(to, to_device, from, from_device, bytes, s);
    };
    BOOST_CHECK_EXCEPTION(copy(plain.data(), cpu_device, of_0.data(), host1, 64), device_mismatch,
                          says({"the source lies on host:0", "not on host:1"}));
    BOOST_CHECK_EXCEPTION(copy(of_1.data(), host0, plain.data(), cpu_device, 64), device_mismatch,
                          says({"the destination lies on host:1", "not on host:0"}));
    BOOST_CHECK_EXCEPTION(copy(of_1.data(), cpu_device, plain.data(), cpu_device, 64),
                          device_mismatch, says({"host:1", "cpu"}));
    auto* const inside = static_cast<std::byte*>(of_0.data()) + 60;
    BOOST_CHECK_EXCEPTION(copy(inside, host1, plain.data(), cpu_device, 4), device_mismatch,
                          says("host:0"));
    BOOST_CHECK_EXCEPTION(copy(inside, host0, plain.data(), cpu_device, 5), bad_argument,
                          says({"4 bytes left", "5 bytes"}));
    BOOST_CHECK_EXCEPTION(copy(nullptr, host0, plain.data(), cpu_device, 5), bad_argument,
                          says({"destination is null", "5 bytes"}));
    BOOST_CHECK_EXCEPTION(copy(plain.data(), cpu_device, nullptr, cpu_device, 1), bad_argument,
                          says("source is null"));
    copy(inside, host0, plain.data(), cpu_device, 4);
    copy(plain.data(), host2, plain.data() + 32, host1, 32);  // memory that it does not know
    copy(nullptr, host0, nullptr, cpu_device, 0);             // nothing
    copy(of_0.data(), host0, of_0.data(), host0, 64);         // onto itself
    BOOST_TEST(runtime::wait(s, soon()));
}

BOOST_AUTO_TEST_CASE(a_copy_of_memory_that_was_given_back_is_refused) {
    stream<runtime> const s{host0};
    std::array<std::byte, 64> plain{};
    void* const p = runtime::allocate(64, host0, s);
    runtime::deallocate(p, s);
    BOOST_CHECK_EXCEPTION(runtime::copy(plain.data(), cpu_device, p, host0, 64, s), bad_argument,
                          says({"source", "host:0", "deallocated"}));
    BOOST_CHECK_EXCEPTION(runtime::copy(p, host0, plain.data(), cpu_device, 1, s), bad_argument,
                          says({"destination", "deallocated"}));
}

BOOST_AUTO_TEST_CASE(devices_of_other_kinds_are_refused) {
    stream<runtime> const s{host0};
    device const gpu{device_kind::cuda, 0};
    auto const range = says({"cuda:0", "cpu and host:0 to host:3"});
    BOOST_CHECK_EXCEPTION(static_cast<void>(runtime::create_stream(gpu)), bad_argument, range);
    BOOST_CHECK_EXCEPTION(static_cast<void>(runtime::allocate(1, gpu, s)), bad_argument, range);
    BOOST_CHECK_EXCEPTION(
        static_cast<void>(runtime::create_stream({device_kind::host, device::unresolved})),
        bad_argument, says({"host without an index", "host:0 to host:3"}));
    BOOST_CHECK_THROW(static_cast<void>(runtime::create_stream({device_kind::cpu, 1})),
                      bad_argument);
    BOOST_CHECK_THROW(static_cast<void>(runtime::device_wait_count(4)), bad_argument);
    BOOST_CHECK_THROW(runtime::trim({device_kind::host, 4}), bad_argument);
}

// --- the whole device ---

BOOST_AUTO_TEST_CASE(a_device_wait_leaves_communicators_out_and_is_counted) {
    stream<runtime> const communicators{host2};
    runtime::mark_communicator_stream(communicators);
    stream<runtime> const producer{host2};
    auto const counted = runtime::device_wait_count(2);
    auto const others = runtime::device_wait_count(1);
    stream_blocker<runtime> const stuck{communicators.ref()};
    std::uint32_t written = 0;
    runtime::enqueue(producer, [&written]() noexcept { written = 1; });
    BOOST_TEST(runtime::wait_device(2, soon()));
    BOOST_TEST(written == 1U);
    BOOST_TEST(!communicators.query());
    {
        stream_blocker<runtime> const also_stuck{producer.ref()};
        BOOST_TEST(!runtime::wait_device(2, at_once()));
    }
    BOOST_TEST(runtime::device_wait_count(2) == counted + 2);
    BOOST_TEST(runtime::device_wait_count(1) == others);
    BOOST_CHECK_THROW(static_cast<void>(runtime::wait_device(4, soon())), bad_argument);
}

BOOST_AUTO_TEST_CASE(a_stream_in_the_place_of_a_communicators_is_waited_for) {
    {
        stream<runtime> const communicators{host2};
        runtime::mark_communicator_stream(communicators);
    }
    std::vector<stream<runtime>> streams;  // one of them takes the place
    for (int i = 0; i < 40; ++i) streams.emplace_back(host2);
    for (auto const& s : streams) {
        stream_blocker<runtime> const stuck{s.ref()};
        BOOST_TEST(!runtime::wait_device(2, deadline::after(5ms)));
    }
}

BOOST_AUTO_TEST_CASE(a_device_wait_covers_more_streams_than_it_takes_at_once) {
    constexpr std::size_t count = 100;
    std::vector<stream<runtime>> streams;
    std::vector<std::uint32_t> written(count, 0);
    for (std::size_t i = 0; i < count; ++i) streams.emplace_back(host1);
    for (int round = 0; round < 3; ++round) {
        std::ranges::fill(written, 0U);
        for (std::size_t i = 0; i < count; ++i) {
            runtime::enqueue(streams[i], [slot = &written[i]]() noexcept {
                std::this_thread::sleep_for(1ms);
                *slot = 1;
            });
        }
        BOOST_TEST(runtime::wait_device(1, soon()));
        BOOST_TEST(std::ranges::count(written, 1U) == static_cast<long>(count));
    }
}

// --- limits ---

/// Nothing of that device is in use in any test before: returns what its pool keeps, once streams left it.
void empty_pool(device where) {
    auto const until = soon();
    while (runtime::memory(where).reserved != 0 && !until.expired()) runtime::trim(where);
    BOOST_TEST_REQUIRE(runtime::memory(where).reserved == 0U);
}

BOOST_AUTO_TEST_CASE(a_limit_is_kept_and_its_error_has_the_numbers) {
    empty_pool(host1);
    settings_scope const limited{{.device_memory_limit = byte_count{4096}}};
    stream<runtime> const s{host1};
    device_buffer<runtime> first{3000, host1, s};
    BOOST_CHECK_EXCEPTION(static_cast<void>(device_buffer<runtime>(2000, host1, s)), out_of_memory,
                          says({"no 2000 bytes on host:1", "3000 bytes are in use", "3072 reserved",
                                "0 of them given back", "limit is 4096"}));
    BOOST_TEST(runtime::memory(host1).active == 3000U);
    device_buffer<runtime> const second{1000, host1, s};
    BOOST_TEST(runtime::memory(host1).reserved == 4096U);
    device_buffer<runtime> const elsewhere{4000, host0, s};  // the limit is each device's own
    first = {};
    device_buffer<runtime> const third{2500, host1, s};
    BOOST_TEST(runtime::memory(host1).reserved <= 4096U);
}

BOOST_AUTO_TEST_CASE(at_the_limit_what_is_idle_makes_room) {
    empty_pool(host1);
    settings_scope const limited{{.device_memory_limit = byte_count{8192}}};
    stream<runtime> const s{host1};
    for (int i = 0; i < 4; ++i) device_buffer<runtime> const passing{2048, host1, s};
    BOOST_TEST(runtime::wait(s, soon()));
    device_buffer<runtime> const all{8192, host1, s};
    BOOST_TEST(runtime::memory(host1).reserved == 8192U);
}

BOOST_AUTO_TEST_CASE(at_the_limit_a_large_idle_block_is_not_wasted) {
    empty_pool(host1);
    settings_scope const limited{{.device_memory_limit = byte_count{8192}}};
    stream<runtime> const s{host1};
    { device_buffer<runtime> const large{6144, host1, s}; }
    BOOST_TEST(runtime::wait(s, soon()));
    device_buffer<runtime> const one{2500, host1, s};
    device_buffer<runtime> const two{2500, host1, s};
    BOOST_TEST(runtime::memory(host1).reserved == 2 * 2560U);
}

BOOST_AUTO_TEST_CASE(at_the_limit_a_stream_waits_for_memory_in_use) {
    empty_pool(host1);
    settings_scope const limited{{.device_memory_limit = byte_count{4096}}};
    stream<runtime> const busy{host1};
    stream<runtime> const other{host1};
    device_buffer<runtime> held{4096, host1, busy};
    void* const memory = held.data();
    stream_blocker<runtime> blocker{busy.ref()};
    held = {};
    device_buffer<runtime> const given{1000, host1, other};
    BOOST_TEST(given.data() == memory);
    BOOST_TEST(!runtime::wait(other, at_once()));
    blocker.open();
    BOOST_TEST(runtime::wait(other, soon()));
}

BOOST_AUTO_TEST_CASE(sizes_beyond_an_address_space_are_refused) {
    stream<runtime> const s{host0};
    for (auto const bytes :
         {std::numeric_limits<std::size_t>::max(), std::numeric_limits<std::size_t>::max() - 100,
          std::numeric_limits<std::size_t>::max() / 2 + 1}) {
        BOOST_CHECK_EXCEPTION(static_cast<void>(runtime::allocate(bytes, host0, s)), out_of_memory,
                              says(std::to_string(bytes)));
    }
    BOOST_TEST(runtime::allocate(0, host0, s) == nullptr);
    runtime::deallocate(nullptr, s);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
