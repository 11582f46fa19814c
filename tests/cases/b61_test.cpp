// SPDX-License-Identifier: Apache-2.0
// B61: "complete" meant only enqueued; buffers were used again, or handed to a consumer on another stream, before
// the data was there.
#include <chrono>
#include <optional>
#include <string>

#include <boost/test/unit_test.hpp>

#include <support/test_model.hpp>
#include <weightcast/align/broadcast_aligned.hpp>

namespace weightcast::test {
namespace {

constexpr std::size_t bytes = 20'000;
int rounds() { return is_sanitized() ? 30 : 100; }

BOOST_AUTO_TEST_SUITE(b61)

BOOST_AUTO_TEST_CASE(b61_a_receiver_copies_on_its_own_stream_and_a_sender_frees_after_wait) {
    settings_scope const strict{
        {.poison_freed = true, .max_delay = std::chrono::microseconds{200}, .delay_seed = 61}};
    for (auto const from : {host1, host0}) {
        auto const said = run_ranks(2, host1, [&](local_communicator& c) -> std::string {
            weightcast::stream<runtime> const consumer{host1};
            for (int round = 0; round < rounds(); ++round) {
                auto const expected = pattern(bytes, static_cast<std::uint64_t>(round));
                if (c.rank() == 0) {
                    std::optional<placed_bytes> source{std::in_place, from, expected};
                    auto sent = broadcast_aligned(c, source->view(), produced_anywhere{soon()},
                                                  patiently());
                    sent.wait(soon());
                    source.reset();  // freed, poisoned, and the next round's buffer takes its place
                    continue;
                }
                placed_bytes target{host1, contents(bytes)};
                auto view = target.view();
                receive_into(c, view, 0, patiently());
                contents copy(bytes);
                runtime::copy(copy.data(), cpu_device, target.data(), host1, bytes, consumer);
                settle(consumer);
                if (copy != expected) return "round " + std::to_string(round) + " is wrong";
            }
            return "";
        });
        check_ranks(said, "100 rounds from " + to_string(from));
    }
}

BOOST_AUTO_TEST_CASE(b61_wait_returns_only_when_every_receiver_has_the_bytes) {
    // the receiver comes late: until then nothing is complete, whatever was enqueued
    auto const said = run_ranks(2, host1, [&](local_communicator& c) -> std::string {
        if (c.rank() == 1) {
            std::this_thread::sleep_for(std::chrono::milliseconds{100});
            placed_bytes target{host1, contents(bytes)};
            auto view = target.view();
            receive_into(c, view, 0, patiently());
            return "";
        }
        placed_bytes const source{host1, bytes, 1};
        auto const began = std::chrono::steady_clock::now();
        auto sent = broadcast_aligned(c, source.view(), produced_anywhere{soon()}, patiently());
        if (sent.ready()) return "complete before anybody received";
        sent.wait(soon());
        return unless(std::chrono::steady_clock::now() - began > std::chrono::milliseconds{50},
                      "the time does not cover the transfer");
    });
    check_ranks(said, "wait");
}

BOOST_AUTO_TEST_CASE(b61_an_update_is_over_when_its_bytes_are_there) {
    settings_scope const delayed{{.max_delay = std::chrono::microseconds{200}, .delay_seed = 62}};
    auto const specs = tensors_of_bytes({300, 9000, 500, 4000});
    test_fleet const fleet{.where = host1,
                           .settings = {.packing = {.chunk_bytes = 1024, .direct_from = 5000}}};
    check_ranks(fleet.run(
                    [&](test_trainer& trainer) -> std::string {
                        for (int round = 0; round < 20; ++round) {
                            test_model const model{host0, specs,
                                                   100 + static_cast<std::uint64_t>(round)};
                            auto source = model.source();
                            send_update(trainer, source, static_cast<std::uint64_t>(round) + 1);
                            if (auto failure = failure_of(trainer); !failure.empty())
                                return failure;
                        }  // the sources go as soon as the update is over
                        return "";
                    },
                    [&](test_engine& engine, int) -> std::string {
                        test_model held{host1, specs, 0};
                        held.add_to(engine.target().main());
                        for (int round = 0; round < 20; ++round) {
                            test_model const expected{cpu_device, specs,
                                                      100 + static_cast<std::uint64_t>(round)};
                            receive_update(engine);
                            auto wrong = first_difference(held, expected.values());
                            if (!wrong.empty())
                                return "round " + std::to_string(round) + ": " + wrong;
                        }
                        return "";
                    }),
                "updates");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weightcast::test
