// SPDX-License-Identifier: Apache-2.0
#include <weightcast/kernels/strided_region.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include <boost/test/unit_test.hpp>

#include "support/says.hpp"

namespace {

using namespace weightcast;
using test::says;

// Arguments travel by value to streams and devices.
static_assert(std::is_trivially_copyable_v<kernels::pack_arguments>);
static_assert(std::is_trivially_copyable_v<kernels::unpack_arguments>);
static_assert(sizeof(kernels::pack_arguments) <= 320);

struct expected_region {
    std::uint64_t run_bytes;
    extents extent;
    extents stride;
};

void check_region(tensor_layout const& layout, expected_region const& expected) {
    auto const region = region_of(layout);
    BOOST_TEST(region.run_bytes == expected.run_bytes);
    BOOST_TEST_REQUIRE(static_cast<std::size_t>(region.rank) == expected.extent.size());
    for (std::size_t i = 0; i < expected.extent.size(); ++i) {
        BOOST_TEST(region.extent[i] == static_cast<std::uint64_t>(expected.extent[i]));
        BOOST_TEST(region.stride[i] == static_cast<std::uint64_t>(expected.stride[i]));
    }
}

BOOST_AUTO_TEST_SUITE(strided_region_suite)

BOOST_AUTO_TEST_CASE(a_dense_tensor_is_one_run) {
    check_region({dtype::float32, {3, 4, 5}, {20, 5, 1}}, {240, {}, {}});
    check_region({dtype::float64, {}, {}}, {8, {}, {}});
    check_region({dtype::int8, {1, 1}, {5, 9}}, {1, {}, {}});
}

BOOST_AUTO_TEST_CASE(dense_inner_dimensions_become_the_run) {
    check_region({dtype::float32, {6, 4, 5}, {40, 5, 1}}, {80, {6}, {160}});
    check_region({dtype::float16, {5, 3}, {8, 1}}, {6, {5}, {16}});
    check_region({dtype::int64, {2, 7}, {1, 9}}, {8, {2, 7}, {8, 72}});
}

BOOST_AUTO_TEST_CASE(dimensions_that_step_alike_become_one) {
    check_region({dtype::float32, {4, 3, 5}, {30, 10, 2}}, {4, {60}, {8}});
    check_region({dtype::float32, {4, 3, 5}, {31, 10, 2}}, {4, {4, 15}, {124, 8}});
    check_region({dtype::uint8, {2, 3, 4}, {0, 0, 0}}, {1, {24}, {0}});
}

BOOST_AUTO_TEST_CASE(dimensions_of_one_vanish_whatever_their_stride) {
    check_region({dtype::uint8, {3, 1, 2, 1}, {4, 999, 2, 77}}, {1, {6}, {2}});
}

BOOST_AUTO_TEST_CASE(counts_and_strides_past_32_bits_are_kept) {
    constexpr std::int64_t giant = 5LL << 32U;
    check_region({dtype::float32, {giant, 2}, {8, 1}}, {8, {giant}, {32}});
    check_region({dtype::float32, {2, 3}, {giant, 2}}, {4, {2, 3}, {4 * giant, 8}});
}

BOOST_AUTO_TEST_CASE(separate_elements_are_told_from_shared_ones) {
    auto const separate = [](extents const& shape, extents const& strides) {
        return has_separate_elements({dtype::float32, shape, strides});
    };
    BOOST_TEST(separate({}, {}));
    BOOST_TEST(separate({3, 4}, {4, 1}));
    BOOST_TEST(separate({4, 3}, {1, 4}));
    BOOST_TEST(separate({4, 3}, {1, 5}));
    BOOST_TEST(separate({1, 3}, {0, 1}));
    BOOST_TEST(separate({0, 3}, {0, 0}));
    BOOST_TEST(separate({2, 3, 4}, {4, 8, 1}));
    BOOST_TEST(!separate({4, 3}, {0, 1}));  // expanded
    BOOST_TEST(!separate({4, 3}, {2, 1}));  // sliding window
    BOOST_TEST(!separate({4, 3}, {1, 3}));  // columns that touch
    BOOST_TEST(separate({2, 2}, {2, 3}));
    BOOST_TEST(!separate({2, 3}, {3, 2}));  // interleaved: separate, and counted as unsure
}

BOOST_AUTO_TEST_CASE(ranges_outside_the_tensor_are_refused) {
    std::array<float, 12> memory{};
    std::array<std::byte, 48> dense{};
    const_tensor_view<> const view{memory.data(), dtype::float32, {3, 4}};
    BOOST_CHECK_EXCEPTION(pack_arguments_of(view, 0, 49, dense.data()), bad_argument,
                          says({"[0, 49)", "48 bytes"}));
    BOOST_CHECK_THROW(pack_arguments_of(view, 5, 4, dense.data()), bad_argument);
    BOOST_CHECK_THROW(pack_arguments_of(view, 49, 49, dense.data()), bad_argument);
    BOOST_CHECK_THROW(
        pack_arguments_of(view, 0, std::numeric_limits<std::uint64_t>::max(), dense.data()),
        bad_argument);
    BOOST_CHECK_EXCEPTION(pack_arguments_of(view, 0, 1, nullptr), bad_argument, says("no memory"));
    BOOST_CHECK_NO_THROW(pack_arguments_of(view, 48, 48, nullptr));
}

BOOST_AUTO_TEST_CASE(destinations_whose_elements_overlap_are_refused) {
    std::array<float, 12> memory{};
    std::array<std::byte, 48> dense{};
    tensor_view<> const view{memory.data(), dtype::float32, {3, 4}, {0, 1}};
    BOOST_CHECK_EXCEPTION(unpack_arguments_of(dense.data(), view, 0, 48), bad_argument,
                          says({"[3, 4]", "[0, 1]", "overlap"}));
    BOOST_CHECK_NO_THROW(pack_arguments_of(const_tensor_view<>{view}, 0, 48, dense.data()));
}

BOOST_AUTO_TEST_CASE(an_empty_transfer_touches_nothing) {
    const_tensor_view<> const empty{nullptr, dtype::float32, {3, 0, 2}};
    auto const arguments = pack_arguments_of(empty, 0, 0, nullptr);
    BOOST_CHECK_NO_THROW(kernels::pack_body(arguments, 0, 1));
    BOOST_TEST(arguments.first == arguments.last);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
