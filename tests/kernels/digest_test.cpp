// SPDX-License-Identifier: Apache-2.0
#include <weightcast/kernels/digest.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <xxhash.h>
#include <boost/test/unit_test.hpp>

#include <weightcast/kernels/digest_body.hpp>
#include "kernels/strided_tensors.hpp"

namespace {

using namespace weightcast;
using test::random_bytes;

std::uint64_t reference(std::span<std::byte const> bytes) {
    return XXH3_64bits(bytes.data(), bytes.size());
}

std::uint64_t in_pieces(std::span<std::byte const> bytes, std::size_t piece) {
    digest_state state;
    while (!bytes.empty()) {
        auto const now = std::min(piece, bytes.size());
        state.update(bytes.first(now));
        bytes = bytes.subspan(now);
    }
    return state.value();
}

BOOST_AUTO_TEST_SUITE(digest_suite)

BOOST_AUTO_TEST_CASE(known_values_are_xxh3s) {
    // from xxHash's own documentation of its 64-bit variant, seed 0
    BOOST_TEST(xxh3_64({}) == 0x2D06800538D394C2ULL);
    BOOST_TEST(xxh3_64(std::as_bytes(std::span{"a", 1})) == XXH3_64bits("a", 1));
}

BOOST_AUTO_TEST_CASE(every_length_to_3000_is_xxhashs_at_every_alignment) {
    auto const bytes = random_bytes(3100, 1);
    bool equal = true;
    for (std::size_t n = 0; n <= 3000; ++n) {
        auto const part = std::span{bytes}.subspan(n % 17, n);
        equal = equal && xxh3_64(part) == reference(part);
    }
    BOOST_TEST(equal);
}

BOOST_AUTO_TEST_CASE(lengths_about_blocks_and_past_a_mebibyte_are_xxhashs) {
    auto const bytes = random_bytes((1U << 20U) + 2000, 2);
    for (std::size_t const middle : {4096U, 65'536U, 131'072U, 1'000'000U, 1'048'576U}) {
        for (std::size_t n = middle - 66; n <= middle + 66; ++n) {
            BOOST_TEST_REQUIRE(xxh3_64(std::span{bytes}.first(n)) ==
                               reference(std::span{bytes}.first(n)));
        }
    }
    BOOST_TEST(xxh3_64(bytes) == reference(bytes));
}

BOOST_AUTO_TEST_CASE(zeros_of_different_length_differ) {
    std::vector<std::byte> const zeros(5000);
    std::vector<std::uint64_t> seen;
    for (std::size_t n = 0; n < zeros.size(); ++n)
        seen.push_back(xxh3_64(std::span{zeros}.first(n)));
    std::ranges::sort(seen);
    BOOST_CHECK(std::ranges::adjacent_find(seen) == seen.end());
}

BOOST_AUTO_TEST_CASE(pieces_of_any_size_make_the_same_digest) {
    auto const bytes = random_bytes(5000, 3);
    for (std::size_t n = 0; n <= 1400; ++n) {
        auto const part = std::span{bytes}.first(n);
        auto const expected = reference(part);
        for (std::size_t const piece :
             {1U, 3U, 63U, 64U, 65U, 255U, 256U, 257U, 1023U, 1024U, 1025U}) {
            BOOST_TEST_REQUIRE(in_pieces(part, piece) == expected);
        }
    }
    for (std::size_t const piece : {1U, 64U, 100U, 256U, 300U, 2048U, 4999U, 5000U}) {
        BOOST_TEST(in_pieces(bytes, piece) == reference(bytes));
    }
}

BOOST_AUTO_TEST_CASE(random_cuts_make_the_same_digest) {
    auto const bytes = random_bytes(20'000, 4);
    std::mt19937 generator{5};
    for (int round = 0; round < 400; ++round) {
        auto const n = generator() % bytes.size();
        auto left = std::span{bytes}.first(n);
        digest_state state;
        while (!left.empty()) {
            std::size_t const limit = generator() % 3 == 0 ? 3000 : 300;
            auto const now = std::min<std::size_t>(generator() % limit, left.size());
            state.update(left.first(now));
            left = left.subspan(now);
        }
        BOOST_TEST_REQUIRE(state.value() == reference(std::span{bytes}.first(n)));
    }
}

BOOST_AUTO_TEST_CASE(a_value_may_be_taken_on_the_way) {
    auto const bytes = random_bytes(3000, 6);
    digest_state state;
    for (std::size_t n = 0; n < bytes.size(); ++n) {
        BOOST_TEST_REQUIRE(state.value() == reference(std::span{bytes}.first(n)));
        state.update(std::span{bytes}.subspan(n, 1));
    }
}

BOOST_AUTO_TEST_CASE(a_copy_goes_its_own_way) {
    auto const bytes = random_bytes(2000, 7);
    digest_state first;
    first.update(std::span{bytes}.first(1000));
    digest_state second = first;
    first.update(std::span{bytes}.subspan(1000));
    second.update(std::span{bytes}.first(10));
    BOOST_TEST(first.value() == reference(bytes));
    BOOST_TEST(second.value() != first.value());
}

BOOST_AUTO_TEST_CASE(nothing_added_changes_nothing) {
    digest_state state;
    state.update({});
    BOOST_TEST(state.value() == xxh3_64({}));
    auto const bytes = random_bytes(300, 8);
    state.update(bytes);
    state.update({});
    state.update(std::span<std::byte const>{bytes.data(), std::size_t{0}});
    BOOST_TEST(state.value() == reference(bytes));
}

BOOST_AUTO_TEST_CASE(one_bit_changes_the_digest_wherever_it_is) {
    for (std::size_t const n : {1U, 3U, 8U, 16U, 100U, 200U, 240U, 241U, 1024U, 1100U}) {
        auto bytes = random_bytes(n, 9);
        auto const before = xxh3_64(bytes);
        for (std::size_t i = 0; i < n; ++i) {
            bytes[i] ^= std::byte{1};
            BOOST_TEST_REQUIRE(xxh3_64(bytes) != before);
            bytes[i] ^= std::byte{1};
        }
    }
}

BOOST_AUTO_TEST_CASE(the_body_digests_each_range_once) {
    auto const bytes = random_bytes(4000, 10);
    std::vector<unsigned char const*> data;
    std::vector<unsigned long long> sizes;
    for (std::size_t i = 0; i < 50; ++i) {
        data.push_back(reinterpret_cast<unsigned char const*>(bytes.data()) + i);
        sizes.push_back(i * 79);
    }
    std::vector<unsigned long long> digests(50, 1);
    for (unsigned long long index = 7; index-- > 0;) {
        kernels::digest_body({data.data(), sizes.data(), digests.data(), 50}, index, 7);
    }
    for (std::size_t i = 0; i < 50; ++i) {
        BOOST_TEST(digests[i] == XXH3_64bits(data[i], static_cast<std::size_t>(sizes[i])));
    }
}

BOOST_AUTO_TEST_CASE(digests_print_as_16_hex_digits) {
    BOOST_TEST(digest_text(0) == "0000000000000000");
    BOOST_TEST(digest_text(0xFEDCBA9876543210ULL) == "fedcba9876543210");
    BOOST_TEST(digest_text(0x2D06800538D394C2ULL) == "2d06800538d394c2");
    BOOST_TEST(digest_text(10) == "000000000000000a");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
