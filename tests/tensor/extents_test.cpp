// SPDX-License-Identifier: Apache-2.0
#include <weightcast/tensor/extents.hpp>

#include <cstdint>
#include <limits>
#include <list>
#include <sstream>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "support/says.hpp"

namespace {

using namespace weightcast;
using test::says;

constexpr auto largest = std::numeric_limits<std::int64_t>::max();

static_assert(std::is_trivially_copyable_v<extents>);  // views are copied on the data path

BOOST_AUTO_TEST_SUITE(extents_suite)

BOOST_AUTO_TEST_CASE(they_hold_what_they_were_given) {
    extents const shape{2, 3, 4};
    BOOST_TEST(shape.size() == 3U);
    BOOST_TEST(shape[0] == 2);
    BOOST_TEST(shape[2] == 4);
    BOOST_TEST(extents(std::vector<int>{2, 3, 4}) == shape);
    BOOST_TEST(extents(std::list<std::uint32_t>{2, 3, 4}) == shape);
    extents pushed;
    for (auto const e : shape) pushed.push_back(e);
    BOOST_TEST(pushed == shape);
    pushed[1] = 5;
    BOOST_TEST(pushed == (extents{2, 5, 4}));
}

BOOST_AUTO_TEST_CASE(equal_means_same_rank_and_values) {
    BOOST_TEST(extents{} == extents{});
    BOOST_CHECK(!(extents{} == extents{1}));
    BOOST_CHECK(!(extents{1} == extents{1, 1}));
    BOOST_CHECK((extents{1, 2} != extents{2, 1}));
}

BOOST_AUTO_TEST_CASE(eight_dimensions_fit_and_nine_do_not) {
    extents eight{1, 2, 3, 4, 5, 6, 7, 8};
    BOOST_TEST(eight.size() == 8U);
    BOOST_CHECK_EXCEPTION(eight.push_back(9), bad_input, says("more than 8 dimensions"));
    BOOST_TEST(eight.size() == 8U);
    BOOST_CHECK_THROW((extents{1, 2, 3, 4, 5, 6, 7, 8, 9}), bad_input);
    BOOST_CHECK_THROW(extents(std::vector<int>(100'000, 1)), bad_input);
}

BOOST_AUTO_TEST_CASE(a_scalar_has_one_element) {
    BOOST_TEST(element_count({}) == 1U);
    BOOST_TEST(contiguous_strides({}) == extents{});
    BOOST_TEST(to_string(extents{}) == "[]");
}

BOOST_AUTO_TEST_CASE(a_zero_extent_empties_the_tensor) {
    BOOST_TEST(element_count({0}) == 0U);
    BOOST_TEST(element_count({3, 0, 2}) == 0U);
    BOOST_TEST(element_count({0, largest}) == 0U);
}

BOOST_AUTO_TEST_CASE(counts_go_past_2_to_the_31) {
    BOOST_TEST(element_count({65'536, 65'536}) == 4'294'967'296U);
    BOOST_TEST(element_count({largest}) == static_cast<std::uint64_t>(largest));
    static_assert(element_count(extents{1 << 20, 1 << 20, 1 << 20}) == 1ULL << 60U);
}

BOOST_AUTO_TEST_CASE(counts_that_fit_no_63_bits_are_refused) {
    BOOST_CHECK_EXCEPTION(element_count({largest, 2}), bad_input, says("63 bits"));
    BOOST_CHECK_EXCEPTION(element_count({largest, 4}), bad_input, says("64 bits"));
    BOOST_CHECK_THROW(element_count({1LL << 32U, 1LL << 31U}), bad_input);
    BOOST_CHECK_THROW(element_count({1LL << 32U, 1LL << 32U}), bad_input);
    // an empty shape is held to the same bound: its strides must fit too
    BOOST_CHECK_THROW(element_count({0, largest, 2}), bad_input);
    BOOST_CHECK_THROW(element_count({largest, 2, 0}), bad_input);
}

BOOST_AUTO_TEST_CASE(negative_extents_are_refused_wherever_they_stand) {
    BOOST_CHECK_EXCEPTION(element_count({-1}), bad_input, says("negative extent"));
    BOOST_CHECK_THROW(element_count({0, -1}), bad_input);
    BOOST_CHECK_THROW(element_count({-1, 0}), bad_input);
    BOOST_CHECK_THROW(element_count({std::numeric_limits<std::int64_t>::min()}), bad_input);
    // a size past 2^63 - 1 becomes a negative one
    BOOST_CHECK_THROW(element_count(extents{std::vector<std::uint64_t>{1ULL << 63U}}), bad_input);
}

BOOST_AUTO_TEST_CASE(dense_strides_are_row_major) {
    BOOST_TEST(contiguous_strides({2, 3, 4}) == (extents{12, 4, 1}));
    BOOST_TEST(contiguous_strides({7}) == extents{1});
    BOOST_TEST(contiguous_strides({1, 1}) == (extents{1, 1}));
    BOOST_TEST(contiguous_strides({3, 0, 2}) == (extents{2, 2, 1}));  // as torch has it
    BOOST_TEST(contiguous_strides({2, largest / 2}) == (extents{largest / 2, 1}));
}

BOOST_AUTO_TEST_CASE(strides_that_would_overflow_are_refused) {
    BOOST_CHECK_THROW(contiguous_strides({4, largest}), bad_input);
    BOOST_CHECK_THROW(contiguous_strides({0, largest, largest}), bad_input);
    BOOST_CHECK_THROW(contiguous_strides({2, -3}), bad_input);
}

BOOST_AUTO_TEST_CASE(they_print_as_torch_does) {
    std::ostringstream out;
    out << extents{2, 3};
    BOOST_TEST(out.str() == "[2, 3]");
    BOOST_TEST(to_string(extents{-1}) == "[-1]");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
