// SPDX-License-Identifier: Apache-2.0
// B46: 8-bit float kinds were refused by the transport, and Gloo has no bf16, although bytes are all it takes.
#include <boost/test/unit_test.hpp>

#include <cstring>
#include <string>
#include <vector>

#include <comm/gloo_makers.hpp>
#include <laws/communicator_laws.hpp>

namespace {

using namespace weightcast;
using namespace weightcast::test;

BOOST_AUTO_TEST_SUITE(b46)

/// Every bit pattern of a type of one or two bytes, NaN payloads included.
contents all_patterns(std::size_t item_bytes) {
    contents bytes;
    std::size_t const count = item_bytes == 1 ? 256 : 65536;
    for (std::size_t i = 0; i < count; ++i) {
        for (std::size_t b = 0; b < item_bytes; ++b)
            bytes.push_back(static_cast<std::byte>(i >> (8 * b)));
    }
    return bytes;
}

BOOST_AUTO_TEST_CASE(b46_every_bit_pattern_crosses_unchanged) {
    gloo_thread_maker maker;
    for (int const size : {2, 3}) {
        auto const outcomes = maker.run({.size = size}, [](gloo_communicator& c) -> std::string {
            for (auto const type :
                 {dtype::float8_e4m3fn, dtype::float8_e5m2, dtype::float8_e8m0fnu,
                  dtype::float4_e2m1fn_x2, dtype::bfloat16, dtype::float16, dtype::bool_}) {
                auto const expected = all_patterns(item_size(type));
                rank_memory<gloo_communicator> memory{c, expected.size(), 1};
                if (c.rank() == 0) memory.write(expected);
                {
                    alignment_scope<gloo_communicator> scope{c};
                    auto view = memory.view(type);
                    if (c.rank() == 0) {
                        c.broadcast_from(scope.align(view, already_ready{}), patiently());
                    } else {
                        c.broadcast_into(scope.require(view), 0, patiently());
                    }
                }
                finish(c, patiently());
                if (memory.read() != expected)
                    return "bits of " + std::string{to_string(type)} + " changed";
            }
            return "";
        });
        check_ranks(outcomes, "bit patterns");
    }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
