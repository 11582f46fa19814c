// SPDX-License-Identifier: Apache-2.0
// Dense updates that succeed: every dtype, shape, layout, device and cut ends in the same bytes.
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <support/test_model.hpp>

namespace weightcast::test {
namespace {

constexpr std::uint64_t always = 1;                       // direct from the first byte on
constexpr std::uint64_t never = std::uint64_t{1} << 60U;  // everything is packed

packing_options cut_at(std::uint64_t chunk, std::uint64_t direct_from = never,
                       std::size_t ring = 2) {
    return {.chunk_bytes = chunk, .direct_from = direct_from, .ring = ring};
}

std::vector<tensor_spec> every_dtype(extents const& shape) {
    std::vector<tensor_spec> all;
    for (std::size_t t = 0; t < dtype_count; ++t) {
        auto const type = static_cast<dtype>(t);
        all.push_back({"of." + std::string{to_string(type)}, type, shape});
    }
    return all;
}

BOOST_AUTO_TEST_SUITE(dense_exchange)

BOOST_AUTO_TEST_CASE(every_dtype_packed_and_direct) {
    for (auto const direct_from : {never, always}) {
        for (auto const& shape : {extents{3}, extents{5, 7}, extents{}}) {
            test_fleet const fleet{.size = 3, .settings = {.packing = cut_at(4096, direct_from)}};
            check_ranks(fleet.exchange(every_dtype(shape), cpu_device),
                        "dtypes of shape " + to_string(shape) + ", direct from " +
                            std::to_string(direct_from));
        }
    }
}

BOOST_AUTO_TEST_CASE(tensors_without_bytes_between_others) {
    std::vector<tensor_spec> const specs{
        {"a", dtype::float32, {0}},     {"b", dtype::bfloat16, {7}},
        {"c", dtype::float16, {0, 4}},  {"d", dtype::int64, {}},
        {"e", dtype::uint8, {3, 0, 2}}, {"f", dtype::float64, {100}},
        {"g", dtype::complex64, {2, 0}}};
    for (auto const direct_from : {never, always}) {
        for (bool const verify : {false, true}) {
            test_fleet const fleet{
                .size = 3, .settings = {.packing = cut_at(256, direct_from), .verify = verify}};
            check_ranks(fleet.exchange(specs, cpu_device), "tensors without bytes");
        }
    }
}

BOOST_AUTO_TEST_CASE(b42_only_tensors_without_bytes) {
    std::vector<tensor_spec> const specs{{"a", dtype::float32, {0}}, {"b", dtype::float16, {0, 4}}};
    test_fleet const fleet{.settings = {.verify = true}};
    // b42: nothing moves, so nothing is updated, and no version is published
    check_ranks(fleet.run(
                    [&](test_trainer& trainer) {
                        test_model const model{cpu_device, specs, 1};
                        auto source = model.source();
                        send_update(trainer, source, 1);
                        if (trainer.acknowledged().is_set()) return std::string{"acknowledged"};
                        return failure_of(trainer);
                    },
                    [&](test_engine& engine, int) {
                        test_model held{cpu_device, specs, 0};
                        held.add_to(engine.target().main());
                        receive_update(engine);
                        return unless(!engine.target().version().is_set(), "a version of nothing");
                    }),
                "nothing but empty tensors");
}

BOOST_AUTO_TEST_CASE(tensors_around_the_size_of_a_chunk) {
    auto const specs = tensors_of_bytes({10, 255, 256, 257, 1000, 1, 512, 64, 3000, 2});
    for (auto const ring : {1U, 2U, 3U, 8U}) {
        for (auto const direct_from : {never, std::uint64_t{256}, std::uint64_t{257}, always}) {
            test_fleet const fleet{.settings = {.packing = cut_at(256, direct_from, ring)}};
            check_ranks(
                fleet.exchange(specs, cpu_device),
                "ring " + std::to_string(ring) + ", direct from " + std::to_string(direct_from));
        }
    }
}

BOOST_AUTO_TEST_CASE(every_pair_of_devices) {
    auto const specs = tensors_of_bytes({10, 5000, 64, 300, 1});
    for (auto const from : {cpu_device, host0, host1}) {
        for (auto const to : {cpu_device, host0, host1}) {
            for (auto const direct_from : {never, std::uint64_t{200}}) {
                test_fleet const fleet{
                    .where = to, .settings = {.packing = cut_at(512, direct_from), .verify = true}};
                check_ranks(fleet.exchange(specs, from), to_string(from) + " to " + to_string(to));
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(strided_sources_and_strided_destinations) {
    std::vector<tensor_spec> const dense{{"a", dtype::float32, {40, 30}},
                                         {"b", dtype::int16, {10, 3}},
                                         {"c", dtype::float64, {2, 3, 4, 2}},
                                         {"d", dtype::uint8, {500}}};
    std::vector<tensor_spec> const strided{{"a", dtype::float32, {40, 30}, {1, 40}},
                                           {"b", dtype::int16, {10, 3}, {17, 2}},
                                           {"c", dtype::float64, {2, 3, 4, 2}, {100, 30, 7, 3}},
                                           {"d", dtype::uint8, {500}}};
    for (auto const where : {cpu_device, host1}) {
        for (auto const direct_from : {never, always}) {
            test_fleet const fleet{
                .size = 3,
                .where = where,
                .settings = {.packing = cut_at(1024, direct_from), .verify = true}};
            check_ranks(fleet.exchange(strided, where, dense), "strided source");
            check_ranks(fleet.exchange(dense, where, strided), "strided destination");
            check_ranks(fleet.exchange(strided, where, strided), "both strided");
        }
    }
}

BOOST_AUTO_TEST_CASE(one_receiver_strided_the_other_not) {
    std::vector<tensor_spec> const dense{{"a", dtype::float32, {40, 30}},
                                         {"b", dtype::float32, {900}}};
    std::vector<tensor_spec> const strided{{"a", dtype::float32, {40, 30}, {1, 40}},
                                           {"b", dtype::float32, {900}}};
    test_model const sent{cpu_device, dense, 7};
    auto const expected = sent.values();
    test_fleet const fleet{.size = 3, .settings = {.packing = cut_at(1024, always)}};
    check_ranks(fleet.run(
                    [&](test_trainer& trainer) {
                        auto source = sent.source();
                        send_update(trainer, source, 1);
                        return failure_of(trainer);
                    },
                    [&](test_engine& engine, int rank) {
                        test_model held{cpu_device, rank == 1 ? strided : dense, 0};
                        held.add_to(engine.target().main());
                        receive_update(engine);
                        return first_difference(held, expected);
                    }),
                "one receiver is strided");
}

BOOST_AUTO_TEST_CASE(an_update_of_nothing) {
    test_fleet const fleet{.size = 3, .settings = {.verify = true}};
    check_ranks(fleet.run(
                    [&](test_trainer& trainer) {
                        table_source<> source;
                        send_update(trainer, source, 1);
                        send_update(trainer, source, 2);
                        if (trainer.acknowledged().is_set())
                            return std::string{"nothing was acknowledged as something"};
                        return failure_of(trainer);
                    },
                    [&](test_engine& engine, int) {
                        test_model held{cpu_device, tensors_of_bytes({100}), 0};
                        held.add_to(engine.target().main());
                        receive_update(engine);
                        receive_update(engine);
                        return unless(!engine.target().version().is_set(),
                                      "a version without an update");
                    }),
                "an update of nothing");
}

BOOST_AUTO_TEST_CASE(some_of_a_tables_parameters) {
    test_model const sent{cpu_device, tensors_of_bytes({100, 200}), 7};
    auto const expected = sent.values();
    test_fleet const fleet{.settings = {.coverage = update_coverage::partial}};
    check_ranks(fleet.run(
                    [&](test_trainer& trainer) {
                        auto source = sent.source();
                        send_update(trainer, source, 1);
                        return failure_of(trainer);
                    },
                    [&](test_engine& engine, int) -> std::string {
                        test_model held{cpu_device, tensors_of_bytes({100, 200, 300}), 0};
                        held.add_to(engine.target().main());
                        auto const update = engine.next();
                        engine.start(update.target());
                        engine.receive(update);
                        engine.prepare();
                        auto const& announced = update.announced.parameters;
                        auto const missing = engine.target().not_covered(
                            target_id::main(), announced.data(), announced.size());
                        engine.commit();
                        if (missing != std::vector<std::string>{"t2"}) return "another coverage";
                        return first_difference(held, expected);
                    }),
                "some parameters");
}

BOOST_AUTO_TEST_CASE(every_target_has_its_own_table_and_version) {
    std::vector<target_id> const targets{target_id::main(), target_id::draft(),
                                         target_id::adapter("x"), target_id::adapter("y")};
    std::vector<std::unique_ptr<test_model>> models;
    for (std::size_t i = 0; i < targets.size(); ++i) {
        models.push_back(
            std::make_unique<test_model>(cpu_device, tensors_of_bytes({100, 50}), 100 * (i + 1)));
    }
    test_fleet const fleet{.size = 3};
    check_ranks(fleet.run(
                    [&](test_trainer& trainer) {
                        for (std::size_t i = 0; i < targets.size(); ++i) {
                            auto source = models[i]->source();
                            send_update(trainer, source, i + 10, targets[i]);
                        }
                        return failure_of(trainer);
                    },
                    [&](test_engine& engine, int) -> std::string {
                        std::vector<std::unique_ptr<test_model>> held;
                        for (auto const& target : targets) {
                            held.push_back(std::make_unique<test_model>(
                                cpu_device, tensors_of_bytes({100, 50}), 0));
                            held.back()->add_to(engine.target().table(target));
                        }
                        for (std::size_t i = 0; i < targets.size(); ++i) {
                            receive_update(engine);
                            for (std::size_t k = 0; k < targets.size(); ++k) {
                                auto const number = engine.target().version(targets[k]).number;
                                if (number != (k <= i ? k + 10 : 0))
                                    return "another target's version changed";
                                if (k > i) continue;
                                auto wrong = first_difference(*held[k], models[k]->values());
                                if (!wrong.empty()) return wrong;
                            }
                            if (engine.target().remembered(targets[i]).size() != 2)
                                return "metadata is not remembered";
                        }
                        return "";
                    }),
                "targets");
}

BOOST_AUTO_TEST_CASE(random_models_with_random_delays) {
    for (std::uint32_t const seed : {1U, 2U, 3U, 4U}) {
        std::mt19937 random{seed};
        auto const below = [&](std::uint32_t bound) {
            return static_cast<std::int64_t>(random() % bound);
        };
        std::vector<tensor_spec> specs;
        for (int i = 0; i < 40; ++i) {
            tensor_spec one{
                "t" + std::to_string(i), static_cast<dtype>(below(dtype_count)), {}, {}};
            for (auto rank = below(4); rank > 0; --rank) one.shape.push_back(below(9));
            if (below(5) == 0) one.shape = {below(3000)};
            specs.push_back(one);
        }
        settings_scope const delayed{
            {.max_delay = std::chrono::microseconds{50}, .delay_seed = seed}};
        test_fleet const fleet{
            .size = 3,
            .where = seed % 2 == 0 ? host1 : cpu_device,
            .settings = {.packing = cut_at(512, 1500, 1 + seed % 3), .verify = true}};
        check_ranks(fleet.exchange(specs, seed % 4 < 2 ? cpu_device : host1),
                    "seed " + std::to_string(seed));
    }
}

BOOST_AUTO_TEST_CASE(the_vllm_layout_moves_the_same_bytes) {
    auto const specs = tensors_of_bytes({10, 0, 255, 256, 1000, 3});
    test_fleet const fleet{.size = 3, .settings = {.packing = vllm_packing(256)}};
    check_ranks(fleet.exchange(specs, cpu_device), "vllm layout");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weightcast::test
