// SPDX-License-Identifier: Apache-2.0
#include <weightcast/io/safetensors_dtype.hpp>

#include <array>
#include <limits>
#include <utility>

#include <boost/test/unit_test.hpp>

#include "support/says.hpp"

namespace {

using namespace weightcast;
using test::says;

// The format's names and torch's, written out a second time on purpose.
constexpr std::array<std::pair<char const*, char const*>, 18> names{{
    {"BOOL", "bool"},
    {"I8", "int8"},
    {"U8", "uint8"},
    {"I16", "int16"},
    {"U16", "uint16"},
    {"I32", "int32"},
    {"U32", "uint32"},
    {"I64", "int64"},
    {"U64", "uint64"},
    {"F16", "float16"},
    {"BF16", "bfloat16"},
    {"F32", "float32"},
    {"F64", "float64"},
    {"F8_E4M3", "float8_e4m3fn"},
    {"F8_E5M2", "float8_e5m2"},
    {"F8_E8M0", "float8_e8m0fnu"},
    {"F4", "float4_e2m1fn_x2"},
    {"C64", "complex64"},
}};

BOOST_AUTO_TEST_SUITE(safetensors_dtype_suite)

BOOST_AUTO_TEST_CASE(each_name_means_torchs_type_and_back) {
    BOOST_TEST(names.size() == dtype_count);
    for (auto const& [file_name, torch_name] : names) {
        auto const found = find_safetensors_dtype(file_name);
        BOOST_TEST_REQUIRE(found.has_value());
        BOOST_TEST(to_string(*found) == torch_name);
        BOOST_TEST(safetensors_name(*found) == file_name);
    }
}

BOOST_AUTO_TEST_CASE(other_names_mean_nothing) {
    for (auto const* const name :
         {"", "f32", "F32 ", "FLOAT", "F6_E2M3", "F6_E3M2", "F8_E4M3FNUZ", "C128"}) {
        BOOST_TEST(!find_safetensors_dtype(name).has_value());
    }
}

BOOST_AUTO_TEST_CASE(f4_shapes_count_values_in_files_and_bytes_in_torch) {
    auto const type = dtype::float4_e2m1fn_x2;
    BOOST_TEST(shape_from_safetensors(type, {3, 8}) == (extents{3, 4}));
    BOOST_TEST(shape_to_safetensors(type, {3, 4}) == (extents{3, 8}));
    BOOST_TEST(shape_from_safetensors(type, {0}) == extents{0});
    BOOST_TEST(shape_from_safetensors(type, {3, 0}) == (extents{3, 0}));
    BOOST_TEST(shape_to_safetensors(type, {0, 5}) == (extents{0, 10}));
}

BOOST_AUTO_TEST_CASE(f4_values_come_in_pairs) {
    auto const type = dtype::float4_e2m1fn_x2;
    BOOST_CHECK_EXCEPTION(shape_from_safetensors(type, {2, 3}), bad_input,
                          says({"pairs", "[2, 3]"}));
    BOOST_CHECK_EXCEPTION(shape_from_safetensors(type, {}), bad_input, says({"pairs", "[]"}));
    BOOST_CHECK_EXCEPTION(shape_to_safetensors(type, {}), bad_argument, says("scalar"));
}

BOOST_AUTO_TEST_CASE(all_other_shapes_are_the_same) {
    for (std::size_t i = 0; i < dtype_count; ++i) {
        auto const type = static_cast<dtype>(i);
        if (type == dtype::float4_e2m1fn_x2) continue;
        for (auto const& shape : {extents{}, extents{3}, extents{2, 0, 5}}) {
            BOOST_TEST(shape_from_safetensors(type, shape) == shape);
            BOOST_TEST(shape_to_safetensors(type, shape) == shape);
        }
    }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
