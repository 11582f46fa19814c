// SPDX-License-Identifier: Apache-2.0
// B55: a 6-byte tensor before a 4-byte-aligned one gave an unaligned view, and the unpack crashed.
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <support/gloo_fleet.hpp>

namespace weightcast::test {
namespace {

std::vector<tensor_spec> const specs{{"a", dtype::float16, {3}}, {"b", dtype::float32, {2}},
                                     {"c", dtype::uint8, {1}},   {"d", dtype::float64, {1}},
                                     {"e", dtype::bool_, {3}},   {"f", dtype::complex64, {1}}};

BOOST_AUTO_TEST_SUITE(b55)

BOOST_AUTO_TEST_CASE(b55_members_of_odd_sizes_arrive_exactly) {
    for (auto const where : {cpu_device, host1}) {
        test_fleet const fleet{.size = 3, .where = where, .settings = {.verify = true}};
        check_ranks(fleet.exchange(specs, cpu_device), "odd sizes");
    }
    gloo_fleet const fleet{.size = 2, .settings = {.verify = true}};
    check_ranks(fleet.exchange(specs, cpu_device), "odd sizes over gloo");
}

BOOST_AUTO_TEST_CASE(b55_every_member_can_be_viewed_in_place) {
    std::vector<planned_tensor> planned;
    for (auto const& s : specs) {
        planned.push_back({.name = s.name,
                           .type = s.type,
                           .shape = s.shape,
                           .bytes = element_count(s.shape) * item_size(s.type)});
    }
    for (std::uint64_t const alignment : {8U, 64U, 4096U}) {
        packing_plan const plan{planned, {.chunk_bytes = 1U << 16U, .alignment = alignment}};
        BOOST_REQUIRE(plan.chunks().size() == 1U);
        for (auto const& m : plan.chunks()[0].members) {
            BOOST_TEST(m.offset % item_alignment(planned[m.tensor].type) == 0U);
            BOOST_TEST(m.offset % alignment == 0U);
        }
        BOOST_TEST(misaligned_members(plan, planned).empty());
    }
}

BOOST_AUTO_TEST_CASE(b55_destinations_of_any_alignment_are_written_exactly) {
    // the engine's own tensors may lie anywhere: here each one byte further than it should
    contents memory(200);
    std::vector<contents> expected;
    test_model const model{cpu_device, specs, 1};
    expected = model.values();
    test_fleet const fleet{};
    check_ranks(fleet.run(
                    [&](test_trainer& trainer) {
                        auto source = model.source();
                        send_update(trainer, source, 1);
                        return failure_of(trainer);
                    },
                    [&](test_engine& engine, int) -> std::string {
                        std::size_t at = 1;
                        std::vector<tensor_view<>> views;
                        for (auto const& s : specs) {
                            views.emplace_back(memory.data() + at, s.type, s.shape);
                            engine.target().main().add(s.name, views.back());
                            at += static_cast<std::size_t>(views.back().bytes()) | 1U;
                        }
                        receive_update(engine);
                        for (std::size_t i = 0; i < views.size(); ++i) {
                            auto const* const bytes =
                                static_cast<std::byte const*>(views[i].data());
                            if (contents{bytes, bytes + views[i].bytes()} != expected[i])
                                return specs[i].name + " is wrong";
                        }
                        return "";
                    }),
                "unaligned destinations");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weightcast::test
