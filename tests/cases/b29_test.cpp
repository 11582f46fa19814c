// SPDX-License-Identifier: Apache-2.0
// B29: receivers rejected an update while the trainer was inside its broadcast already, which blocked for ever. Here over
// Gloo, with what moved; the law of refusals over threads is tests/laws/engine_laws.hpp.
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <support/gloo_fleet.hpp>
#include <support/test_source.hpp>
#include <weightcast/session/weight_sender.hpp>
#include <weightcast/session/weight_worker.hpp>

namespace weightcast::test {
namespace {

/// Counts the payloads that were begun.
struct payload_counter {
    std::atomic<int>* begun;
    void begin(phase, std::uint64_t) { ++*begun; }
    void advance(std::uint64_t, std::string_view) {}
    void end() {}
};

std::vector<tensor_spec> const specs{{"embed", dtype::float32, {30, 8}},
                                     {"head", dtype::float32, {8, 30}},
                                     {"bias", dtype::bfloat16, {7}}};
std::vector<tensor_spec> const transposed{{"embed", dtype::float32, {30, 8}},
                                          {"head", dtype::float32, {30, 8}},
                                          {"bias", dtype::bfloat16, {7}}};

template <class Ranks>
void run() {
    using C = typename Ranks::communicator;
    constexpr int size = 4;
    auto const factories = Ranks::factories(size, cpu_device);
    test_model const model{cpu_device, specs, 1};
    auto const expected = model.values();
    auto const untouched = test_model{cpu_device, specs, 0}.values();
    std::atomic<int> begun{0};
    std::vector<std::function<std::string()>> bodies;
    bodies.push_back([&]() -> std::string {
        weight_sender sender{
            dense_trainer<C, payload_counter>{factories(0), {}, patient_limits(), {&begun}},
            {place(0, size)}};
        auto source = model.source();
        auto const refused = sender.update(source);
        if (begun != 0) return "payload had begun";
        auto const& group = refused.groups.at(0);
        if (group.where != phase::preflight) return "refused in another phase";
        if (group.message.find("refused by rank 2: tensor 'head'") == std::string::npos)
            return group.message;
        if (group.ranks != std::vector{rank_status::unchanged, rank_status::unchanged,
                                       rank_status::refused, rank_status::unchanged})
            return "other statuses";
        return unless(sender.update(source).ok(), "the group is not usable");
    });
    for (int rank = 1; rank < size; ++rank) {
        bodies.push_back([&, rank]() -> std::string {
            parameter_tables<> tables;
            test_model held{cpu_device, specs, 0};
            test_model other{cpu_device, transposed, 0};
            (rank == 2 ? other : held).add_to(tables.main());
            weight_worker worker{dense_engine<C, parameter_tables<>, payload_counter>{
                                     factories(rank), tables, patient_limits(), {&begun}},
                                 place(rank, size)};
            auto const message = message_of([&] { static_cast<void>(worker.serve_one()); });
            if (message.find("refused by rank 2: tensor 'head'") == std::string::npos)
                return "rank " + std::to_string(rank) + " says: " + message;
            if (tables.mixed() || tables.version().is_set()) return "marked by what never came";
            if (auto wrong = first_difference(held, untouched); !wrong.empty()) return wrong;
            if (rank == 2) {
                tables = {};
                held.add_to(tables.main());
            }
            if (worker.serve_one().version.number != 2) return "another version";
            return first_difference(held, expected);
        });
    }
    check_ranks(run_threads(bodies), "3 receivers, one of which refuses");
}

BOOST_AUTO_TEST_SUITE(b29)

BOOST_AUTO_TEST_CASE(b29_a_refusal_ends_the_update_on_all_ranks_before_any_payload) {
    run<gloo_ranks>();
    run<local_ranks>();
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weightcast::test
