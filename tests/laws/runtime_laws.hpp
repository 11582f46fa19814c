// SPDX-License-Identifier: Apache-2.0
// What every DeviceRuntime keeps to. A model gives its `stream_blocker` and runs check_runtime_laws.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <weightcast/base/error.hpp>
#include <weightcast/runtime/device_buffer.hpp>
#include <weightcast/runtime/device_guard.hpp>
#include <weightcast/runtime/event.hpp>
#include <weightcast/runtime/stream.hpp>
#include <weightcast/runtime/stream_sync_scope.hpp>

namespace weightcast::test {

/// Puts an operation on a stream that ends only when `open` is called; its destructor opens too. Specialise
/// it for a model: `stream_blocker(stream_ref)`, `open()`.
template <class R>
class stream_blocker;

/// Enough for a loaded machine, and less than a test's time limit.
inline deadline soon() { return deadline::after(std::chrono::seconds{60}); }
/// A deadline for what must not come.
inline deadline at_once() { return deadline::after(std::chrono::milliseconds{30}); }

/// The laws; `a` and `b` are two different devices of R.
template <DeviceRuntime R>
class runtime_laws {
  public:
    explicit runtime_laws(device a, device b) : a_{a}, b_{b} {}

    void check_all() const {
        copies_on_one_stream_run_in_order();
        nothing_runs_before_its_turn();
        an_event_never_recorded_is_reached();
        a_record_stands_for_what_came_before();
        a_second_record_replaces_the_first();
        a_stream_waits_for_the_record_at_the_call();
        a_destroyed_event_is_still_waited_for();
        a_wait_ends_at_its_deadline();
        streams_meet_through_events();
        a_destroyed_stream_finishes_its_work();
        memory_is_counted_at_the_call();
        memory_is_found_by_any_pointer_into_it();
        memory_is_not_given_to_others_before_its_time();
        memory_is_reused();
        a_device_wait_covers_that_device_alone();
        a_device_wait_leaves_communicators_out();
        the_current_device_belongs_to_the_thread();
        a_guard_restores_the_device();
        what_is_not_there_is_refused();
        a_stream_may_be_of_the_cpu();
        a_buffer_goes_with_its_owner();
        owners_move_and_are_empty_after();
        a_sync_scope_proves_before_it_frees();
    }

    void copies_on_one_stream_run_in_order() const {
        constexpr int hops = 100;
        stream<R> const s{a_};
        std::vector<std::uint32_t> out(256, 0);
        std::vector<std::uint32_t> in(256);
        for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<std::uint32_t>(i * 7 + 1);
        auto const bytes = bytes_of(in);
        device_buffer<R> first{bytes, a_, s};
        device_buffer<R> second{bytes, b_, s};
        R::copy(first.data(), a_, in.data(), cpu_device, bytes, s);
        for (int i = 0; i < hops; ++i) {
            R::copy(second.data(), b_, first.data(), a_, bytes, s);
            R::copy(first.data(), a_, second.data(), b_, bytes, s);
        }
        R::copy(out.data(), cpu_device, first.data(), a_, bytes, s);
        BOOST_TEST(event<R>{s.ref()}.wait(soon()));
        BOOST_TEST(out == in);
    }

    void nothing_runs_before_its_turn() const {
        stream<R> const s{a_};
        std::uint32_t const one = 1;
        std::uint32_t seen = 0;
        BOOST_TEST(s.query());
        stream_blocker<R> blocker{s.ref()};
        R::copy(&seen, cpu_device, &one, cpu_device, word_bytes(), s);
        event<R> const after{s.ref()};
        BOOST_TEST(!s.query());
        BOOST_TEST(!after.query());
        BOOST_TEST(!after.wait(at_once()));
        blocker.open();
        BOOST_TEST(after.wait(soon()));
        BOOST_TEST(seen == 1U);
        BOOST_TEST(after.query());
        BOOST_TEST(s.query());  // who saw the last point reached sees the stream done
    }

    void an_event_never_recorded_is_reached() const {
        event<R> const e;
        stream<R> const s{a_};
        BOOST_TEST(e.query());
        BOOST_TEST(e.wait(at_once()));
        R::stream_wait(s, e);
        BOOST_TEST(event<R>{s.ref()}.wait(soon()));
    }

    void a_record_stands_for_what_came_before() const {
        stream<R> const s{a_};
        event<R> const before{s.ref()};
        stream_blocker<R> const blocker{s.ref()};
        BOOST_TEST(before.wait(soon()));
        BOOST_TEST(before.query());
        BOOST_TEST(!s.query());
    }

