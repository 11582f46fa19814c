// SPDX-License-Identifier: Apache-2.0
#include <weightcast/tensor/range_tensor.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <boost/mpl/list.hpp>
#include <boost/test/unit_test.hpp>

#include <weightcast/tensor/concepts.hpp>
#include "laws/tensor_laws.hpp"

namespace {

struct half {
    std::uint16_t bits;
};
struct wide_half {
    std::uint32_t bits;
};  // claims a dtype of another size

}  // namespace

template <>
inline constexpr std::optional<weightcast::dtype> weightcast::dtype_of<half> = dtype::float16;
template <>
inline constexpr std::optional<weightcast::dtype> weightcast::dtype_of<wide_half> = dtype::float16;

namespace {

using namespace weightcast;

static_assert(dtype_of<bool> == dtype::bool_);
static_assert(dtype_of<float> == dtype::float32);
static_assert(dtype_of<double> == dtype::float64);
static_assert(dtype_of<std::int8_t> == dtype::int8);
static_assert(dtype_of<std::uint8_t> == dtype::uint8);
static_assert(dtype_of<std::int16_t> == dtype::int16);
static_assert(dtype_of<std::uint16_t> == dtype::uint16);
static_assert(dtype_of<std::int32_t> == dtype::int32);
static_assert(dtype_of<std::uint32_t> == dtype::uint32);
static_assert(dtype_of<std::int64_t> == dtype::int64);
static_assert(dtype_of<std::uint64_t> == dtype::uint64);
static_assert(dtype_of<long long> == dtype::int64);  // and `long` too, whichever int64_t is
static_assert(dtype_of<unsigned long> == dtype::uint64);
static_assert(!dtype_of<char>.has_value());
static_assert(!dtype_of<char8_t>.has_value());
static_assert(!dtype_of<wchar_t>.has_value());
static_assert(!dtype_of<long double>.has_value());
static_assert(!dtype_of<std::byte>.has_value());
static_assert(!dtype_of<int*>.has_value());
static_assert(!dtype_of<std::string>.has_value());

static_assert(TensorElement<float const>);
static_assert(TensorElement<half>);
static_assert(!TensorElement<wide_half>);
static_assert(!TensorElement<float&>);

// Models
static_assert(WritableDeviceTensor<std::vector<float>>);
static_assert(WritableDeviceTensor<std::array<std::uint8_t, 4>>);
static_assert(WritableDeviceTensor<std::array<bool, 4>>);
static_assert(WritableDeviceTensor<std::span<double>>);
static_assert(WritableDeviceTensor<std::span<double, 3>>);
static_assert(WritableDeviceTensor<std::span<double> const>);  // the elements are not const
static_assert(WritableDeviceTensor<std::vector<half>>);
static_assert(WritableDeviceTensor<float[3]>);
// May only be read
static_assert(DeviceTensor<std::vector<float> const>);
static_assert(!WritableDeviceTensor<std::vector<float> const>);
static_assert(!WritableDeviceTensor<std::array<float, 3> const>);
static_assert(DeviceTensor<std::span<double const>>);
static_assert(!WritableDeviceTensor<std::span<double const>>);
static_assert(DeviceTensor<std::initializer_list<float>>);
static_assert(!WritableDeviceTensor<std::initializer_list<float>>);
// Near-misses
static_assert(!DeviceTensor<std::list<float>>);
static_assert(!DeviceTensor<std::deque<float>>);
static_assert(!DeviceTensor<std::vector<bool>>);
static_assert(!DeviceTensor<std::string>);
static_assert(!DeviceTensor<std::string_view>);
static_assert(!DeviceTensor<std::vector<std::string>>);
static_assert(!DeviceTensor<std::vector<float*>>);
static_assert(!DeviceTensor<std::vector<long double>>);
static_assert(!DeviceTensor<std::vector<wide_half>>);
static_assert(!DeviceTensor<float[2][3]>);  // its shape would be lost
static_assert(!DeviceTensor<std::vector<std::vector<float>>>);
static_assert(!DeviceTensor<float*>);
static_assert(!DeviceTensor<decltype(std::views::iota(0, 3))>);

using elements =
    boost::mpl::list<bool, std::int8_t, std::uint8_t, std::int16_t, std::uint16_t, std::int32_t,
                     std::uint32_t, std::int64_t, std::uint64_t, float, double, half>;

BOOST_AUTO_TEST_SUITE(range_tensor_suite)

BOOST_AUTO_TEST_CASE_TEMPLATE(an_array_reads_and_writes_as_a_tensor, Element, elements) {
    std::array<Element, 3> values{};
    test::check_writable_tensor_laws(values);
    auto const view = writable_view_of(values);
    BOOST_TEST(view.data() == values.data());
    BOOST_TEST(view.type() == *dtype_of<Element>);
    BOOST_TEST(view.shape() == extents{3});
    BOOST_TEST(view.where() == cpu_device);
    BOOST_TEST(view.bytes() == sizeof values);
}

BOOST_AUTO_TEST_CASE(an_empty_vector_is_an_empty_tensor) {
    std::vector<float> none;
    test::check_writable_tensor_laws(none);
    BOOST_TEST(view_of(none).shape() == extents{0});
    BOOST_TEST(view_of(none).bytes() == 0U);
}

BOOST_AUTO_TEST_CASE(a_span_shows_its_part_only) {
    std::vector<std::int32_t> values(10);
    std::span const part = std::span{values}.subspan(2, 5);
    test::check_writable_tensor_laws(part);
    BOOST_TEST(view_of(part).data() == values.data() + 2);
    BOOST_TEST(view_of(part).shape() == extents{5});
    std::span<std::int32_t const> const read = part;
    test::check_tensor_laws(read);
}

BOOST_AUTO_TEST_CASE(a_c_array_is_a_tensor) {
    float values[4]{};
    test::check_writable_tensor_laws(values);
    BOOST_TEST(view_of(values).shape() == extents{4});
}

BOOST_AUTO_TEST_CASE(a_vector_of_const_elements_may_only_be_read) {
    std::vector<float> const values{1, 2, 3};
    test::check_tensor_laws(values);
    BOOST_TEST(view_of(values).data() == values.data());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
