// SPDX-License-Identifier: Apache-2.0
#include <weightcast/tensor/tensor_view.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <limits>
#include <type_traits>

#include <boost/test/unit_test.hpp>

#include <weightcast/tensor/concepts.hpp>
#include "laws/tensor_laws.hpp"
#include "support/says.hpp"

namespace {

using namespace weightcast;
using test::says;

constexpr auto largest = std::numeric_limits<std::int64_t>::max();

// Constness is kept: a view that may only be read never becomes one that may be written.
static_assert(std::convertible_to<tensor_view<>, const_tensor_view<>>);
static_assert(!std::constructible_from<tensor_view<>, const_tensor_view<>>);
static_assert(!std::constructible_from<tensor_view<>, void const*, dtype, extents>);
// Spaces do not turn into each other.
static_assert(!std::constructible_from<const_tensor_view<host_space>, tensor_view<cuda_space>>);
static_assert(std::is_trivially_copyable_v<tensor_view<>>);
static_assert(std::is_nothrow_copy_constructible_v<const_tensor_view<>>);

// Memory that is named and never touched: these tests need its address only.
std::byte anchor{};
void* const somewhere = &anchor;

BOOST_AUTO_TEST_SUITE(tensor_view_suite)

BOOST_AUTO_TEST_CASE(a_dense_view_has_row_major_strides) {
    tensor_view<> const view{somewhere, dtype::float32, {2, 3, 4}};
    BOOST_TEST(view.data() == somewhere);
    BOOST_TEST(view.type() == dtype::float32);
    BOOST_TEST(view.shape() == (extents{2, 3, 4}));
    BOOST_TEST(view.strides() == (extents{12, 4, 1}));
    BOOST_TEST(view.where() == cpu_device);
    BOOST_TEST(view.bytes() == 96U);
    BOOST_TEST(view.contiguous());
    test::check_writable_tensor_laws(view);
}

BOOST_AUTO_TEST_CASE(a_default_view_is_empty) {
    const_tensor_view<> const view;
    BOOST_TEST(view.data() == nullptr);
    BOOST_TEST(view.bytes() == 0U);
    BOOST_TEST(view.contiguous());
    test::check_tensor_laws(view);
}

BOOST_AUTO_TEST_CASE(a_scalar_has_one_element_and_no_dimension) {
    tensor_view<> const view{somewhere, dtype::int64, {}};
    BOOST_TEST(view.shape().empty());
    BOOST_TEST(view.bytes() == 8U);
    BOOST_TEST(view.contiguous());
    test::check_tensor_laws(view);
}

BOOST_AUTO_TEST_CASE(empty_tensors_need_no_memory) {
    for (auto const& shape : {extents{0}, extents{0, 4}, extents{3, 0, 2}}) {
        tensor_view<> const view{nullptr, dtype::float64, shape};
        BOOST_TEST(view.bytes() == 0U);
        BOOST_TEST(view.contiguous());
        test::check_tensor_laws(view);
    }
    // whatever its strides: nothing lies anywhere
    tensor_view<> const odd{nullptr, dtype::float64, {3, 0, 2}, {1, 99, 7}};
    BOOST_TEST(odd.contiguous());
}

BOOST_AUTO_TEST_CASE(tensors_with_elements_need_memory) {
    BOOST_CHECK_EXCEPTION((tensor_view<>{nullptr, dtype::int8, {2, 3}}), bad_argument,
                          says({"[2, 3]", "no memory"}));
    BOOST_CHECK_THROW((const_tensor_view<>{nullptr, dtype::int8, {}}), bad_argument);
}

BOOST_AUTO_TEST_CASE(more_than_2_to_the_31_elements_and_4_gib_are_counted) {
    tensor_view<> const many{somewhere, dtype::int8, {3, 1LL << 30U}};
    BOOST_TEST(many.layout().elements() == 3'221'225'472U);
    BOOST_TEST(many.bytes() == 3'221'225'472U);
    tensor_view<> const wide{somewhere, dtype::float64, {3, 1LL << 30U}};
    BOOST_TEST(wide.bytes() == 25'769'803'776U);
    BOOST_TEST(wide.strides() == (extents{1LL << 30U, 1}));
    BOOST_TEST(wide.contiguous());
    // few elements, the last of them past 4 GiB
    tensor_view<> const sparse{somewhere, dtype::uint8, {2}, {5LL << 30U}};
    BOOST_TEST(sparse.bytes() == 2U);
    BOOST_TEST(!sparse.contiguous());
}

BOOST_AUTO_TEST_CASE(only_dense_row_major_is_contiguous) {
    auto const contiguous = [](extents const& shape, extents const& strides) {
        return tensor_view<>{somewhere, dtype::int16, shape, strides}.contiguous();
    };
    BOOST_TEST(contiguous({2, 3}, {3, 1}));
    BOOST_TEST(!contiguous({2, 3}, {1, 2}));  // transposed
    BOOST_TEST(!contiguous({2, 3}, {4, 1}));  // rows with a gap
    BOOST_TEST(!contiguous({2, 3}, {6, 2}));  // every second element
    BOOST_TEST(!contiguous({2, 3}, {0, 1}));  // one row shown twice
    BOOST_TEST(contiguous({1, 3}, {99, 1}));  // the stride of a single row says nothing
    BOOST_TEST(contiguous({3, 1}, {1, 99}));
    BOOST_TEST(contiguous({1}, {0}));
    BOOST_TEST(contiguous({}, {}));
    BOOST_TEST(contiguous({0, 3}, {1, 2}));
}

BOOST_AUTO_TEST_CASE(invalid_strides_are_refused) {
    auto const make = [](extents const& shape, extents const& strides) {
        return tensor_view<>{somewhere, dtype::float32, shape, strides};
    };
    BOOST_CHECK_EXCEPTION(make({2, 3}, {1}), bad_input, says({"2 extents", "1 strides"}));
    BOOST_CHECK_THROW(make({2}, {3, 1}), bad_input);
    BOOST_CHECK_THROW(make({}, {1}), bad_input);
    BOOST_CHECK_EXCEPTION(make({2, 3}, {-3, 1}), bad_input, says("negative stride"));
    BOOST_CHECK_THROW(make({2, 3}, {3, -1}), bad_input);
    BOOST_CHECK_THROW(make({1, 3}, {-3, 1}), bad_input);
    BOOST_CHECK_THROW(make({0, 3}, {3, -1}), bad_input);
    BOOST_CHECK_THROW(make({2, -3}, {3, 1}), bad_input);
}

BOOST_AUTO_TEST_CASE(reaches_past_63_bits_are_refused) {
    auto const make = [](dtype type, extents const& shape, extents const& strides) {
        return tensor_view<>{somewhere, type, shape, strides};
    };
    BOOST_CHECK_EXCEPTION(make(dtype::float32, {2}, {largest}), bad_input, says("64 bits"));
    BOOST_CHECK_EXCEPTION(make(dtype::uint8, {2}, {largest}), bad_input, says("2^63 - 1 bytes"));
    BOOST_CHECK_NO_THROW(make(dtype::uint8, {2}, {largest - 1}));
    BOOST_CHECK_THROW(make(dtype::uint8, {3}, {largest - 1}), bad_input);
    BOOST_CHECK_THROW(make(dtype::uint8, {2, 2, 2}, {largest / 2, largest / 2, largest / 2}),
                      bad_input);
    BOOST_CHECK_THROW(make(dtype::float64, {largest / 4}, {1}), bad_input);
    BOOST_CHECK_THROW((tensor_view<>{somewhere, dtype::uint8, {largest, 2}}), bad_input);
    BOOST_CHECK_THROW((tensor_view<>{somewhere, dtype::float32, {largest}}), bad_input);
    // a stride that no element uses may be anything
    BOOST_CHECK_NO_THROW(make(dtype::float64, {1, 2}, {largest, 1}));
}

BOOST_AUTO_TEST_CASE(layouts_compare_by_type_shape_and_strides) {
    tensor_layout const a{dtype::float32, {2, 3}, {3, 1}};
    BOOST_CHECK((a == tensor_layout{dtype::float32, {2, 3}, {3, 1}}));
    BOOST_CHECK((a != tensor_layout{dtype::int32, {2, 3}, {3, 1}}));
    BOOST_CHECK((a != tensor_layout{dtype::float32, {3, 2}, {3, 1}}));
    BOOST_CHECK((a != tensor_layout{dtype::float32, {2, 3}, {1, 2}}));
}

BOOST_AUTO_TEST_CASE(a_readable_view_of_a_writable_one_is_the_same_tensor) {
    tensor_view<cuda_space> const view{
        somewhere, dtype::bfloat16, {2, 3}, {1, 2}, {device_kind::cuda, 1}};
    const_tensor_view<cuda_space> const read = view;
    BOOST_TEST(read.data() == somewhere);
    BOOST_CHECK(read.layout() == view.layout());
    BOOST_CHECK(read.where() == view.where());
    test::check_writable_tensor_laws(view);
    test::check_tensor_laws(read);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
