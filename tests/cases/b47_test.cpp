// SPDX-License-Identifier: Apache-2.0
// B47: when ranks disagreed about the dtype, a broadcast failed for one type and hung for another.
#include <cstdint>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <support/gloo_fleet.hpp>
#include <weightcast/model/transformed_source.hpp>

namespace weightcast::test {
namespace {

std::vector<tensor_spec> const sixteen_bits{{"w", dtype::float16, {8}}};
std::vector<tensor_spec> const thirty_two_bits{{"w", dtype::float32, {8}}};

std::string heard(std::string const& message) {
    return unless(
        message.find(
            "refused by rank 1: tensor 'w' is announced as float16[8], held as float32[8]") !=
            std::string::npos,
        message);
}

template <class Fleet>
void check_refusal() {
    Fleet fleet;
    fleet.size = 3;
    test_model const model{cpu_device, sixteen_bits, 1};
    check_ranks(fleet.run(
                    [&](typename Fleet::trainer_type& trainer) {
                        auto source = model.source();
                        send_update(trainer, source, 1);
                        return heard(failure_of(trainer));
                    },
                    [&](typename Fleet::engine_type& engine, int rank) -> std::string {
                        // the last rank agrees with the sender: it hears of the others' refusal all the same
                        test_model held{cpu_device, rank == 2 ? sixteen_bits : thirty_two_bits, 7};
                        auto const before = held.values();
                        held.add_to(engine.target().main());
                        auto said = heard(message_of([&] { receive_update(engine); }));
                        if (!said.empty()) return said;
                        return first_difference(held, before);
                    }),
                "float16 into float32");
}

/// float16 to float32: what a sender may do instead.
struct widen {
    static std::vector<parameter> outputs(parameter const& input) {
        return {{input.name, dtype::float32, input.shape}};
    }
    static void apply(const_tensor_view<> const& from, parameter const& input, std::size_t,
                      tensor_view<> const& to, host_stream_ref stream) {
        auto const* const in = static_cast<std::uint16_t const*>(from.data());
        auto* const out = static_cast<std::uint32_t*>(to.data());
        auto const count = element_count(input.shape);
        runtime::enqueue(stream, [=]() noexcept {
            for (std::uint64_t i = 0; i < count; ++i) {  // normal numbers only
                std::uint32_t const sign = static_cast<std::uint32_t>(in[i] & 0x8000U) << 16U;
                std::uint32_t const exponent = ((in[i] >> 10U) & 0x1FU) + 112U;
                out[i] =
                    sign | (exponent << 23U) | (static_cast<std::uint32_t>(in[i] & 0x3FFU) << 13U);
            }
        });
    }
};

BOOST_AUTO_TEST_SUITE(b47)

BOOST_AUTO_TEST_CASE(b47_another_dtype_is_refused_in_preflight_with_both_types) {
    check_refusal<test_fleet>();
    check_refusal<gloo_fleet>();
}

BOOST_AUTO_TEST_CASE(b47_a_transform_of_the_sender_may_cast) {
    std::vector<std::uint16_t> const halves{0x3C00, 0xBC00, 0x4000, 0x3800,
                                            0x4248, 0x7BFF, 0x0400, 0xC500};
    std::vector<float> const expected{1.0F,      -1.0F,    2.0F,     0.5F,
                                      3.140625F, 65504.0F, 0x1p-14F, -5.0F};
    gloo_fleet const fleet{.size = 3, .settings = {.verify = true}};
    check_ranks(
        fleet.run(
            [&](gloo_fleet::trainer_type& trainer) {
                table_source<> inner;
                inner.add("w", const_tensor_view<>{halves.data(), dtype::float16, {8}});
                transformed_source<host_runtime, table_source<>, widen> source{inner, widen{}};
                send_update(trainer, source, 1);
                return failure_of(trainer);
            },
            [&](gloo_fleet::engine_type& engine, int) {
                std::vector<float> held(8);
                engine.target().main().add("w", tensor_view<>{held.data(), dtype::float32, {8}});
                receive_update(engine);
                return unless(held == expected, "another cast");
            }),
        "cast");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weightcast::test
