// SPDX-License-Identifier: Apache-2.0
#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <string>

#include <weightcast/plan/planned_tensor.hpp>

namespace {

using namespace weightcast;

template <class Error>
std::string message_of(planned_tensor const& tensor) {
    try {
        validate(tensor);
    } catch (Error const& e) {
        return e.what();
    }
    return "nothing thrown";
}

BOOST_AUTO_TEST_SUITE(planned_tensor)

BOOST_AUTO_TEST_CASE(bytes_of_dtype_and_shape_hold) {
    BOOST_CHECK_NO_THROW(
        validate({.name = "w", .type = dtype::bfloat16, .shape = {3, 5}, .bytes = 30}));
    BOOST_CHECK_NO_THROW(
        validate({.name = "scalar", .type = dtype::int64, .shape = {}, .bytes = 8}));
    BOOST_CHECK_NO_THROW(
        validate({.name = "none", .type = dtype::float32, .shape = {3, 0, 2}, .bytes = 0}));
}

BOOST_AUTO_TEST_CASE(a_size_past_4_gib_holds) {
    BOOST_CHECK_NO_THROW(validate({.name = "embed",
                                   .type = dtype::float32,
                                   .shape = {1 << 20, 1 << 13},
                                   .bytes = std::uint64_t{1} << 35U}));
}

BOOST_AUTO_TEST_CASE(other_bytes_are_refused_with_both_numbers) {
    auto const text =
        message_of<bad_input>({.name = "w", .type = dtype::float16, .shape = {2, 3}, .bytes = 11});
    BOOST_TEST(text.find("'w'") != std::string::npos);
    BOOST_TEST(text.find("11 bytes") != std::string::npos);
    BOOST_TEST(text.find("float16 of shape [2, 3] has 12") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_shape_that_is_none_is_refused) {
    BOOST_CHECK_THROW(validate({.name = "w", .type = dtype::int8, .shape = {-1}, .bytes = 1}),
                      bad_input);
    BOOST_CHECK_THROW(
        validate({.name = "w", .type = dtype::float64, .shape = {INT64_MAX, 2}, .bytes = 16}),
        bad_input);
    BOOST_CHECK_THROW(
        validate({.name = "w", .type = dtype::float64, .shape = {INT64_MAX}, .bytes = 8}),
        bad_input);
}

BOOST_AUTO_TEST_CASE(a_root_that_is_no_rank_is_refused) {
    auto const text = message_of<bad_input>(
        {.name = "w", .type = dtype::int8, .shape = {1}, .bytes = 1, .root = -2});
    BOOST_TEST(text.find("root -2") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
