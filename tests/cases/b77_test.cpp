// SPDX-License-Identifier: Apache-2.0
// B77: a failure in the middle left some layers new and some old, with the engine dead or serving a mixture. The law of
// faults (tests/laws/engine_fault_laws.hpp) walks every step; here the case as it was reported.
#include <boost/test/unit_test.hpp>

#include <cstddef>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include <support/gloo_fleet.hpp>
#include <support/progress_hook.hpp>
#include <support/test_source.hpp>
#include <weightcast/session/weight_sender.hpp>
#include <weightcast/session/weight_worker.hpp>

namespace weightcast::test {
namespace {

constexpr int tensors = 6;
constexpr int size = 3;
std::vector<tensor_spec> specs() {
    return tensors_of_bytes(std::vector<std::int64_t>(tensors, 512));
}
/// A chunk a tensor, so that what arrived before the failure is known.
transfer_settings const settings{.packing = {.chunk_bytes = 512, .direct_from = 1U << 30U}};

/// Fails in finish: before the vote, on this rank alone.
template <class C>
struct failing_in_finish : hooked_engine_over<C> {
    using hooked_engine_over<C>::hooked_engine_over;
    bool* fails = nullptr;
    void prepare() {
        if (*fails) throw std::runtime_error{"finish failed"};
        hooked_engine_over<C>::prepare();
    }
};

enum class where { at_the_source, at_a_receiver, in_finish };

/// Three updates, of which the second fails at tensor k. Over threads; groups are formed anew where they are over.
void run(where place_of_failure, int k) {
    using engine_type = failing_in_finish<local_communicator>;
    local_group const first{size};
    local_group const second{size};
    bool const keeps_group = place_of_failure == where::at_a_receiver;
    std::vector<std::function<std::string()>> bodies;
    bodies.push_back([&]() -> std::string {
        int generation = 0;
        weight_sender sender{test_trainer{
            [&](group_init const& i) { return (generation == 0 ? first : second).join(i.rank); },
            settings, patient_limits()}};
        sender.init({place(0, size)});
        test_model model{cpu_device, specs(), 1};
        recording_source source{model};
        static_cast<void>(sender.update(source, {.label = "first"}).or_throw());
        source.before = [&](std::size_t i) {
            if (place_of_failure == where::at_the_source && static_cast<int>(i) == k)
                throw std::runtime_error{"the source failed"};
        };
        model.refill(100);
        auto const message =
            message_of([&] { static_cast<void>(sender.update(source).or_throw()); });
        if (message.empty()) return "the sender heard nothing";
        if (sender.acknowledged().number != 1) return "a failed update is acknowledged";
        source.before = {};
        generation = 1;
        if (!keeps_group) sender.init({place(0, size)});
        model.refill(200);
        return message_of([&] { static_cast<void>(sender.update(source).or_throw()); });
    });
    for (int rank = 1; rank < size; ++rank) {
        bodies.push_back([&, rank]() -> std::string {
            int generation = 0;
            int updates = 0;
            bool fails = false;
            parameter_tables<> tables;
            test_model held{cpu_device, specs(), 0};
            held.add_to(tables.main());
            progress_hook const hook{[&](int step) {
                bool const mine = place_of_failure == where::at_a_receiver && rank == 2;
                if (mine && updates == 1 && step == k) throw std::runtime_error{"no more memory"};
            }};
            engine_type engine{[&](group_init const& i) {
                                   return (generation == 0 ? first : second).join(i.rank);
                               },
                               tables, patient_limits(), hook};
            engine.fails = &fails;
            weight_worker worker{std::move(engine), place(rank, size)};
            static_cast<void>(worker.serve_one());
            ++updates;
            fails = place_of_failure == where::in_finish && rank == 2;
            auto const message = message_of([&] { static_cast<void>(worker.serve_one()); });
            if (message.empty()) return "it passed";
            if (!tables.mixed()) return "not mixed: " + message;
            if (tables.version().number != 1 || to_string(tables.version()) != "first")
                return "another version: " + to_string(tables.version());
            ++updates;
            fails = false;
            generation = 1;
            if (!keeps_group) worker.init(place(rank, size));
            if (!tables.mixed()) return "a new group is no repair";
            auto const report = worker.serve_one();
            if (tables.mixed()) return "still mixed";
            if (report.version.number != 3) return "another version";
            test_model const expected{cpu_device, specs(), 200};
            return first_difference(held, expected.values());
        });
    }
    check_ranks(run_threads(bodies), "tensor " + std::to_string(k));
}

BOOST_AUTO_TEST_SUITE(b77)

BOOST_AUTO_TEST_CASE(b77_a_failure_at_any_tensor_of_a_receiver_is_mixed_and_repaired) {
    for (int k = 0; k < tensors; ++k) run(where::at_a_receiver, k);
}

BOOST_AUTO_TEST_CASE(b77_a_failure_at_any_tensor_of_the_source_is_mixed_and_repaired) {
    for (int k = 0; k < tensors; ++k) run(where::at_the_source, k);
}

BOOST_AUTO_TEST_CASE(b77_a_failure_in_finish_is_mixed_and_repaired) { run(where::in_finish, 0); }

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weightcast::test