    void a_second_record_replaces_the_first() const {
        stream<R> const slow{a_};
        stream<R> const fast{b_};
        event<R> const e;
        stream_blocker<R> blocker{slow.ref()};
        e.record(slow);
        BOOST_TEST(!e.query());
        e.record(fast);
        BOOST_TEST(e.wait(soon()));
        BOOST_TEST(e.query());
        BOOST_TEST(!slow.query());
        blocker.open();
        BOOST_TEST(event<R>{slow.ref()}.wait(soon()));
        BOOST_TEST(slow.query());
    }

    void a_stream_waits_for_the_record_at_the_call() const {
        stream<R> const slow{a_};
        stream<R> const waiting{b_};
        stream<R> const fast{a_};
        event<R> const e;
        stream_blocker<R> blocker{slow.ref()};
        e.record(slow);
        R::stream_wait(waiting, e);
        event<R> const woken{waiting.ref()};
        e.record(fast);
        BOOST_TEST(e.wait(soon()));
        BOOST_TEST(!woken.wait(at_once()));
        blocker.open();
        BOOST_TEST(woken.wait(soon()));
    }

    void a_destroyed_event_is_still_waited_for() const {
        stream<R> const slow{a_};
        stream<R> const waiting{b_};
        stream_blocker<R> blocker{slow.ref()};
        {
            event<R> const e{slow.ref()};
            R::stream_wait(waiting, e);
        }
        event<R> const woken{waiting.ref()};
        for (int i = 0; i < 100; ++i) {  // events that take the destroyed one's place
            stream<R> const other{b_};
            event<R> const e{other.ref()};
            BOOST_TEST(e.wait(soon()));
        }
        BOOST_TEST(!woken.query());
        blocker.open();
        BOOST_TEST(woken.wait(soon()));
    }

    void a_wait_ends_at_its_deadline() const {
        stream<R> const s{a_};
        auto const past = deadline::after(std::chrono::seconds{-1});
        event<R> const done{s.ref()};
        BOOST_TEST(done.wait(soon()));
        BOOST_TEST(done.wait(past));  // what is reached is reached, however late it is
        stream_blocker<R> const blocker{s.ref()};
        event<R> const stuck{s.ref()};
        auto const begin = std::chrono::steady_clock::now();
        BOOST_TEST(!stuck.wait(past));
        BOOST_TEST(!R::wait_device(a_.index, past));
        BOOST_TEST(!stuck.wait(deadline::after(std::chrono::milliseconds{50})));
        BOOST_TEST(!R::wait_device(a_.index, deadline::after(std::chrono::milliseconds{50})));
        auto const took = std::chrono::steady_clock::now() - begin;
        BOOST_TEST((took >= std::chrono::milliseconds{100}));
        BOOST_TEST((took < std::chrono::seconds{30}));
    }

    void streams_meet_through_events() const {
        constexpr std::size_t rounds = 100;
        stream<R> const left{a_};
        stream<R> const right{b_};
        std::vector<std::uint32_t> const numbers = count_to(rounds);
        std::vector<std::uint32_t> seen(rounds, 0);
        device_buffer<R> const shared{word_bytes(), a_, left};
        event<R> const written{left.ref()};
        event<R> const read;
        for (std::size_t i = 0; i < rounds; ++i) {
            R::stream_wait(left, read);
            R::copy(shared.data(), a_, &numbers[i], cpu_device, word_bytes(), left);
            written.record(left);
            R::stream_wait(right, written);
            R::copy(&seen[i], cpu_device, shared.data(), a_, word_bytes(), right);
            read.record(right);
        }
        BOOST_TEST(read.wait(soon()));
        BOOST_TEST(seen == numbers);
        R::stream_wait(left, read);
    }

    void a_destroyed_stream_finishes_its_work() const {
        std::uint32_t const one = 1;
        std::uint32_t seen = 0;
        event<R> const after;
        {
            stream<R> const s{a_};
            stream_blocker<R> const blocker{s.ref()};
            R::copy(&seen, cpu_device, &one, cpu_device, word_bytes(), s);
            after.record(s);
        }
        BOOST_TEST(after.wait(soon()));
        BOOST_TEST(seen == 1U);
    }

    void memory_is_counted_at_the_call() const {
        constexpr std::size_t bytes = 1000;
        stream<R> const s{a_};
        auto const before = R::memory(a_);
        auto const other = R::memory(b_);
        stream_blocker<R> const blocker{s.ref()};
        void* const p = R::allocate(bytes, a_, s);
        BOOST_TEST(R::memory(a_).active == before.active + bytes);
        BOOST_TEST(R::memory(a_).reserved >= before.active + bytes);
        BOOST_TEST(R::memory(a_).peak >= before.active + bytes);
        BOOST_TEST(R::memory(b_).active == other.active);
        R::deallocate(p, s);
        BOOST_TEST(R::memory(a_).active == before.active);
        BOOST_TEST(R::memory(a_).peak >= before.active + bytes);
        BOOST_TEST((reinterpret_cast<std::uintptr_t>(p) % 256 == 0));
    }

