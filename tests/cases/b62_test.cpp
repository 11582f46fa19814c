// SPDX-License-Identifier: Apache-2.0
// B62: packing ran on a side stream without waiting for the stream that produced the weights, so old data was
// packed.
#include <chrono>
#include <optional>
#include <string>
#include <thread>

#include <boost/test/unit_test.hpp>

#include <support/test_model.hpp>
#include <weightcast/align/broadcast_aligned.hpp>

namespace weightcast::test {
namespace {

constexpr std::size_t bytes = 8000;

/// A producer with a long delay on a stream of that device writes `memory`; opens after a while.
class slow_producer {
  public:
    slow_producer(placed_bytes& memory, contents const& fresh)
        : stream_{memory.where()}, blocker_{std::in_place, stream_.ref()} {
        runtime::copy(memory.data(), memory.where(), fresh.data(), cpu_device, fresh.size(),
                      stream_);
        later_ = std::jthread{[this] {
            std::this_thread::sleep_for(std::chrono::milliseconds{30});
            blocker_->open();
        }};
    }
    host_stream_ref stream() const { return stream_.ref(); }

  private:
    weightcast::stream<runtime> stream_;
    std::optional<stream_blocker<runtime>> blocker_;
    std::jthread later_;
};

BOOST_AUTO_TEST_SUITE(b62)

BOOST_AUTO_TEST_CASE(b62_new_values_are_sent_with_the_producers_stream_and_without) {
    for (bool const name_the_stream : {true, false}) {
        for (auto const from : {host0, host1}) {
            for (bool const strided : {false, true}) {
                auto const said = run_ranks(2, host1, [&](local_communicator& c) -> std::string {
                    auto const shape = strided ? extents{20, 40} : extents{800};
                    auto const strides = strided ? extents{2, 45} : extents{1};
                    for (std::uint64_t round = 0; round < 5; ++round) {
                        auto const fresh = pattern(bytes, 100 + round);
                        placed_bytes memory{from, contents(bytes)};
                        if (c.rank() == 1) {
                            placed_bytes target{host1, contents(800 * 4)};
                            auto view = target.view();
                            receive_into(c, view, 0, patiently());
                            memory.write(fresh);
                            if (target.read() !=
                                gathered(memory.view(dtype::float32, shape, strides))) {
                                return "old values in round " + std::to_string(round);
                            }
                            continue;
                        }
                        slow_producer const producer{memory, fresh};
                        auto const tensor = memory.view(dtype::float32, shape, strides);
                        if (name_the_stream) {
                            broadcast_aligned(c, tensor, produced_on{producer.stream()},
                                              patiently())
                                .wait(soon());
                        } else {
                            broadcast_aligned(c, tensor, produced_anywhere{soon()}, patiently())
                                .wait(soon());
                        }
                    }
                    return "";
                });
                check_ranks(said, std::string{name_the_stream ? "with" : "without"} +
                                      " the stream, from " + to_string(from));
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(b62_an_update_packs_what_the_producers_leave) {
    auto const specs = tensors_of_bytes({8000, 500});
    for (auto const to : {cpu_device, host1}) {
        auto const fresh = pattern(8000, 7);
        test_fleet const fleet{.where = to, .settings = {.packing = {.chunk_bytes = 1024}}};
        check_ranks(fleet.run(
                        [&](test_trainer& trainer) {
                            test_model model{host0, specs, 1};
                            slow_producer const producer{model.memory(0), fresh};
                            auto source = model.source();
                            send_update(trainer, source, 1);
                            return failure_of(trainer);
                        },
                        [&](test_engine& engine, int) {
                            test_model held{to, specs, 0};
                            held.add_to(engine.target().main());
                            receive_update(engine);
                            return unless(held.values()[0] == fresh, "old values were packed");
                        }),
                    "to " + to_string(to));
    }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weightcast::test
