// SPDX-License-Identifier: Apache-2.0
// B01: tensors on another local GPU than the sending communicator killed every sync; pool threads had another
// current device.
#include <array>
#include <string>
#include <thread>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <support/test_model.hpp>
#include <weightcast/align/broadcast_aligned.hpp>

namespace weightcast::test {
namespace {

using named = named_tensor<tensor_view<>>;

BOOST_AUTO_TEST_SUITE(b01)

BOOST_AUTO_TEST_CASE(b01_a_list_of_three_devices_is_sent_from_a_thread_on_device_0) {
    auto const new_b = pattern(5000, 4);
    placed_bytes const a{host1, 5000, 1};
    placed_bytes const b{host0, 5000, 2};
    contents const c = pattern(5000, 3);
    // The receiver's, made before anything is counted.
    std::array<placed_bytes, 3> const targets{placed_bytes{host1, contents(5000)},
                                              placed_bytes{host1, contents(5000)},
                                              placed_bytes{host1, contents(5000)}};
    auto const said = run_ranks(2, host1, [&](local_communicator& group) -> std::string {
        if (group.rank() == 0) {
            if (runtime::current_device() != 0) return "the thread is not on device 0";
            // device 0 still works on b when the call is made
            stream_blocker<runtime> blocker{b.stream()};
            runtime::copy(b.data(), host0, new_b.data(), cpu_device, 5000, b.stream());
            std::jthread const later{[&] {
                std::this_thread::sleep_for(std::chrono::milliseconds{30});
                blocker.open();
            }};
            {
                alignment_scope<local_communicator> scope{group};
                auto const proof = scope.align(a.view(), already_ready{});
                if (proof.data() != a.data()) return "a was copied";
            }
            auto const active = runtime::memory(host1).active;
            std::vector<named> const list{
                {"a", a.view()},
                {"b", b.view()},
                {"c", tensor_view<>{const_cast<std::byte*>(c.data()), dtype::uint8, {5000}}}};
            auto const waits = runtime::device_wait_count(0);
            broadcast_aligned(group, list, produced_anywhere{soon()}, patiently()).wait(soon());
            if (runtime::device_wait_count(0) != waits + 1)
                return "device 0 was not waited for, or twice";
            if (runtime::memory(host1).active != active) return "staging is left";
            return unless(runtime::current_device() == 0, "the caller's device changed");
        }
        std::array const expected{a.read(), new_b, c};
        for (std::size_t i = 0; i < targets.size(); ++i) {
            auto view = targets[i].view();
            receive_into(group, view, 0, patiently());
            if (targets[i].read() != expected[i]) return "other bytes";
        }
        return "";
    });
    check_ranks(said, "three devices");
}

BOOST_AUTO_TEST_CASE(b01_a_pool_thread_sends_the_whole_model) {
    // the same through the engines: a model on device 0, the group on device 1, a thread on device 2
    auto const specs = tensors_of_bytes({100, 5000, 300});
    test_model const model{host0, specs, 1};
    auto const expected = model.values();
    test_fleet const fleet{.size = 3,
                           .where = host1,
                           .settings = {.packing = {.chunk_bytes = 512, .direct_from = 1000}}};
    check_ranks(fleet.run(
                    [&](test_trainer& trainer) -> std::string {
                        runtime::set_current_device(2);
                        auto source = model.source();
                        send_update(trainer, source, 1);
                        if (runtime::current_device() != 2) return "the caller's device changed";
                        return failure_of(trainer);
                    },
                    [&](test_engine& engine, int) -> std::string {
                        runtime::set_current_device(3);
                        test_model held{host1, specs, 0};
                        held.add_to(engine.target().main());
                        receive_update(engine);
                        if (runtime::current_device() != 3) return "the receiver's device changed";
                        return first_difference(held, expected);
                    }),
                "pool thread");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weightcast::test
