// SPDX-License-Identifier: Apache-2.0
#include <weightcast/runtime/host_handles.hpp>

#include <cstddef>
#include <type_traits>

#include <boost/test/unit_test.hpp>

#include "runtime/host_support.hpp"
#include "support/says.hpp"

namespace {

using namespace weightcast;
using namespace weightcast::test;

// A handle is a value that nothing but the runtime and a native handle makes.
static_assert(!std::is_default_constructible_v<host_stream_ref>);
static_assert(!std::is_constructible_v<host_stream_ref, int>);
static_assert(!std::is_constructible_v<host_stream_ref, std::nullptr_t>);
static_assert(!std::is_constructible_v<host_stream_ref, void*>);
static_assert(!std::is_default_constructible_v<host_event_ref>);
static_assert(!std::is_constructible_v<host_event_ref, int>);
static_assert(!std::is_constructible_v<host_event_ref, std::nullptr_t>);
static_assert(!std::is_constructible_v<host_event_ref, void*>);
static_assert(
    std::regular_invocable<decltype([](host_stream_ref a) { return a == a; }), host_stream_ref>);
static_assert(!std::is_convertible_v<host_stream_ref, host_event_ref>);

BOOST_AUTO_TEST_SUITE(host_handles_suite)

BOOST_AUTO_TEST_CASE(a_native_handle_leads_back) {
    stream<runtime> const s{host0};
    stream<runtime> const t{host0};
    auto const back = host_stream_ref::from_native_handle(s.native_handle());
    BOOST_TEST((back == s.ref()));
    BOOST_TEST((back != t.ref()));
    BOOST_TEST(back.native_handle() == s.native_handle());
    event<runtime> const e;
    event<runtime> const f;
    auto const again = host_event_ref::from_native_handle(e.native_handle());
    BOOST_TEST((again == e.ref()));
    BOOST_TEST((again != f.ref()));
    again == e.ref() ? runtime::record(again, back) : runtime::record(f, back);
    BOOST_TEST(e.wait(soon()));
}

BOOST_AUTO_TEST_CASE(a_null_handle_is_refused) {
    BOOST_CHECK_EXCEPTION(static_cast<void>(host_stream_ref::from_native_handle(nullptr)),
                          bad_argument, says({"null handle", "stream"}));
    BOOST_CHECK_EXCEPTION(static_cast<void>(host_event_ref::from_native_handle(nullptr)),
                          bad_argument, says({"null handle", "event"}));
}

BOOST_AUTO_TEST_CASE(a_handle_to_another_copy_of_the_state_is_refused) {
    // never freed: its stream's thread may be on its way out when the process ends
    static auto* const other = new detail::host_state;
    auto const use = other->create_stream(host0);
    auto const foreign = host_stream_ref::from_native_handle(use.stream);
    auto& event_there = other->create_event();
    auto const foreign_event = host_event_ref::from_native_handle(&event_there);
    stream<runtime> const s{host0};
    event<runtime> const e;
    auto const sentence = says({"another copy of host_runtime's state", "shared_host_state"});
    BOOST_CHECK_EXCEPTION(static_cast<void>(runtime::query(foreign)), contract_violation, sentence);
    BOOST_CHECK_EXCEPTION(runtime::enqueue(foreign, []() noexcept {}), contract_violation,
                          sentence);
    BOOST_CHECK_EXCEPTION(runtime::record(e, foreign), contract_violation, sentence);
    BOOST_CHECK_EXCEPTION(static_cast<void>(runtime::allocate(1, host0, foreign)),
                          contract_violation, sentence);
    BOOST_CHECK_EXCEPTION(runtime::stream_wait(s, foreign_event), contract_violation, sentence);
    BOOST_CHECK_EXCEPTION(static_cast<void>(runtime::query(foreign_event)), contract_violation,
                          sentence);
    BOOST_CHECK_EXCEPTION(runtime::record(foreign_event, s), contract_violation, sentence);
    other->destroy_event(event_there, 1);
    other->destroy_stream(use);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
