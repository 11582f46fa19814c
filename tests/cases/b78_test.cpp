// SPDX-License-Identifier: Apache-2.0
// B78: a receiver answered success and loaded uninitialised memory although the sender never took part.
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <support/gloo_fleet.hpp>
#include <weightcast/kernels/model_digest.hpp>
#include <weightcast/session/weight_worker.hpp>

namespace weightcast::test {
namespace {

using namespace std::chrono_literals;

auto const specs = tensors_of_bytes({300, 5000, 300, 40'000});
constexpr std::uint64_t old_bytes = 70;

/// How far the silent sender goes.
enum class silent { always, after_the_preflight };

template <class Ranks>
void run(silent sender_is, device where, packing_options const& packing) {
    using C = typename Ranks::communicator;
    auto const factories = Ranks::factories(2, where);
    auto limits = short_limits();
    limits.announcement = 500ms;
    std::atomic<bool> over{false};
    auto const began = std::chrono::steady_clock::now();
    check_ranks(
        run_threads({[&]() -> std::string {
                         test_model const model{cpu_device, specs, 1};
                         auto source = model.source();
                         dense_trainer<C> trainer{
                             factories(0), {.packing = packing}, patient_limits()};
                         trainer.init({place(0, 2)});
                         if (sender_is == silent::after_the_preflight)
                             trainer.announce(source, {7, {}}, {});
                         for (auto const until = deadline::after(60s); !over && !until.expired();)
                             std::this_thread::sleep_for(5ms);
                         return "";
                     },
                     [&]() -> std::string {
                         settings_scope const strict{{.poison_freed = true}};
                         parameter_tables<> tables;
                         test_model held{where, specs, old_bytes};
                         held.add_to(tables.main());
                         auto const before = held.values();
                         weight_worker worker{
                             dense_engine<C, parameter_tables<>>{factories(1), tables, limits},
                             place(1, 2)};
                         auto const message =
                             message_of([&] { static_cast<void>(worker.serve_one()); });
                         over = true;
                         if (message.empty()) return "success";
                         char const* const expected =
                             sender_is == silent::always ? "preflight: " : "payload: tensor 't";
                         if (message.find(expected) == std::string::npos ||
                             message.find("suspected rank 0") == std::string::npos)
                             return message;
                         if (tables.version().is_set()) return "a version was published";
                         if (tables.mixed() && sender_is == silent::always)
                             return "mixed by nothing";
                         return first_difference(held, before);
                     }}),
        sender_is == silent::always ? "never a sender" : "never a payload");
    BOOST_TEST((std::chrono::steady_clock::now() - began < 40s));
}

BOOST_AUTO_TEST_SUITE(b78)

BOOST_AUTO_TEST_CASE(b78_without_a_sender_an_update_is_an_error_and_loads_nothing) {
    packing_options const packed{.chunk_bytes = 1024, .direct_from = 1U << 30U};
    packing_options const direct{.chunk_bytes = 1024, .direct_from = 1000};
    for (auto const sender_is : {silent::always, silent::after_the_preflight}) {
        for (auto const& packing : {packed, direct}) {
            run<local_ranks>(sender_is, cpu_device, packing);
            run<local_ranks>(sender_is, {device_kind::host, 1}, packing);
            run<gloo_ranks>(sender_is, cpu_device, packing);
        }
    }
}

BOOST_AUTO_TEST_CASE(b78_the_digest_of_what_was_sent_and_of_what_is_held_tells) {
    test_model const model{cpu_device, specs, 1};
    test_fleet const fleet{.size = 3, .settings = {.verify = true}};
    std::vector<std::uint64_t> sent;
    for (std::size_t i = 0; i < model.size(); ++i) sent.push_back(tensor_digest(model.view(i)));
    check_ranks(fleet.run(
                    [&](test_trainer& trainer) {
                        auto source = model.source();
                        send_update(trainer, source, 1);
                        return failure_of(trainer);
                    },
                    [&](test_engine& engine, int) -> std::string {
                        test_model held{cpu_device, specs, old_bytes};
                        held.add_to(engine.target().main());
                        for (std::size_t i = 0; i < sent.size(); ++i) {
                            if (tensor_digest(held.view(i)) == sent[i]) return "equal before";
                        }
                        receive_update(engine);
                        for (std::size_t i = 0; i < sent.size(); ++i) {
                            if (tensor_digest(held.view(i)) != sent[i]) return "another digest";
                        }
                        return "";
                    }),
                "digests");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weightcast::test
