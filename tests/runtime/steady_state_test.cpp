// SPDX-License-Identifier: Apache-2.0
// In the steady state no call of host_runtime allocates, on no thread: the program counts.
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

#include <boost/test/unit_test.hpp>

#include "runtime/host_support.hpp"

namespace {

std::atomic<std::uint64_t> allocations{0};

void* counted(std::size_t bytes, std::size_t alignment) {
    allocations.fetch_add(1, std::memory_order_relaxed);
    auto const rounded = (bytes + alignment - 1) / alignment * alignment;
    void* const p = alignment <= alignof(std::max_align_t)
                        ? std::malloc(bytes == 0 ? 1 : bytes)
                        : std::aligned_alloc(alignment, rounded == 0 ? alignment : rounded);
    return p;
}
void* counted_or_throw(std::size_t bytes, std::size_t alignment) {
    if (void* const p = counted(bytes, alignment)) return p;
    throw std::bad_alloc{};
}

}  // namespace

// Not inlined: g++ would take the pair malloc and free, seen through, for a mismatch.
[[gnu::noinline]] void* operator new(std::size_t bytes) { return counted_or_throw(bytes, 1); }
[[gnu::noinline]] void* operator new[](std::size_t bytes) { return counted_or_throw(bytes, 1); }
[[gnu::noinline]] void* operator new(std::size_t bytes, std::nothrow_t const&) noexcept {
    return counted(bytes, 1);
}
[[gnu::noinline]] void* operator new[](std::size_t bytes, std::nothrow_t const&) noexcept {
    return counted(bytes, 1);
}
[[gnu::noinline]] void* operator new(std::size_t bytes, std::align_val_t a) {
    return counted_or_throw(bytes, static_cast<std::size_t>(a));
}
[[gnu::noinline]] void* operator new[](std::size_t bytes, std::align_val_t a) {
    return counted_or_throw(bytes, static_cast<std::size_t>(a));
}
[[gnu::noinline]] void* operator new(std::size_t bytes, std::align_val_t a,
                                     std::nothrow_t const&) noexcept {
    return counted(bytes, static_cast<std::size_t>(a));
}
[[gnu::noinline]] void* operator new[](std::size_t bytes, std::align_val_t a,
                                       std::nothrow_t const&) noexcept {
    return counted(bytes, static_cast<std::size_t>(a));
}
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete[](void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete[](void* p, std::size_t) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::nothrow_t const&) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete[](void* p, std::nothrow_t const&) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete[](void* p, std::align_val_t) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t, std::align_val_t) noexcept {
    std::free(p);
}
[[gnu::noinline]] void operator delete[](void* p, std::size_t, std::align_val_t) noexcept {
    std::free(p);
}
[[gnu::noinline]] void operator delete(void* p, std::align_val_t, std::nothrow_t const&) noexcept {
    std::free(p);
}
[[gnu::noinline]] void operator delete[](void* p, std::align_val_t,
                                         std::nothrow_t const&) noexcept {
    std::free(p);
}

namespace {

using namespace weightcast;
using namespace weightcast::test;

/// Allocations in a second run of the same body.
template <class Body>
std::uint64_t allocations_when_repeated(Body body) {
    body();
    auto const before = allocations.load();
    body();
    return allocations.load() - before;
}

BOOST_AUTO_TEST_SUITE(steady_state_suite)

BOOST_AUTO_TEST_CASE(the_counter_counts) {
    auto const count = allocations_when_repeated([] {
        int* volatile const p = new int{1};  // volatile: or the pair is optimised away
        delete p;
    });
    BOOST_TEST(count == 1U);
    auto const aligned = allocations_when_repeated([] {
        ::operator delete(::operator new(300, std::align_val_t{256}, std::nothrow),
                          std::align_val_t{256});
    });
    BOOST_TEST(aligned == 1U);
}

BOOST_AUTO_TEST_CASE(queue_events_and_waits_allocate_nothing) {
    stream<runtime> const first{host0};
    stream<runtime> const second{host1};
    event<runtime> const e;
    bool done = true;
    auto const count = allocations_when_repeated([&] {
        stream_blocker<runtime> blocker{first.ref()};  // the queue gets as deep as it gets
        for (int i = 0; i < 500; ++i) {
            runtime::enqueue(first, []() noexcept {});
            runtime::record(e, first);
            runtime::stream_wait(second, e);
            runtime::enqueue(second, []() noexcept {});
            done = !runtime::query(e) && !runtime::query(second) && done;
        }
        blocker.open();
        done = runtime::wait(e, soon()) && runtime::wait(second, soon()) &&
               runtime::wait_device(0, soon()) && runtime::wait_device(1, soon()) && done;
    });
    BOOST_TEST(count == 0U);
    BOOST_TEST(done);
}

BOOST_AUTO_TEST_CASE(memory_is_reused_without_allocating) {
    stream<runtime> const s{host0};
    std::array<std::byte, 1024> plain{};
    bool done = true;
    auto const count = allocations_when_repeated([&] {
        stream_blocker<runtime> blocker{s.ref()};
        for (int i = 0; i < 100; ++i) {
            device_buffer<runtime> const large{100'000, host0, s};
            device_buffer<runtime> const small{1'000, host1, s};
            runtime::copy(large.data(), host0, plain.data(), cpu_device, plain.size(), s);
            runtime::copy(small.data(), host1, large.data(), host0, 1'000, s);
            done = runtime::locate(large.data()) == host0 && done;
        }
        blocker.open();
        done = runtime::wait(s, soon()) && done;
    });
    BOOST_TEST(count == 0U);
    BOOST_TEST(done);
}

BOOST_AUTO_TEST_CASE(events_are_made_again_without_allocating) {
    stream<runtime> const s{host0};
    bool done = true;
    auto const count = allocations_when_repeated([&] {
        for (int i = 0; i < 100; ++i) {
            event<runtime> const one{s.ref()};
            event<runtime> const other;
            done = one.wait(soon()) && other.query() && done;
        }
    });
    BOOST_TEST(count == 0U);
    BOOST_TEST(done);
}

BOOST_AUTO_TEST_CASE(guards_allocate_nothing) {
    auto const count = allocations_when_repeated([] {
        device_guard<runtime> const one{host1};
        device_guard<runtime> const other{cpu_device};
    });
    BOOST_TEST(count == 0U);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
