// SPDX-License-Identifier: Apache-2.0
// The bodies as a device runs them: many work items, each its share of small pieces, in any order.
#include <weightcast/kernels/pack_body.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <weightcast/kernels/strided_region.hpp>
#include "kernels/strided_tensors.hpp"

namespace {

using namespace weightcast;
using test::flattened;
using test::random_bytes;
using test::reach;

// A grid of `items` work items, the last one first.
template <class Body, class Arguments>
void run_grid(Body body, Arguments const& arguments, unsigned long long items) {
    for (auto index = items; index-- > 0;) body(arguments, index, items);
}

BOOST_AUTO_TEST_SUITE(pack_body_suite)

BOOST_AUTO_TEST_CASE(a_grid_packs_what_a_loop_packs) {
    for (auto const& c : test::strided_cases()) {
        BOOST_TEST_CONTEXT(c.name) {
            auto const memory = random_bytes(reach(c), 1);
            const_tensor_view<> const view{memory.data(), c.type, c.shape, c.strides};
            auto const expected = flattened(c, memory.data());
            for (std::uint64_t const piece : {1U, 7U, 16U, 1024U}) {
                for (unsigned long long const items : {1U, 5U, 64U, 5000U}) {
                    std::vector<std::byte> dense(expected.size());
                    run_grid(kernels::pack_body,
                             pack_arguments_of(view, 0, dense.size(), dense.data(), piece), items);
                    BOOST_TEST((dense == expected));
                }
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(a_grid_unpacks_what_a_loop_unpacks) {
    for (auto const& c : test::strided_cases()) {
        if (!has_separate_elements({c.type, c.shape, c.strides})) continue;
        BOOST_TEST_CONTEXT(c.name) {
            auto const dense = random_bytes(element_count(c.shape) * item_size(c.type), 2);
            for (std::uint64_t const piece : {1U, 7U, 16U, 1024U}) {
                std::vector<std::byte> memory(reach(c));
                tensor_view<> const view{memory.data(), c.type, c.shape, c.strides};
                run_grid(kernels::unpack_body,
                         unpack_arguments_of(dense.data(), view, 0, dense.size(), piece), 33);
                BOOST_TEST((flattened(c, memory.data()) == dense));
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(a_grid_keeps_to_its_range) {
    test::strided_case const c{"cut", dtype::float32, {9, 7}, {1, 9}};
    auto const memory = random_bytes(reach(c), 3);
    const_tensor_view<> const view{memory.data(), c.type, c.shape, c.strides};
    auto const expected = flattened(c, memory.data());
    for (std::size_t first = 0; first < expected.size(); first += 5) {
        for (std::size_t last = first; last < expected.size(); last += 11) {
            std::vector<std::byte> dense(last - first);
            run_grid(kernels::pack_body, pack_arguments_of(view, first, last, dense.data(), 16), 8);
            BOOST_TEST_REQUIRE(std::equal(dense.begin(), dense.end(), expected.data() + first));
        }
    }
}

// Runs of every size up to 16 bytes and past it, at every distance: no dtype has them, a device
// may.
BOOST_AUTO_TEST_CASE(runs_of_any_size_are_moved) {
    auto const memory = random_bytes(4096, 4);
    auto const* const data = reinterpret_cast<unsigned char const*>(memory.data());
    for (unsigned long long run = 1; run <= 20; ++run) {
        for (unsigned long long gap = 0; gap <= 17; ++gap) {
            for (unsigned shift = 0; shift < 2; ++shift) {
                kernels::strided_region const region{run, 2, {3, 5}, {11 * (run + gap), run + gap}};
                std::vector<unsigned char> dense(15 * run);
                kernels::pack_body(
                    {region, data + shift, dense.data(), 0, dense.size(), dense.size()}, 0, 1);
                bool equal = true;
                for (unsigned long long i = 0; i < dense.size(); ++i) {
                    auto const at =
                        i / run / 5 * 11 * (run + gap) + i / run % 5 * (run + gap) + i % run;
                    equal = equal && dense[i] == data[shift + at];
                }
                BOOST_TEST_REQUIRE(equal);
            }
        }
    }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
