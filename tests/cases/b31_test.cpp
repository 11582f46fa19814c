// SPDX-License-Identifier: Apache-2.0
// B31: a receiver that threw between receive and acknowledge left the sender blocked for ever on every rank.
#include <boost/test/unit_test.hpp>

#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include <support/gloo_fleet.hpp>
#include <support/progress_hook.hpp>
#include <weightcast/session/rpc_worker.hpp>
#include <weightcast/session/weight_sender.hpp>

namespace weightcast::test {
namespace {

auto const specs = tensors_of_bytes({256, 256, 256, 256, 256});
transfer_settings const settings{.packing = {.chunk_bytes = 256, .direct_from = 1U << 20U}};

bool has(std::string const& text, std::string const& part) {
    return text.find(part) != std::string::npos;
}

/// An update by requests whose callback throws at the second bucket on rank 2.
template <class Worker>
std::string failed_update(Worker& worker, parameter_tables<> const& tables) {
    worker.start();
    worker.receive_next();
    auto const message = message_of([&] { static_cast<void>(worker.finish()); });
    if (!has(message, "refused by rank 2: the callback failed")) return "finish says: " + message;
    auto const status = worker.status();
    if (status.open || !has(status.failure, "the callback failed")) return "not failed";
    if (!has(message_of([&] { worker.receive_next(); }), "was rolled back")) return "not closed";
    if (!tables.mixed()) return "not mixed";
    return unless(!tables.version().is_set(), "a version");
}

template <class Ranks>
void run() {
    using C = typename Ranks::communicator;
    constexpr int size = 3;
    auto const factories = Ranks::factories(size, cpu_device);
    test_model const model{cpu_device, specs, 1};
    auto const expected = model.values();
    std::vector<std::function<std::string()>> bodies;
    bodies.push_back([&]() -> std::string {
        weight_sender sender{dense_trainer<C>{factories(0), settings, patient_limits()},
                             {place(0, size)}};
        auto source = model.source();
        auto const failed = sender.update(source);
        auto const& group = failed.groups.at(0);
        if (failed.ok() || !has(group.message, "refused by rank 2: the callback failed"))
            return "the sender hears: " + group.message;
        if (group.where != phase::vote || group.ranks.at(2) != rank_status::refused)
            return "another status";
        return unless(sender.update(source).ok(), "the group is not usable");
    });
    for (int rank = 1; rank < size; ++rank) {
        bodies.push_back([&, rank]() -> std::string {
            parameter_tables<> tables;
            test_model held{cpu_device, specs, 0};
            held.add_to(tables.main());
            bool broken = rank == 2;
            progress_hook const hook{[&](int bucket) {
                if (broken && bucket == 1) throw std::runtime_error{"the callback failed"};
            }};
            rpc_worker worker{
                hooked_engine_over<C>{factories(rank), tables, patient_limits(), hook}};
            worker.init(place(rank, size));
            if (auto said = failed_update(worker, tables); !said.empty()) return said;
            broken = false;
            worker.start();
            worker.receive_next();
            if (worker.finish().version.number != 2) return "another version";
            return first_difference(held, expected);
        });
    }
    check_ranks(run_threads(bodies), "the callback throws at bucket 2");
}

BOOST_AUTO_TEST_SUITE(b31)

BOOST_AUTO_TEST_CASE(b31_a_receiver_that_throws_in_the_payload_is_an_answer_to_the_sender) {
    run<gloo_ranks>();
    run<local_ranks>();
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weightcast::test
