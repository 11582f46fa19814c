// SPDX-License-Identifier: Apache-2.0
// B58: the pack size was derived from each side's own memory, so two card types cut the stream at different places.
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <support/gloo_fleet.hpp>

namespace weightcast::test {
namespace {

auto const specs = tensors_of_bytes({10, 100, 128, 129, 64, 63, 300, 1});

template <class Fleet>
void check_sizes() {
    test_model const model{cpu_device, specs, 1};
    auto const expected = model.values();
    Fleet fleet;
    fleet.size = 3;
    fleet.settings.packing.direct_from = std::uint64_t{1} << 40U;
    check_ranks(fleet.run(
                    [&](typename Fleet::trainer_type& trainer) -> std::string {
                        for (std::uint64_t const limit :
                             {128U, 64U, 256U, 1024U}) {  // another one in every update
                            trainer.settings().packing.chunk_bytes = limit;
                            auto source = model.source();
                            send_update(trainer, source, limit);
                            if (auto failure = failure_of(trainer); !failure.empty())
                                return failure;
                        }
                        return "";
                    },
                    [&](typename Fleet::engine_type& engine, int) -> std::string {
                        test_model held{cpu_device, specs, 0};
                        held.add_to(engine.target().main());
                        for (int i = 0; i < 4; ++i) {
                            held.refill(100);
                            receive_update(engine);
                            auto wrong = first_difference(held, expected);
                            if (!wrong.empty()) return wrong;
                        }
                        return "";
                    }),
                "the sender's size");
}

BOOST_AUTO_TEST_SUITE(b58)

BOOST_AUTO_TEST_CASE(b58_the_senders_size_comes_with_the_metadata) {
    check_sizes<test_fleet>();
    check_sizes<gloo_fleet>();
}

BOOST_AUTO_TEST_CASE(b58_a_receiver_that_cannot_hold_it_refuses_before_bytes_move) {
    test_model const model{cpu_device, specs, 1};
    local_group const group{3};
    auto const heard = [](std::string const& message) {
        return unless(
            message.find(
                "refused by rank 2: a ring of 2 chunks of 128 bytes is over this rank's limit of 128") !=
                std::string::npos,
            message);
    };
    auto const receives = [&](int rank) {
        parameter_tables<> tables;
        test_model held{cpu_device, specs, 0};
        auto const before = held.values();
        held.add_to(tables.main());
        auto limits = patient_limits();
        if (rank == 2) limits.ring_bytes = 2 * 64;
        test_engine engine{joins(group), tables, limits};
        engine.init(place(rank, 3));
        auto const message = message_of([&] { receive_update(engine); });
        return heard(message) + first_difference(held, before);
    };
    check_ranks(run_threads({[&] {
                                 test_trainer trainer{joins(group),
                                                      {.packing = {.chunk_bytes = 128}},
                                                      patient_limits()};
                                 trainer.init({place(0, 3)});
                                 auto source = model.source();
                                 send_update(trainer, source, 1);
                                 return heard(failure_of(trainer));
                             },
                             [&] { return receives(1); }, [&] { return receives(2); }}),
                "a smaller receiver");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weightcast::test
