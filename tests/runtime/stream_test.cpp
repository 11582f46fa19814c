// SPDX-License-Identifier: Apache-2.0
#include <weightcast/runtime/stream.hpp>

#include <cstddef>
#include <type_traits>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "runtime/host_support.hpp"
#include "support/says.hpp"

namespace {

using namespace weightcast;
using namespace weightcast::test;
using stream_type = stream<runtime>;

static_assert(!std::is_copy_constructible_v<stream_type>);
static_assert(!std::is_copy_assignable_v<stream_type>);
static_assert(std::is_nothrow_move_constructible_v<stream_type>);
static_assert(std::is_nothrow_move_assignable_v<stream_type>);
static_assert(!std::is_default_constructible_v<stream_type>);
static_assert(!std::is_constructible_v<stream_type, int>);
static_assert(!std::is_constructible_v<stream_type, std::nullptr_t>);
static_assert(!std::is_convertible_v<device, stream_type>);
static_assert(std::is_convertible_v<stream_type const&, host_stream_ref>);
static_assert(!std::is_constructible_v<stream_type, host_stream_ref>);  // a reference does not own

BOOST_AUTO_TEST_SUITE(stream_suite)

BOOST_AUTO_TEST_CASE(an_owner_names_its_stream) {
    stream_type const s{host1};
    BOOST_TEST(!s.empty());
    BOOST_TEST(s.where() == host1);
    BOOST_TEST(s.query());
    BOOST_TEST((static_cast<host_stream_ref>(s) == s.ref()));
    BOOST_TEST(s.native_handle() == s.ref().native_handle());
}

BOOST_AUTO_TEST_CASE(an_owner_destroys_its_stream) {
    auto const ref = stream_type{host0}.ref();
    BOOST_CHECK_THROW(static_cast<void>(runtime::query(ref)), contract_violation);
}

BOOST_AUTO_TEST_CASE(assignment_destroys_what_was_owned) {
    stream_type s{host0};
    stream_type t{host1};
    auto const old = s.ref();
    auto const kept = t.ref();
    s = std::move(t);
    BOOST_CHECK_THROW(static_cast<void>(runtime::query(old)), contract_violation);
    BOOST_TEST((s.ref() == kept));
    auto& same = s;
    s = std::move(same);
    BOOST_TEST((s.ref() == kept));
    BOOST_TEST(s.query());
}

BOOST_AUTO_TEST_CASE(an_empty_owner_says_so) {
    stream_type s{host0};
    auto const moved = std::move(s);
    BOOST_TEST(s.empty());
    auto const empty = says("moved from or released");
    BOOST_CHECK_EXCEPTION(static_cast<void>(s.ref()), contract_violation, empty);
    BOOST_CHECK_EXCEPTION(static_cast<void>(s.native_handle()), contract_violation, empty);
    BOOST_CHECK_EXCEPTION(static_cast<void>(s.where()), contract_violation, empty);
    BOOST_CHECK_EXCEPTION(static_cast<void>(s.query()), contract_violation, empty);
    BOOST_CHECK_EXCEPTION(static_cast<void>(s.release()), contract_violation, empty);
    BOOST_CHECK_EXCEPTION(runtime::enqueue(s, []() noexcept {}), contract_violation, empty);
    s = stream_type{host1};  // it may own again
    BOOST_TEST(s.where() == host1);
}

BOOST_AUTO_TEST_CASE(a_released_stream_lives_on) {
    stream_type s{host0};
    auto const ref = s.release();
    BOOST_TEST(s.empty());
    BOOST_TEST(runtime::wait(ref, soon()));
    auto const again = stream_type::from_native_handle(ref.native_handle());
    BOOST_TEST((again.ref() == ref));
    BOOST_CHECK_THROW(static_cast<void>(stream_type::from_native_handle(nullptr)), bad_argument);
}

BOOST_AUTO_TEST_CASE(owners_live_in_containers) {
    std::vector<stream_type> streams;
    for (int i = 0; i < 20; ++i) streams.emplace_back(device{device_kind::host, i % 4});
    streams.erase(streams.begin(), streams.begin() + 10);
    for (auto const& s : streams) BOOST_TEST(runtime::wait(s, soon()));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
