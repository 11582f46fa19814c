// SPDX-License-Identifier: Apache-2.0
#include <weightcast/runtime/device_buffer.hpp>

#include <cstdint>
#include <type_traits>
#include <utility>

#include <boost/test/unit_test.hpp>

#include <weightcast/tensor/concepts.hpp>
#include "runtime/host_support.hpp"
#include "support/says.hpp"

namespace {

using namespace weightcast;
using namespace weightcast::test;
using buffer = device_buffer<runtime>;

static_assert(!std::is_copy_constructible_v<buffer>);
static_assert(!std::is_copy_assignable_v<buffer>);
static_assert(std::is_nothrow_move_constructible_v<buffer>);
static_assert(std::is_nothrow_move_assignable_v<buffer>);
static_assert(std::is_nothrow_default_constructible_v<buffer>);
static_assert(std::same_as<buffer::view_type, tensor_view<host_space>>);
static_assert(WritableDeviceTensor<buffer::view_type>);

BOOST_AUTO_TEST_SUITE(device_buffer_suite)

BOOST_AUTO_TEST_CASE(an_empty_buffer_has_nothing) {
    buffer const empty;
    BOOST_TEST(empty.empty());
    BOOST_TEST(empty.data() == nullptr);
    BOOST_TEST(empty.bytes() == 0U);
    BOOST_TEST(empty.view(dtype::float32, {0, 3}).bytes() == 0U);
    BOOST_CHECK_THROW(static_cast<void>(empty.view(dtype::uint8, {1})), bad_argument);
    stream<runtime> const s{host0};
    buffer const of_no_bytes{0, host0, s};
    BOOST_TEST(of_no_bytes.empty());
    BOOST_TEST(of_no_bytes.where() == host0);
}

BOOST_AUTO_TEST_CASE(a_view_is_as_large_as_the_buffer_allows) {
    stream<runtime> const s{host1};
    buffer const b{24, host1, s};
    BOOST_TEST(b.view(dtype::float32, {2, 3}).bytes() == 24U);
    BOOST_TEST(b.view(dtype::float64, {3}).where() == host1);
    BOOST_TEST(b.view(dtype::uint8, {}).bytes() == 1U);
    BOOST_CHECK_EXCEPTION(static_cast<void>(b.view(dtype::float32, {7})), bad_argument,
                          says({"[7]", "float32", "needs 28 bytes", "has 24"}));
    BOOST_CHECK_THROW(static_cast<void>(b.view(dtype::float64, {INT64_MAX / 2, 4})), bad_input);
    BOOST_CHECK_THROW(static_cast<void>(b.view(dtype::uint8, {-1})), bad_input);
}

BOOST_AUTO_TEST_CASE(a_buffer_comes_back_on_its_stream) {
    stream<runtime> const s{host0};
    stream<runtime> const t{host0};
    stream_blocker<runtime> blocker{s.ref()};
    void* held = nullptr;
    {
        buffer const b{10'000, host0, s};
        held = b.data();
    }
    buffer const other{10'000, host0, t};
    BOOST_TEST(other.data() != held);
    buffer const same{10'000, host0, s};
    BOOST_TEST(same.data() == held);
    blocker.open();
}

BOOST_AUTO_TEST_CASE(a_buffer_may_be_given_back_on_its_last_users_stream) {
    stream<runtime> const s{host0};
    stream<runtime> const user{host0};
    stream_blocker<runtime> blocker{user.ref()};
    void* held = nullptr;
    {
        buffer b{20'000, host0, s};
        held = b.data();
        b.give_back_on(user);
    }
    buffer const of_first{20'000, host0, s};
    BOOST_TEST(of_first.data() != held);  // the user has not come so far
    buffer const of_user{20'000, host0, user};
    BOOST_TEST(of_user.data() == held);
    blocker.open();
}

BOOST_AUTO_TEST_CASE(moving_moves_the_memory) {
    stream<runtime> const s{host0};
    auto const before = runtime::memory(host0).active;
    buffer b{100, host0, s};
    auto* const held = b.data();
    buffer c{std::move(b)};
    BOOST_TEST(b.empty());
    BOOST_TEST(c.data() == held);
    BOOST_TEST(c.where() == host0);
    auto& same = c;
    c = std::move(same);
    BOOST_TEST(c.data() == held);
    c = buffer{};
    BOOST_TEST(c.empty());
    BOOST_TEST(runtime::memory(host0).active == before);
    b = buffer{50, host1, s};
    BOOST_TEST(b.where() == host1);
    auto* const given = b.release();
    BOOST_TEST(b.empty());
    runtime::deallocate(given, s);
    BOOST_TEST(b.release() == nullptr);
}

BOOST_AUTO_TEST_CASE(a_refused_allocation_leaves_nothing_behind) {
    stream<runtime> const s{host0};
    auto const before = runtime::memory(host0).active;
    BOOST_CHECK_THROW(static_cast<void>(buffer{SIZE_MAX, host0, s}), out_of_memory);
    BOOST_CHECK_THROW(static_cast<void>(buffer(8, {device_kind::cuda, 0}, s)), bad_argument);
    BOOST_TEST(runtime::memory(host0).active == before);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
