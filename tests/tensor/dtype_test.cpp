// SPDX-License-Identifier: Apache-2.0
#include <weightcast/tensor/dtype.hpp>

#include <array>
#include <complex>
#include <set>
#include <sstream>
#include <string>

#include <boost/test/unit_test.hpp>

#include "support/says.hpp"

namespace {

using namespace weightcast;
using test::says;

struct expected_row {
    dtype type;
    char const* name;
    std::size_t bytes;
};

// torch's names and itemsizes, written out a second time on purpose.
constexpr std::array<expected_row, 18> torch_says{{
    {dtype::bool_, "bool", 1},
    {dtype::int8, "int8", 1},
    {dtype::uint8, "uint8", 1},
    {dtype::int16, "int16", 2},
    {dtype::uint16, "uint16", 2},
    {dtype::int32, "int32", 4},
    {dtype::uint32, "uint32", 4},
    {dtype::int64, "int64", 8},
    {dtype::uint64, "uint64", 8},
    {dtype::float16, "float16", 2},
    {dtype::bfloat16, "bfloat16", 2},
    {dtype::float32, "float32", 4},
    {dtype::float64, "float64", 8},
    {dtype::float8_e4m3fn, "float8_e4m3fn", 1},
    {dtype::float8_e5m2, "float8_e5m2", 1},
    {dtype::float8_e8m0fnu, "float8_e8m0fnu", 1},
    {dtype::float4_e2m1fn_x2, "float4_e2m1fn_x2", 1},
    {dtype::complex64, "complex64", 8},
}};

BOOST_AUTO_TEST_SUITE(dtype_suite)

BOOST_AUTO_TEST_CASE(names_and_sizes_are_torchs) {
    BOOST_TEST(dtype_count == torch_says.size());
    for (auto const& row : torch_says) {
        BOOST_TEST(to_string(row.type) == row.name);
        BOOST_TEST(item_size(row.type) == row.bytes);
    }
}

BOOST_AUTO_TEST_CASE(each_name_reads_back_with_and_without_torchs_prefix) {
    std::set<std::string> names;
    for (std::size_t i = 0; i < dtype_count; ++i) {
        auto const type = static_cast<dtype>(i);
        std::string const name{to_string(type)};
        names.insert(name);
        BOOST_TEST(parse_dtype(name) == type);
        BOOST_TEST(parse_dtype("torch." + name) == type);
        std::ostringstream out;
        out << type;
        BOOST_TEST(out.str() == name);
    }
    BOOST_TEST(names.size() == dtype_count);
}

BOOST_AUTO_TEST_CASE(other_names_are_refused_and_repeated) {
    for (auto const* const name : {"", "float", "half", "Float32", "float32 ", "torch.", "torch",
                                   "torch.torch.int8", "float8_e4m3fnuz", "complex128", "bool_"}) {
        BOOST_TEST(!find_dtype(name).has_value());
        BOOST_CHECK_EXCEPTION(parse_dtype(name), bad_input,
                              says("unknown dtype '" + std::string{name} + "'"));
    }
}

BOOST_AUTO_TEST_CASE(elements_are_aligned_as_the_cpu_needs_them) {
    for (std::size_t i = 0; i < dtype_count; ++i) {
        auto const type = static_cast<dtype>(i);
        BOOST_TEST(item_alignment(type) >= 1U);
        BOOST_TEST(item_size(type) % item_alignment(type) == 0U);
    }
    BOOST_TEST(item_alignment(dtype::float64) == alignof(double));
    BOOST_TEST(item_alignment(dtype::complex64) == alignof(std::complex<float>));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
