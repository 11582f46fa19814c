// SPDX-License-Identifier: Apache-2.0
// Strided to strided, each side dense or not: the same elements arrive, and nothing beside them.
#include <chrono>
#include <cstdint>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <weightcast/kernels/host_launch.hpp>
#include <weightcast/kernels/tensor_copy.hpp>
#include <weightcast/runtime/host_runtime.hpp>
#include <weightcast/runtime/stream.hpp>

namespace weightcast {
namespace {

BOOST_AUTO_TEST_SUITE(tensor_copy)

BOOST_AUTO_TEST_CASE(every_pair_of_layouts_copies_its_elements_and_nothing_else) {
    extents const shape{3, 4, 2};
    std::vector<extents> const layouts{{8, 2, 1}, {1, 3, 12}, {40, 10, 3}};
    std::vector<std::int32_t> from(200);
    for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::int32_t>(i + 1);
    stream<host_runtime> const on{cpu_device};
    for (auto const& a : layouts) {
        for (auto const& b : layouts) {
            std::vector<std::int32_t> to(200, -1);
            std::vector<std::int32_t> expected = to;
            for (std::int64_t i = 0; i < 3; ++i) {
                for (std::int64_t j = 0; j < 4; ++j) {
                    for (std::int64_t k = 0; k < 2; ++k) {
                        auto const source =
                            static_cast<std::size_t>(i * a[0] + j * a[1] + k * a[2]);
                        auto const place = static_cast<std::size_t>(i * b[0] + j * b[1] + k * b[2]);
                        expected[place] = from[source];
                    }
                }
            }
            copy_async<host_runtime>(const_tensor_view<>{from.data(), dtype::int32, shape, a},
                                     tensor_view<>{to.data(), dtype::int32, shape, b}, on.ref());
            BOOST_TEST(host_runtime::wait(on.ref(), deadline::after(std::chrono::seconds{60})));
            BOOST_TEST(to == expected, boost::test_tools::per_element());
        }
    }
}

BOOST_AUTO_TEST_CASE(what_does_not_fit_is_refused) {
    std::vector<float> memory(12);
    stream<host_runtime> const on{cpu_device};
    const_tensor_view<> const from{memory.data(), dtype::float32, {3, 4}};
    auto const copy_to = [&](tensor_view<> const& to) {
        copy_async<host_runtime>(from, to, on.ref());
    };
    BOOST_CHECK_THROW(copy_to({memory.data(), dtype::float32, {4, 3}}), bad_argument);
    BOOST_CHECK_THROW(copy_to({memory.data(), dtype::int32, {3, 4}}), bad_argument);
    BOOST_CHECK_THROW(copy_to({memory.data(), dtype::float32, {3, 4}, {1, 1}}), bad_argument);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weightcast
