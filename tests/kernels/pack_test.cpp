// SPDX-License-Identifier: Apache-2.0
#include <weightcast/kernels/pack.hpp>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "kernels/strided_tensors.hpp"
#include "support/says.hpp"

namespace {

using namespace weightcast;
using test::flattened;
using test::random_bytes;
using test::reach;
using test::says;
using test::strided_case;

constexpr auto untouched = std::byte{0xA5};

// Cuts that fall on, before and behind elements and runs, and everything there is when it is
// little.
std::vector<std::pair<std::size_t, std::size_t>> cuts_of(std::size_t bytes, std::size_t item) {
    std::vector<std::pair<std::size_t, std::size_t>> cuts{{0, bytes}, {0, 0}, {bytes, bytes}};
    std::mt19937 generator{7};
    std::uniform_int_distribution<std::size_t> anywhere{0, bytes};
    for (int i = 0; i < 60; ++i) {
        auto const a = anywhere(generator);
        auto const b = anywhere(generator);
        cuts.emplace_back(std::min(a, b), std::max(a, b));
    }
    for (std::size_t first = 0; first < std::min<std::size_t>(bytes, 2 * item + 1); ++first) {
        for (std::size_t last = first; last <= std::min(bytes, first + 3 * item); ++last) {
            cuts.emplace_back(first, last);
        }
    }
    return cuts;
}

BOOST_AUTO_TEST_SUITE(pack_suite)

BOOST_AUTO_TEST_CASE(packed_bytes_are_the_flattened_tensor) {
    for (auto const& c : test::strided_cases()) {
        BOOST_TEST_CONTEXT(c.name) {
            auto const memory = random_bytes(reach(c), 1);
            const_tensor_view<> const view{memory.data(), c.type, c.shape, c.strides};
            auto const expected = flattened(c, memory.data());
            std::vector<std::byte> dense(expected.size() + 1, untouched);
            pack(view, dense.data());
            BOOST_TEST((dense.back() == untouched));
            dense.pop_back();
            BOOST_TEST((dense == expected));
        }
    }
}

BOOST_AUTO_TEST_CASE(any_part_can_be_packed) {
    for (auto const& c : test::strided_cases()) {
        BOOST_TEST_CONTEXT(c.name) {
            auto const memory = random_bytes(reach(c), 2);
            const_tensor_view<> const view{memory.data(), c.type, c.shape, c.strides};
            auto const expected = flattened(c, memory.data());
            bool equal = true;
            for (auto const& [first, last] : cuts_of(expected.size(), item_size(c.type))) {
                std::vector<std::byte> part(last - first + 1, untouched);
                pack(view, first, last, part.data());
                equal = equal && part.back() == untouched &&
                        std::equal(part.begin(), part.end() - 1, expected.data() + first);
            }
            BOOST_TEST(equal);
        }
    }
}

BOOST_AUTO_TEST_CASE(unpacking_writes_the_elements_and_nothing_between_them) {
    for (auto const& c : test::strided_cases()) {
        if (!has_separate_elements({c.type, c.shape, c.strides})) continue;
        BOOST_TEST_CONTEXT(c.name) {
            auto const dense = random_bytes(element_count(c.shape) * item_size(c.type), 3);
            std::vector<std::byte> memory(reach(c), untouched);
            std::vector<std::byte> expected = memory;
            for (std::size_t i = 0; i < dense.size(); ++i)
                expected[offset_of_byte(c, i)] = dense[i];
            unpack(dense.data(), tensor_view<>{memory.data(), c.type, c.shape, c.strides});
            BOOST_TEST((memory == expected));
        }
    }
}

BOOST_AUTO_TEST_CASE(any_part_can_be_unpacked_and_the_rest_stays) {
    for (auto const& c : test::strided_cases()) {
        if (!has_separate_elements({c.type, c.shape, c.strides})) continue;
        BOOST_TEST_CONTEXT(c.name) {
            auto const dense = random_bytes(element_count(c.shape) * item_size(c.type), 4);
            bool equal = true;
            for (auto const& [first, last] : cuts_of(dense.size(), item_size(c.type))) {
                std::vector<std::byte> memory(reach(c), untouched);
                std::vector<std::byte> expected = memory;
                for (std::size_t i = first; i < last; ++i)
                    expected[offset_of_byte(c, i)] = dense[i];
                unpack(dense.data() + first,
                       tensor_view<>{memory.data(), c.type, c.shape, c.strides}, first, last);
                equal = equal && memory == expected;
            }
            BOOST_TEST(equal);
        }
    }
}

BOOST_AUTO_TEST_CASE(misaligned_memory_is_moved_alike) {
    for (auto const& c : test::strided_cases()) {
        BOOST_TEST_CONTEXT(c.name) {
            for (std::size_t shift = 1; shift < 16; ++shift) {
                auto const memory = random_bytes(reach(c) + shift, 5);
                const_tensor_view<> const view{memory.data() + shift, c.type, c.shape, c.strides};
                auto const expected = flattened(c, memory.data() + shift);
                std::vector<std::byte> dense(expected.size() + 16 - shift);
                auto* const to = dense.data() + (16 - shift);
                pack(view, to);
                BOOST_TEST(std::equal(expected.begin(), expected.end(), to));
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(random_layouts_go_there_and_back) {
    std::mt19937 generator{11};
    for (int round = 0; round < 300; ++round) {
        auto const below = [&](unsigned n) { return static_cast<int>(generator() % n); };
        strided_case c{"random", static_cast<dtype>(below(dtype_count)), {}, {}};
        auto const rank = static_cast<std::size_t>(below(6));
        std::vector<std::size_t> order(rank);
        std::iota(order.begin(), order.end(), 0);
        std::shuffle(order.begin(), order.end(), generator);
        std::vector<std::int64_t> shape(rank);
        std::vector<std::int64_t> strides(rank);
        std::int64_t step = 1 + below(2);
        for (auto const d : order) {
            shape[d] = 1 + below(7);
            strides[d] = step;
            step = step * shape[d] + below(3);
        }
        c.shape = extents{shape};
        c.strides = extents{strides};
        auto const memory = random_bytes(reach(c), static_cast<unsigned>(round));
        std::vector<std::byte> dense(element_count(c.shape) * item_size(c.type));
        pack(const_tensor_view<>{memory.data(), c.type, c.shape, c.strides}, dense.data());
        BOOST_TEST_REQUIRE((dense == flattened(c, memory.data())));
        std::vector<std::byte> back(memory.size(), untouched);
        unpack(dense.data(), tensor_view<>{back.data(), c.type, c.shape, c.strides});
        BOOST_TEST_REQUIRE((flattened(c, back.data()) == dense));
    }
}

BOOST_AUTO_TEST_CASE(pieces_of_a_tensor_larger_than_a_chunk_make_it_whole) {
    strided_case const c{"cut", dtype::float32, {37, 41}, {1, 37}};
    auto const memory = random_bytes(reach(c), 6);
    auto const expected = flattened(c, memory.data());
    for (std::size_t const chunk : {1U, 3U, 64U, 1000U, 6067U, 6068U}) {
        std::vector<std::byte> copy(memory.size());
        std::vector<std::byte> buffer(chunk);
        for (std::size_t first = 0; first < expected.size(); first += chunk) {
            auto const last = std::min(expected.size(), first + chunk);
            pack(const_tensor_view<>{memory.data(), c.type, c.shape, c.strides}, first, last,
                 buffer.data());
            unpack(buffer.data(), tensor_view<>{copy.data(), c.type, c.shape, c.strides}, first,
                   last);
        }
        BOOST_TEST((copy == memory));
    }
}

BOOST_AUTO_TEST_CASE(b43_scalars_and_b49_empty_tensors_pack_between_others) {
    std::vector<std::byte> dense(8, untouched);
    std::int64_t const scalar = 0x0102030405060708;
    pack(const_tensor_view<>{&scalar, dtype::int64, {}}, dense.data());
    BOOST_TEST((std::memcmp(dense.data(), &scalar, 8) == 0));
    for (auto const& shape : {extents{0}, extents{0, 4}, extents{3, 0, 2}}) {
        BOOST_CHECK_NO_THROW(pack(const_tensor_view<>{nullptr, dtype::float32, shape}, nullptr));
        BOOST_CHECK_NO_THROW(unpack(nullptr, tensor_view<>{nullptr, dtype::float32, shape}));
    }
}

BOOST_AUTO_TEST_CASE(what_is_refused_writes_nothing) {
    std::vector<float> memory(12, 1.0F);
    std::vector<float> dense(12, 2.0F);
    tensor_view<> const view{memory.data(), dtype::float32, {3, 4}};
    tensor_view<> const shared{memory.data(), dtype::float32, {3, 4}, {0, 1}};
    BOOST_CHECK_EXCEPTION(pack(view, 0, 49, dense.data()), bad_argument, says("[0, 49)"));
    BOOST_CHECK_EXCEPTION(unpack(dense.data(), view, 40, 49), bad_argument, says("[40, 49)"));
    BOOST_CHECK_EXCEPTION(unpack(dense.data(), shared), bad_argument, says("overlap"));
    BOOST_CHECK_THROW(unpack(nullptr, view), bad_argument);
    BOOST_TEST((memory == std::vector<float>(12, 1.0F)));
    BOOST_TEST((dense == std::vector<float>(12, 2.0F)));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