    void memory_is_found_by_any_pointer_into_it() const {
        stream<R> const s{a_};
        std::uint32_t outside = 0;
        BOOST_TEST(R::locate(&outside) == cpu_device);
        BOOST_TEST(R::locate(nullptr) == cpu_device);
        void* p = nullptr;
        {
            device_buffer<R> const of_a{1000, a_, s};
            device_buffer<R> const of_b{1000, b_, s};
            p = of_a.data();
            auto const* const bytes = static_cast<std::byte const*>(of_b.data());
            BOOST_TEST(R::locate(of_a.data()) == a_);
            BOOST_TEST(R::locate(bytes) == b_);
            BOOST_TEST(R::locate(bytes + 1) == b_);
            BOOST_TEST(R::locate(bytes + 999) == b_);
        }
        BOOST_TEST(R::locate(p) == cpu_device);
    }

    void memory_is_not_given_to_others_before_its_time() const {
        constexpr std::size_t bytes = 5000;
        stream<R> const busy{a_};
        stream<R> const other{a_};
        device_buffer<R> first{bytes, a_, busy};
        void* const held = first.data();
        stream_blocker<R> blocker{busy.ref()};
        first = {};
        device_buffer<R> const second{bytes, a_, other};
        BOOST_TEST(second.data() != held);
        device_buffer<R> const third{bytes, a_, busy};  // the same stream: in order, so at once
        BOOST_TEST(third.data() == held);
        blocker.open();
    }

    void memory_is_reused() const {
        constexpr std::size_t bytes = std::size_t{1} << 20U;
        stream<R> const s{a_};
        auto const active = R::memory(a_).active;
        std::uint64_t reserved = 0;
        for (int cycle = 0; cycle < 50; ++cycle) {
            {
                device_buffer<R> const buffer{bytes, a_, s};
            }
            auto const now = R::memory(a_);
            BOOST_TEST(now.active == active);
            if (cycle == 0) reserved = now.reserved;
            BOOST_TEST(now.reserved <=
                       reserved);  // it may fall: what is outgrown goes once it is idle
        }
    }

    void a_device_wait_covers_that_device_alone() const {
        stream<R> const blocked{a_};
        stream<R> const free{b_};
        std::uint32_t const one = 1;
        std::uint32_t seen = 0;
        stream_blocker<R> blocker{blocked.ref()};
        R::copy(&seen, cpu_device, &one, cpu_device, word_bytes(), free);
        BOOST_TEST(R::wait_device(b_.index, soon()));
        BOOST_TEST(seen == 1U);
        BOOST_TEST(!R::wait_device(a_.index, at_once()));
        blocker.open();
        BOOST_TEST(R::wait_device(a_.index, soon()));
        BOOST_TEST(blocked.query());
    }

    void a_device_wait_leaves_communicators_out() const {
        stream<R> const communicators{a_};
        R::mark_communicator_stream(communicators);
        stream_blocker<R> const blocker{communicators.ref()};
        BOOST_TEST(R::wait_device(a_.index, soon()));
        BOOST_TEST(!communicators.query());
    }

    void the_current_device_belongs_to_the_thread() const {
        auto const before = R::current_device();
        R::set_current_device(b_.index);
        int elsewhere = -1;
        std::thread{[&] { elsewhere = R::current_device(); }}.join();
        BOOST_TEST(R::current_device() == b_.index);
        BOOST_TEST(elsewhere == 0);
        R::set_current_device(before);
    }

    void a_guard_restores_the_device() const {
        auto const before = R::current_device();
        R::set_current_device(a_.index);
        {
            device_guard<R> const there{b_};
            BOOST_TEST(R::current_device() == b_.index);
            {
                device_guard<R> const same{b_};
                device_guard<R> const nothing{cpu_device};
                BOOST_TEST(R::current_device() == b_.index);
                device_guard<R> const back{a_};
                BOOST_TEST(R::current_device() == a_.index);
            }
            BOOST_TEST(R::current_device() == b_.index);
            stream<R> const s{a_};  // a stream of another device than the current one
            BOOST_TEST(s.where() == a_);
        }
        BOOST_TEST(R::current_device() == a_.index);
        BOOST_CHECK_THROW(device_guard<R> const refused(device(R::kind, R::device_count())),
                          bad_argument);
        BOOST_CHECK_THROW(device_guard<R> const refused(device(R::kind, device::unresolved)),
                          bad_argument);
        BOOST_TEST(R::current_device() == a_.index);
        R::set_current_device(before);
    }

