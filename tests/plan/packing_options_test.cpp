// SPDX-License-Identifier: Apache-2.0
#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <limits>
#include <string>

#include <weightcast/plan/packing_options.hpp>

namespace {

using namespace weightcast;

std::string refusal(weightcast::packing_options const& options) {
    try {
        validate(options);
    } catch (bad_argument const& e) {
        return e.what();
    }
    return "accepted";
}

bool contains(std::string const& text, char const* part) {
    return text.find(part) != std::string::npos;
}

BOOST_AUTO_TEST_SUITE(packing_options)

BOOST_AUTO_TEST_CASE(the_defaults_are_the_documented_ones) {
    weightcast::packing_options const native;
    BOOST_TEST((native.layout == packing_layout::native));
    BOOST_TEST(native.chunk_bytes == 67'108'864U);
    BOOST_TEST(native.alignment == 64U);
    BOOST_TEST(native.direct_from == 1'048'576U);
    BOOST_TEST(native.ring == 2U);
    auto const vllm = vllm_packing();
    BOOST_TEST((vllm.layout == packing_layout::vllm));
    BOOST_TEST(vllm.chunk_bytes == 1'073'741'824U);
    BOOST_TEST(vllm.ring == 2U);
    BOOST_TEST(refusal(native) == "accepted");
    BOOST_TEST(refusal(vllm) == "accepted");
}

BOOST_AUTO_TEST_CASE(layouts_have_names) {
    BOOST_TEST(to_string(packing_layout::native) == "native");
    BOOST_TEST(to_string(packing_layout::vllm) == "vllm");
}

BOOST_AUTO_TEST_CASE(no_buffer_is_refused) {
    BOOST_TEST(contains(refusal({.ring = 0}), "at least 1 buffer"));
    auto vllm = vllm_packing();
    vllm.ring = 0;
    BOOST_TEST(contains(refusal(vllm), "at least 1 buffer"));
    BOOST_TEST(refusal({.ring = 1}) == "accepted");
}

BOOST_AUTO_TEST_CASE(an_empty_chunk_is_refused) {
    BOOST_TEST(contains(refusal({.chunk_bytes = 0}), "at least 1 byte"));
    BOOST_TEST(contains(refusal(vllm_packing(0)), "at least 1 byte"));
    BOOST_TEST(refusal(vllm_packing(1)) == "accepted");
}

BOOST_AUTO_TEST_CASE(the_alignment_is_a_power_of_two_for_every_dtype) {
    for (std::uint64_t const bad : {0U, 1U, 2U, 4U, 7U, 12U, 63U, 65U}) {
        BOOST_TEST(contains(refusal({.alignment = bad}), "power of two of at least 8"), bad);
        BOOST_TEST(contains(refusal({.alignment = bad}), std::to_string(bad).c_str()), bad);
    }
    for (std::uint64_t const good : {8U, 16U, 64U, 4096U}) {
        BOOST_TEST(refusal({.alignment = good}) == "accepted", good);
    }
}

BOOST_AUTO_TEST_CASE(a_chunk_holds_at_least_one_aligned_member) {
    BOOST_TEST(contains(refusal({.chunk_bytes = 63}), "63 bytes is smaller than the alignment 64"));
    BOOST_TEST(refusal({.chunk_bytes = 64}) == "accepted");
    BOOST_TEST(refusal({.chunk_bytes = 65}) == "accepted");
}

BOOST_AUTO_TEST_CASE(the_ring_fits_in_64_bits) {
    auto const half = std::uint64_t{1} << 63U;
    BOOST_TEST(contains(refusal({.chunk_bytes = half, .ring = 2}), "does not fit in 64 bits"));
    BOOST_TEST(refusal({.chunk_bytes = half, .ring = 1}) == "accepted");
}

BOOST_AUTO_TEST_CASE(everything_or_nothing_may_go_direct) {
    BOOST_TEST(refusal({.direct_from = 0}) == "accepted");
    BOOST_TEST(refusal({.direct_from = std::numeric_limits<std::uint64_t>::max()}) == "accepted");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
