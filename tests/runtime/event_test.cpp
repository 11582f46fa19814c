// SPDX-License-Identifier: Apache-2.0
#include <weightcast/runtime/event.hpp>

#include <cstddef>
#include <type_traits>
#include <utility>

#include <boost/test/unit_test.hpp>

#include "runtime/host_support.hpp"
#include "support/says.hpp"

namespace {

using namespace weightcast;
using namespace weightcast::test;
using event_type = event<runtime>;

static_assert(!std::is_copy_constructible_v<event_type>);
static_assert(!std::is_copy_assignable_v<event_type>);
static_assert(std::is_nothrow_move_constructible_v<event_type>);
static_assert(std::is_nothrow_move_assignable_v<event_type>);
static_assert(!std::is_constructible_v<event_type, std::nullptr_t>);
static_assert(!std::is_constructible_v<event_type, int>);
static_assert(!std::is_convertible_v<host_stream_ref, event_type>);
static_assert(std::is_convertible_v<event_type const&, host_event_ref>);
static_assert(!std::is_constructible_v<event_type, host_event_ref>);  // a reference does not own

BOOST_AUTO_TEST_SUITE(event_suite)

BOOST_AUTO_TEST_CASE(an_event_is_made_with_or_without_a_record) {
    stream<runtime> const s{host0};
    stream_blocker<runtime> blocker{s.ref()};
    event_type const never;
    event_type const recorded{s.ref()};
    BOOST_TEST(never.query());
    BOOST_TEST(!recorded.query());
    blocker.open();
    BOOST_TEST(recorded.wait(soon()));
    BOOST_TEST(recorded.query());
}

BOOST_AUTO_TEST_CASE(an_event_may_be_recorded_again_and_again) {
    stream<runtime> const s{host0};
    event_type const e;
    for (int i = 0; i < 300; ++i) {
        e.record(s);
        if (i % 7 == 0) BOOST_TEST(e.wait(soon()));
    }
    BOOST_TEST(e.wait(soon()));
    {
        stream_blocker<runtime> const blocker{s.ref()};
        e.record(s);
        BOOST_TEST(!e.query());  // an earlier record that was reached is forgotten
    }
    BOOST_TEST(e.wait(soon()));
}

BOOST_AUTO_TEST_CASE(an_event_in_the_place_of_another_is_not_recorded) {
    stream<runtime> const s{host0};
    stream_blocker<runtime> const blocker{s.ref()};
    { event_type const e{s.ref()}; }
    event_type const fresh;
    BOOST_TEST(fresh.query());
}

BOOST_AUTO_TEST_CASE(an_event_outlives_its_stream) {
    event_type const e;
    for (int i = 0; i < 20; ++i) {
        stream<runtime> const s{host0};
        runtime::enqueue(s, []() noexcept { std::this_thread::yield(); });
        e.record(s);
    }
    BOOST_TEST(e.wait(soon()));
    stream<runtime> const waiting{host1};
    runtime::stream_wait(waiting, e);
    BOOST_TEST(runtime::wait(waiting, soon()));
}

BOOST_AUTO_TEST_CASE(an_empty_owner_says_so) {
    stream<runtime> const s{host0};
    event_type e{s.ref()};
    auto const moved = std::move(e);
    BOOST_TEST(e.empty());
    BOOST_TEST(moved.wait(soon()));
    auto const empty = says("moved from or released");
    BOOST_CHECK_EXCEPTION(static_cast<void>(e.ref()), contract_violation, empty);
    BOOST_CHECK_EXCEPTION(static_cast<void>(e.native_handle()), contract_violation, empty);
    BOOST_CHECK_EXCEPTION(e.record(s), contract_violation, empty);
    BOOST_CHECK_EXCEPTION(static_cast<void>(e.query()), contract_violation, empty);
    BOOST_CHECK_EXCEPTION(static_cast<void>(e.wait(soon())), contract_violation, empty);
    BOOST_CHECK_EXCEPTION(static_cast<void>(e.release()), contract_violation, empty);
    e = event_type{s.ref()};
    BOOST_TEST(e.wait(soon()));
}

BOOST_AUTO_TEST_CASE(assignment_destroys_what_was_owned) {
    event_type e;
    event_type f;
    auto const old = e.ref();
    auto const kept = f.ref();
    e = std::move(f);
    BOOST_CHECK_THROW(static_cast<void>(runtime::query(old)), contract_violation);
    BOOST_TEST((e.ref() == kept));
    auto& same = e;
    e = std::move(same);
    BOOST_TEST((e.ref() == kept));
}

BOOST_AUTO_TEST_CASE(a_released_event_lives_on) {
    stream<runtime> const s{host0};
    event_type e{s.ref()};
    auto const ref = e.release();
    BOOST_TEST(e.empty());
    BOOST_TEST(runtime::wait(ref, soon()));
    auto const again = event_type::from_native_handle(ref.native_handle());
    BOOST_TEST((again.ref() == ref));
    BOOST_CHECK_THROW(static_cast<void>(event_type::from_native_handle(nullptr)), bad_argument);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