    void what_is_not_there_is_refused() const {
        stream<R> const s{a_};
        std::uint32_t word = 0;
        for (int const index : {R::device_count(), -1, -2, 1000}) {
            device const none{R::kind, index};
            BOOST_CHECK_THROW(R::set_current_device(index), bad_argument);
            BOOST_CHECK_THROW(static_cast<void>(R::create_stream(none)), bad_argument);
            BOOST_CHECK_THROW(static_cast<void>(R::allocate(1, none, s)), bad_argument);
            BOOST_CHECK_THROW(static_cast<void>(R::memory(none)), bad_argument);
            BOOST_CHECK_THROW(static_cast<void>(R::wait_device(index, soon())), bad_argument);
            BOOST_CHECK_THROW(R::copy(&word, none, &word, cpu_device, word_bytes(), s),
                              bad_argument);
            BOOST_CHECK_THROW(R::copy(&word, cpu_device, &word, none, word_bytes(), s),
                              bad_argument);
        }
        BOOST_CHECK_THROW(static_cast<void>(R::stream_ref::from_native_handle({})), bad_argument);
    }

    void a_stream_may_be_of_the_cpu() const {
        stream<R> const s{cpu_device};
        BOOST_TEST(s.where() == cpu_device);
        std::uint32_t const one = 1;
        std::uint32_t seen = 0;
        device_buffer<R> const between{word_bytes(), cpu_device, s};
        R::copy(between.data(), cpu_device, &one, cpu_device, word_bytes(), s);
        R::copy(&seen, cpu_device, between.data(), cpu_device, word_bytes(), s);
        BOOST_TEST(event<R>{s.ref()}.wait(soon()));
        BOOST_TEST(seen == 1U);
    }

    void a_buffer_goes_with_its_owner() const {
        stream<R> const s{a_};
        auto const before = R::memory(a_).active;
        device_buffer<R> one{96, a_, s};
        device_buffer<R> other{std::move(one)};
        BOOST_TEST(one.empty());
        BOOST_TEST(one.bytes() == 0U);
        BOOST_TEST(other.bytes() == 96U);
        auto const view = other.view(dtype::float32, {4, 6});
        BOOST_TEST(view.data() == other.data());
        BOOST_TEST(view.where() == a_);
        BOOST_CHECK_THROW(static_cast<void>(other.view(dtype::float32, {5, 5})), bad_argument);
        other = device_buffer<R>{10, a_, s};
        BOOST_TEST(R::memory(a_).active == before + 10);
        void* const given = other.release();
        BOOST_TEST(other.empty());
        BOOST_TEST(R::memory(a_).active == before + 10);
        R::deallocate(given, s);
        BOOST_TEST(R::memory(a_).active == before);
    }

    void owners_move_and_are_empty_after() const {
        stream<R> s{a_};
        auto const ref = s.ref();
        stream<R> t{std::move(s)};
        BOOST_TEST(s.empty());
        BOOST_CHECK_THROW(static_cast<void>(s.ref()), contract_violation);
        BOOST_TEST((t.ref() == ref));
        s = std::move(t);
        BOOST_TEST((s.ref() == ref));
        BOOST_TEST(t.empty());
        auto const adopted = stream<R>::from_native_handle(s.release().native_handle());
        BOOST_TEST((adopted.ref() == ref));
        BOOST_TEST(s.empty());

        event<R> e;
        auto const handle = e.ref();
        event<R> f{std::move(e)};
        BOOST_TEST(e.empty());
        BOOST_CHECK_THROW(static_cast<void>(e.ref()), contract_violation);
        e = std::move(f);
        auto const again = event<R>::from_native_handle(e.release().native_handle());
        BOOST_TEST((again.ref() == handle));
        BOOST_TEST(e.empty());
    }

    void a_sync_scope_proves_before_it_frees() const {
        using namespace std::chrono_literals;
        stream<R> const s{a_};
        auto const before = R::memory(a_).active;
        stream_blocker<R> blocker{s.ref()};
        {
            stream_sync_scope<R> scope{s.ref(), 60s};
            scope.keep(device_buffer<R>{64, a_, s});
            BOOST_CHECK_THROW(scope.wait(at_once()), timeout);
            BOOST_TEST(R::memory(a_).active == before + 64);
            blocker.open();
            scope.wait(soon());
            BOOST_TEST(R::memory(a_).active == before);
        }
    }

  private:
    /// A size that the compiler does not know: so that a sanitizer sees the copy.
    static std::size_t word_bytes() {
        static std::size_t volatile bytes = sizeof(std::uint32_t);
        return bytes;
    }
    static std::size_t bytes_of(std::vector<std::uint32_t> const& v) {
        return v.size() * word_bytes();
    }
    static std::vector<std::uint32_t> count_to(std::size_t n) {
        std::vector<std::uint32_t> numbers(n);
        for (std::size_t i = 0; i < n; ++i) numbers[i] = static_cast<std::uint32_t>(i + 1);
        return numbers;
    }
    device a_;
    device b_;
};

}  // namespace weightcast::test
