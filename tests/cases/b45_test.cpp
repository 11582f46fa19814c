// SPDX-License-Identifier: Apache-2.0
// B45: one bool buffer (and int16, wider unsigned, complex) made the whole sync fail, because the transport
// mapped dtypes to a short list.
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <support/gloo_fleet.hpp>

namespace weightcast::test {
namespace {

/// Three odd elements of each.
std::vector<tensor_spec> all_dtypes() {
    std::vector<tensor_spec> specs;
    for (auto const type :
         {dtype::bool_, dtype::int8, dtype::uint8, dtype::int16, dtype::uint16, dtype::int32,
          dtype::uint32, dtype::int64, dtype::uint64, dtype::float16, dtype::bfloat16,
          dtype::float32, dtype::float64, dtype::complex64}) {
        specs.push_back({std::string{to_string(type)}, type, {3}});
    }
    return specs;
}

template <class Fleet>
void check_dtypes() {
    for (std::uint64_t const direct_from : {std::uint64_t{1} << 40U, std::uint64_t{1}}) {
        Fleet fleet;
        fleet.size = 3;
        fleet.settings.packing.direct_from = direct_from;
        fleet.settings.packing.chunk_bytes = 4096;
        check_ranks(fleet.exchange(all_dtypes(), cpu_device), "all dtypes");
    }
}

BOOST_AUTO_TEST_SUITE(b45)

BOOST_AUTO_TEST_CASE(b45_every_dtype_is_exact_dense_and_packed) {
    check_dtypes<test_fleet>();
    check_dtypes<gloo_fleet>();
}

BOOST_AUTO_TEST_CASE(b45_a_bool_stays_0_or_1) {
    contents sent(1001);
    for (std::size_t i = 0; i < sent.size(); i += 3) sent[i] = std::byte{1};
    gloo_fleet const fleet{};
    check_ranks(fleet.run(
                    [&](gloo_fleet::trainer_type& trainer) {
                        table_source<> source;
                        source.add("mask",
                                   const_tensor_view<>{sent.data(), dtype::bool_, {7, 11, 13}});
                        send_update(trainer, source, 1);
                        return failure_of(trainer);
                    },
                    [&](gloo_fleet::engine_type& engine, int) {
                        contents held(1001, std::byte{0xFF});
                        engine.target().main().add(
                            "mask", tensor_view<>{held.data(), dtype::bool_, {7, 11, 13}});
                        receive_update(engine);
                        return unless(held == sent, "other bytes than 0 and 1");
                    }),
                "bool");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weightcast::test
