// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <support/says.hpp>
#include <weightcast/model/tensor_region.hpp>

namespace weightcast::test {
namespace {

/// Row-major numbers of a box's elements in a tensor of that shape, in the box's order.
std::vector<std::uint64_t> numbers(tensor_box const& box, extents const& shape) {
    std::vector<std::uint64_t> all{0};
    for (std::size_t d = 0; d < shape.size(); ++d) {
        std::vector<std::uint64_t> next;
        for (auto const n : all) {
            for (auto i = box.offset[d]; i < box.offset[d] + box.sizes[d]; ++i) {
                next.push_back(n * static_cast<std::uint64_t>(shape[d]) +
                               static_cast<std::uint64_t>(i));
            }
        }
        all = next;
    }
    return all;
}

BOOST_AUTO_TEST_SUITE(tensor_regions)

BOOST_AUTO_TEST_CASE(ranges_of_elements_are_boxes_in_row_major_order) {
    for (extents const& shape : {extents{}, extents{5}, extents{3, 4}, extents{2, 3, 4},
                                 extents{1, 3, 1}, extents{2, 1, 2, 3}, extents{3, 0, 2}}) {
        auto const count = element_count(shape);
        for (std::uint64_t first = 0; first <= count; ++first) {
            for (auto last = first; last <= count; ++last) {
                std::vector<std::uint64_t> expected;
                for (auto n = first; n < last; ++n) expected.push_back(n);
                std::vector<std::uint64_t> found;
                auto const boxes = boxes_of(shape, first, last);
                for (auto const& box : boxes) {
                    BOOST_TEST(element_count(box.sizes) > 0U);
                    for (auto const n : numbers(box, shape)) found.push_back(n);
                }
                BOOST_TEST(found == expected, boost::test_tools::per_element());
                BOOST_TEST(boxes.size() <= std::max<std::size_t>(1, 2 * shape.size()));
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(a_whole_tensor_and_whole_rows_are_one_box) {
    BOOST_TEST((boxes_of({4, 5}, 0, 20) == std::vector<tensor_box>{{{0, 0}, {4, 5}}}));
    BOOST_TEST((boxes_of({4, 5}, 5, 15) == std::vector<tensor_box>{{{1, 0}, {2, 5}}}));
    BOOST_TEST((boxes_of({4, 5}, 7, 9) == std::vector<tensor_box>{{{1, 2}, {1, 2}}}));
    BOOST_TEST(boxes_of({4, 5}, 20, 20).empty());
}

BOOST_AUTO_TEST_CASE(a_range_outside_the_tensor_is_refused) {
    BOOST_CHECK_EXCEPTION(boxes_of({4, 5}, 3, 21), bad_argument,
                          (says{"[3, 21)", "[4, 5]", "20 elements"}));
    BOOST_CHECK_EXCEPTION(boxes_of({4, 5}, 3, 2), bad_argument, says{"[3, 2)"});
}

BOOST_AUTO_TEST_CASE(an_intersection_is_the_region_of_the_common_elements) {
    tensor_region const region{{2, 10}, {4, 6}, 7, 100, {1, 50}};
    auto const part = intersection(region, {{3, 0}, {9, 12}});
    BOOST_REQUIRE(part.has_value());
    BOOST_TEST((*part == tensor_region{{3, 10}, {3, 2}, 7, 101, {1, 50}}));
    auto const inner = intersection(region, {{0, 13}, {3, 100}});
    BOOST_REQUIRE(inner.has_value());
    BOOST_TEST((*inner == tensor_region{{2, 13}, {1, 3}, 7, 250, {1, 50}}));
    BOOST_TEST((intersection(region, {{0, 0}, {50, 50}}) == region));
}

BOOST_AUTO_TEST_CASE(boxes_that_only_touch_have_no_intersection) {
    tensor_region const region{{2, 10}, {4, 6}, 7, 100, {1, 50}};
    BOOST_TEST(!intersection(region, {{6, 0}, {9, 99}}).has_value());
    BOOST_TEST(!intersection(region, {{0, 0}, {2, 99}}).has_value());
    BOOST_TEST(!intersection(region, {{3, 12}, {1, 0}}).has_value());
}

BOOST_AUTO_TEST_CASE(a_scalars_region_is_one_element) {
    tensor_region const scalar{{}, {}, 0, 3, {}};
    BOOST_TEST(element_count(scalar) == 1U);
    BOOST_TEST((intersection(scalar, {}) == scalar));
    BOOST_TEST(to_string(tensor_box{}) == "[]");
    BOOST_TEST(to_string(tensor_box{{1, 0}, {2, 3}}) == "[1:3, 0:3]");
    BOOST_TEST((index_range{2, 5}.size()) == 3);
    BOOST_TEST(resolution{}.regions.empty());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weightcast::test
