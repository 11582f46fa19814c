// SPDX-License-Identifier: Apache-2.0
// B49: zero-element tensors, or a rank with nothing to send, crashed bucket building or made one rank skip a
// collective that the others joined.
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <support/gloo_fleet.hpp>
#include <weightcast/align/broadcast_aligned.hpp>

namespace weightcast::test {
namespace {

std::vector<tensor_spec> const specs{
    {"a", dtype::float32, {5}},   {"none", dtype::float32, {0}},
    {"b", dtype::uint8, {3}},     {"no_rows", dtype::bfloat16, {0, 4}},
    {"c", dtype::int64, {2, 2}},  {"no_columns", dtype::uint8, {3, 0, 2}},
    {"d", dtype::float16, {1000}}};

template <class Fleet>
void check_empty_tensors() {
    for (packing_options const& packing :
         {packing_options{.chunk_bytes = 64, .direct_from = 500},
          packing_options{.chunk_bytes = 64, .direct_from = 0},
          packing_options{.chunk_bytes = 64, .direct_from = 1U << 30U}, vllm_packing(64)}) {
        Fleet fleet;
        fleet.size = 3;
        fleet.settings.packing = packing;
        fleet.settings.verify = true;
        check_ranks(fleet.exchange(specs, cpu_device), "empty tensors between others");
    }
}

BOOST_AUTO_TEST_SUITE(b49)

BOOST_AUTO_TEST_CASE(b49_tensors_without_elements_travel_between_others) {
    check_empty_tensors<test_fleet>();
    check_empty_tensors<gloo_fleet>();
}

BOOST_AUTO_TEST_CASE(b49_names_and_shapes_of_empty_tensors_are_delivered) {
    test_model const model{cpu_device, specs, 1};
    gloo_fleet const fleet{};
    check_ranks(
        fleet.run(
            [&](gloo_fleet::trainer_type& trainer) {
                auto source = model.source();
                send_update(trainer, source, 1);
                return failure_of(trainer);
            },
            [&](gloo_fleet::engine_type& engine, int) -> std::string {
                test_model held{cpu_device, specs, 0};
                held.add_to(engine.target().main());
                receive_update(engine);
                auto const& remembered = engine.target().remembered();
                for (std::size_t i = 0; i < specs.size(); ++i) {
                    if (remembered[i] != parameter{specs[i].name, specs[i].type, specs[i].shape}) {
                        return specs[i].name + " is not as it was sent";
                    }
                }
                return "";
            }),
        "names and shapes");
}

BOOST_AUTO_TEST_CASE(b49_native_plans_have_no_call_for_what_has_no_bytes) {
    std::vector<planned_tensor> planned;
    for (auto const& s : specs)
        planned.push_back({.name = s.name, .type = s.type, .shape = s.shape, .bytes = 0});
    for (auto& t : planned) t.bytes = element_count(t.shape) * item_size(t.type);
    for (std::uint64_t const direct_from : {0U, 1U << 30U}) {
        packing_plan const plan{planned, {.chunk_bytes = 64, .direct_from = direct_from}};
        for (auto const& chunk : plan.chunks()) {
            BOOST_TEST(chunk.bytes > 0U);
            for (auto const& member : chunk.members) BOOST_TEST(member.bytes > 0U);
        }
        for (auto const& whole : plan.direct()) BOOST_TEST(planned[whole.tensor].bytes > 0U);
    }
}

BOOST_AUTO_TEST_CASE(b49_a_trainer_with_nothing_joins_every_call) {
    // ranks 0 to 2 send, rank 1 has nothing; then nobody has anything: all make the same calls
    local_group const group{4};
    std::vector<int> const trainers{0, 1, 2};
    test_model const first{cpu_device, {{"first", dtype::float32, {500}}}, 1};
    test_model const third{cpu_device, {{"third", dtype::float32, {77}}}, 2};
    auto const trains = [&](int rank, test_model const* model) -> std::string {
        test_trainer trainer{joins(group), {.packing = {.chunk_bytes = 256}}, patient_limits()};
        trainer.init({place(rank, 4, trainers)});
        auto source = model == nullptr ? table_source<>{} : model->source();
        send_update(trainer, source, 1);
        if (auto failure = failure_of(trainer); !failure.empty()) return failure;
        table_source<> nothing;
        send_update(trainer, nothing, 2);
        return failure_of(trainer);
    };
    check_ranks(
        run_threads({[&] { return trains(0, &first); }, [&] { return trains(1, nullptr); },
                     [&] { return trains(2, &third); },
                     [&]() -> std::string {
                         parameter_tables<> tables;
                         test_model held_first{cpu_device, {{"first", dtype::float32, {500}}}, 0};
                         test_model held_third{cpu_device, {{"third", dtype::float32, {77}}}, 0};
                         held_first.add_to(tables.main());
                         held_third.add_to(tables.main());
                         test_engine engine{joins(group), tables, patient_limits()};
                         engine.init(place(3, 4, trainers));
                         receive_update(engine);
                         auto wrong = first_difference(held_first, first.values()) +
                                      first_difference(held_third, third.values());
                         if (!wrong.empty()) return wrong;
                         receive_update(engine);
                         return unless(tables.version().number == 1,
                                       "an empty update has a version");
                     }}),
        "rank 1 has nothing");
}

BOOST_AUTO_TEST_CASE(b49_a_broadcast_of_nothing_is_an_operation_like_any_other) {
    check_ranks(
        run_ranks(
            3, host1,
            [](local_communicator& c) -> std::string {
                tensor_view<> empty{nullptr, dtype::float32, {3, 0}, host1};
                for (int i = 0; i < 3; ++i) {
                    if (c.rank() == 0) {
                        broadcast_aligned(c, empty, already_ready{}, patiently()).wait(soon());
                    } else {
                        receive_into(c, empty, 0, patiently());
                    }
                }
                return "";
            }),
        "count 0");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weightcast::test
