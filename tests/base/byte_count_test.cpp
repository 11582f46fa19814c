// SPDX-License-Identifier: Apache-2.0
#include <weightcast/base/byte_count.hpp>

#include <concepts>
#include <limits>
#include <type_traits>

#include <boost/test/unit_test.hpp>

#include "support/says.hpp"

namespace {

using namespace weightcast;
using test::says;

constexpr auto largest = std::numeric_limits<std::uint64_t>::max();

// A size is no plain number, and no number of elements turns into one by accident.
static_assert(!std::convertible_to<std::uint64_t, byte_count>);
static_assert(!std::convertible_to<byte_count, std::uint64_t>);
static_assert(std::is_trivially_copyable_v<byte_count>);

BOOST_AUTO_TEST_SUITE(byte_count_suite)

BOOST_AUTO_TEST_CASE(literals_are_powers_of_two) {
    static_assert((1_KiB).value == 1024);
    static_assert((64_MiB).value == 67'108'864);
    static_assert((4_GiB).value == 4'294'967'296);
    BOOST_CHECK(byte_count{}.value == 0);
}

BOOST_AUTO_TEST_CASE(sizes_compare) {
    BOOST_CHECK(1_KiB < 1_MiB);
    BOOST_CHECK(1024_KiB == 1_MiB);
    BOOST_CHECK((byte_count{1} <=> byte_count{2}) == std::strong_ordering::less);
}

BOOST_AUTO_TEST_CASE(products_and_sums_never_wrap) {
    BOOST_TEST(checked_multiply(0, largest) == 0U);
    BOOST_TEST(checked_multiply(largest, 0) == 0U);
    BOOST_TEST(checked_multiply(largest, 1) == largest);
    BOOST_TEST(checked_multiply(1ULL << 32U, (1ULL << 32U) - 1) == largest - (1ULL << 32U) + 1);
    BOOST_CHECK_EXCEPTION(checked_multiply(1ULL << 32U, 1ULL << 32U), bad_input, says("64 bits"));
    BOOST_CHECK_THROW(checked_multiply(largest, 2), bad_input);
    BOOST_CHECK_THROW(checked_multiply(2, largest), bad_input);
    BOOST_TEST(checked_add(largest, 0) == largest);
    BOOST_TEST(checked_add(largest - 1, 1) == largest);
    BOOST_CHECK_EXCEPTION(checked_add(largest, 1), bad_input, says("64 bits"));
    BOOST_CHECK_THROW(checked_add(1, largest), bad_input);
}

BOOST_AUTO_TEST_CASE(rounding_up_keeps_multiples_and_refuses_what_does_not_fit) {
    for (std::uint64_t const alignment : {1U, 2U, 64U, 4096U}) {
        BOOST_TEST(align_up(0, alignment) == 0U);
        BOOST_TEST(align_up(alignment, alignment) == alignment);
        BOOST_TEST(align_up(alignment + 1, alignment) == (alignment == 1 ? 2 : 2 * alignment));
    }
    BOOST_TEST(align_up(63, 64) == 64U);
    BOOST_TEST(align_up(largest - 63, 64) == largest - 63);
    BOOST_CHECK_THROW(align_up(largest - 62, 64), bad_input);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
