// SPDX-License-Identifier: Apache-2.0
// B80: the version label was published though a chunk had failed.
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

auto const specs = tensors_of_bytes({256, 256, 256});
transfer_settings const settings{.packing = {.chunk_bytes = 256, .direct_from = 1U << 20U}};

/// Fails in finish, on this rank alone, as an update's description may.
template <class C>
struct failing_in_finish : hooked_engine_over<C> {
    using hooked_engine_over<C>::hooked_engine_over;
    bool const* fails = nullptr;
    void prepare() {
        if (*fails) throw std::runtime_error{"finish failed here"};
        hooked_engine_over<C>::prepare();
    }
};

template <class Ranks>
void run(bool in_finish) {
    using C = typename Ranks::communicator;
    auto const factories = Ranks::factories(3, cpu_device);
    std::vector<std::function<std::string()>> bodies;
    bodies.push_back([&]() -> std::string {
        weight_sender sender{dense_trainer<C>{factories(0), settings, patient_limits()},
                             {place(0, 3)}};
        test_model const model{cpu_device, specs, 1};
        auto source = model.source();
        for (int n = 1; n <= 6; ++n) {
            if (!sender.update(source, {.label = "v" + std::to_string(n)}).ok()) return "not sent";
        }
        auto const failed = sender.update(source, {.label = "v7"});
        if (failed.ok()) return "v7 passed";
        return unless(to_string(sender.acknowledged()) == "v6",
                      "acknowledged " + to_string(sender.acknowledged()));
    });
    for (int rank = 1; rank < 3; ++rank) {
        bodies.push_back([&, rank]() -> std::string {
            parameter_tables<> tables;
            test_model held{cpu_device, specs, 0};
            held.add_to(tables.main());
            int updates = 0;
            bool fails = false;
            progress_hook const hook{[&](int chunk) {
                if (!in_finish && rank == 2 && updates == 6 && chunk == 1)
                    throw std::runtime_error{"chunk 2 failed"};
            }};
            failing_in_finish<C> engine{factories(rank), tables, patient_limits(), hook};
            engine.fails = &fails;
            rpc_worker worker{std::move(engine)};
            worker.init(place(rank, 3));
            for (; updates < 6; ++updates) static_cast<void>(worker.serve_one());
            worker.start();
            worker.receive_next();
            fails = in_finish && rank == 2;
            if (message_of([&] { static_cast<void>(worker.finish()); }).empty())
                return "finish passed";
            if (message_of([&] { static_cast<void>(worker.finish()); }).find("rolled back") ==
                std::string::npos)
                return "a second finish is not refused";
            auto const version = tables.version();
            if (version.number != 6 || to_string(version) != "v6") return to_string(version);
            if (worker.status().last->version != version) return "another version is reported";
            return unless(tables.mixed(), "not mixed");
        });
    }
    check_ranks(run_threads(bodies), in_finish ? "finish fails" : "chunk 2 fails");
}

BOOST_AUTO_TEST_SUITE(b80)

BOOST_AUTO_TEST_CASE(b80_a_failed_chunk_publishes_neither_version_nor_label_on_any_rank) {
    run<local_ranks>(false);
    run<gloo_ranks>(false);
}

BOOST_AUTO_TEST_CASE(b80_a_finish_that_fails_on_one_rank_publishes_on_none) {
    run<local_ranks>(true);
    run<gloo_ranks>(true);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weightcast::test
