// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <weightcast/model/parameter.hpp>
#include <weightcast/tensor/range_tensor.hpp>

namespace weightcast::test {
namespace {

BOOST_AUTO_TEST_SUITE(parameter_suite)

BOOST_AUTO_TEST_CASE(bytes_are_those_of_its_elements) {
    BOOST_TEST((parameter{"w", dtype::float32, {}}.bytes()) == 4U);
    BOOST_TEST((parameter{"w", dtype::bfloat16, {2, 3}}.bytes()) == 12U);
    BOOST_TEST((parameter{"w", dtype::float64, {3, 0, 2}}.bytes()) == 0U);
    BOOST_TEST((parameter{"w", dtype::uint8, {std::int64_t{1} << 40}}.bytes()) == std::uint64_t{1}
                                                                                      << 40U);
    BOOST_CHECK_THROW(static_cast<void>(parameter{"w", dtype::float64, {INT64_MAX}}.bytes()),
                      bad_input);
    BOOST_CHECK_THROW(static_cast<void>(parameter{"w", dtype::uint8, {-1}}.bytes()), bad_input);
}

BOOST_AUTO_TEST_CASE(types_print_with_their_shape) {
    BOOST_TEST(describe_type(dtype::bfloat16, {2, 3}) == "bfloat16[2, 3]");
    BOOST_TEST(describe_type(dtype::bool_, {}) == "bool[]");
}

BOOST_AUTO_TEST_CASE(metadata_is_that_of_the_tensor) {
    std::vector<float> const weights(6);
    auto const flat = parameter_of("layer.0.w", weights);
    BOOST_TEST((flat == parameter{"layer.0.w", dtype::float32, {6}}));
    auto const scalar = parameter_of("s", const_tensor_view<>{weights.data(), dtype::float32, {}});
    BOOST_TEST((scalar == parameter{"s", dtype::float32, {}}));
    auto const strided =
        parameter_of("t", const_tensor_view<>{weights.data(), dtype::float32, {2, 3}, {1, 2}});
    BOOST_TEST((strided == parameter{"t", dtype::float32, {2, 3}}));
}

BOOST_AUTO_TEST_CASE(name_dtype_and_shape_make_the_parameter) {
    parameter const p{"w", dtype::float32, {2, 3}};
    BOOST_TEST((p != parameter{"v", dtype::float32, {2, 3}}));
    BOOST_TEST((p != parameter{"w", dtype::int32, {2, 3}}));
    BOOST_TEST((p != parameter{"w", dtype::float32, {3, 2}}));
    BOOST_TEST((p != parameter{"w", dtype::float32, {2, 3, 1}}));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weightcast::test
