// SPDX-License-Identifier: Apache-2.0
#include <boost/test/unit_test.hpp>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include <support/says.hpp>
#include <weightcast/comm/detail/reduce.hpp>

BOOST_AUTO_TEST_SUITE(reduce)

namespace wc = weightcast;
namespace detail = weightcast::detail;
using wc::dtype;
using wc::reduction;
using weightcast::test::says;

namespace {

template <class T>
std::vector<T> reduced(std::vector<T> a, std::vector<T> const& b, dtype type, reduction how) {
    detail::reduce_into(a.data(), b.data(), a.size() * sizeof(T), type, how);
    return a;
}
template <class T>
void check_type(dtype type) {
    std::vector<T> const a{1, 5, 3, 0};
    std::vector<T> const b{4, 2, 3, 7};
    BOOST_TEST(reduced(a, b, type, reduction::sum) == (std::vector<T>{5, 7, 6, 7}),
               boost::test_tools::per_element());
    BOOST_TEST(reduced(a, b, type, reduction::min) == (std::vector<T>{1, 2, 3, 0}),
               boost::test_tools::per_element());
    BOOST_TEST(reduced(a, b, type, reduction::max) == (std::vector<T>{4, 5, 3, 7}),
               boost::test_tools::per_element());
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_type_reduces) {
    check_type<std::int32_t>(dtype::int32);
    check_type<std::int64_t>(dtype::int64);
    check_type<std::uint64_t>(dtype::uint64);
    check_type<float>(dtype::float32);
    check_type<double>(dtype::float64);
}

BOOST_AUTO_TEST_CASE(other_types_and_broken_elements_are_refused) {
    for (std::size_t i = 0; i < wc::dtype_count; ++i) {
        auto const type = static_cast<dtype>(i);
        if (detail::can_reduce(type)) {
            BOOST_CHECK_NO_THROW(detail::check_reducible(type, item_size(type) * 3));
            BOOST_CHECK_NO_THROW(detail::check_reducible(type, 0));
            BOOST_CHECK_EXCEPTION(detail::check_reducible(type, item_size(type) + 1),
                                  wc::bad_argument, says({"no whole number", to_string(type)}));
        } else {
            BOOST_CHECK_EXCEPTION(detail::check_reducible(type, 0), wc::bad_argument,
                                  says(to_string(type)));
        }
    }
}

BOOST_AUTO_TEST_CASE(integers_wrap_and_do_not_overflow) {
    using i32 = std::numeric_limits<std::int32_t>;
    using u64 = std::numeric_limits<std::uint64_t>;
    BOOST_TEST(reduced<std::int32_t>({i32::max()}, {1}, dtype::int32, reduction::sum).front() ==
               i32::min());
    BOOST_TEST(reduced<std::uint64_t>({u64::max()}, {2}, dtype::uint64, reduction::sum).front() ==
               1U);
    BOOST_TEST(reduced<std::uint64_t>({u64::max()}, {0}, dtype::uint64, reduction::max).front() ==
               u64::max());
}

BOOST_AUTO_TEST_CASE(what_does_not_compare_stays_the_first) {
    double const nan = std::numeric_limits<double>::quiet_NaN();
    BOOST_TEST(std::isnan(reduced<double>({nan}, {1}, dtype::float64, reduction::min).front()));
    BOOST_TEST(reduced<double>({1}, {nan}, dtype::float64, reduction::min).front() == 1.0);
    BOOST_TEST(std::isnan(reduced<double>({1}, {nan}, dtype::float64, reduction::sum).front()));
}

BOOST_AUTO_TEST_CASE(unaligned_memory_is_read_as_it_is) {
    std::vector<std::byte> a(17);
    std::vector<std::byte> b(17);
    std::int64_t const one = 40;
    std::int64_t const two = 2;
    std::memcpy(a.data() + 1, &one, 8);
    std::memcpy(b.data() + 3, &two, 8);
    detail::reduce_into(a.data() + 1, b.data() + 3, 8, dtype::int64, reduction::sum);
    std::int64_t result = 0;
    std::memcpy(&result, a.data() + 1, 8);
    BOOST_TEST(result == 42);
    detail::reduce_into(nullptr, nullptr, 0, dtype::int64, reduction::sum);
}

BOOST_AUTO_TEST_SUITE_END()
