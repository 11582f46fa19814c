// SPDX-License-Identifier: Apache-2.0
// The law of faults for the dense engines, over groups of threads.
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include <laws/engine_fault_laws.hpp>
#include <weightcast/comm/local_communicator.hpp>
#include <weightcast/engine/dense_engine.hpp>
#include <weightcast/engine/dense_trainer.hpp>

namespace weightcast::test {
namespace {

using namespace std::chrono_literals;

template <int Host>
struct dense_faults {
    using inner = local_communicator;
    template <class C, class Sink>
    using trainer = dense_trainer<C, Sink>;
    template <class C, class Target, class Sink>
    using engine = dense_engine<C, Target, Sink>;
    static device where() { return Host < 0 ? cpu_device : device{device_kind::host, Host}; }
    static std::function<inner(int)> group(int size) {
        local_group const made{size, {.where = {where()}, .grace = 10s}};
        return [made](int rank) { return made.join(rank); };
    }
};
static_assert(FaultPair<dense_faults<-1>>);

/// Chunks, a cut tensor, a window of direct tensors.
auto const specs = tensors_of_bytes({300, 300, 1500, 300, 1200, 100});
transfer_settings settings_of(bool verify) {
    return {.packing = {.chunk_bytes = 512, .direct_from = 1400}, .verify = verify};
}

void check_steps(std::vector<std::string> const& steps, std::vector<std::string> const& expected) {
    for (auto const& one : expected) {
        BOOST_TEST((std::ranges::find(steps, one) != steps.end()), "no step was '" << one << "'");
    }
    BOOST_TEST_MESSAGE(steps.size() << " steps failed");
}

BOOST_AUTO_TEST_SUITE(dense_fault_laws)

BOOST_AUTO_TEST_CASE(b77_every_step_of_the_sender_may_fail) {
    auto const steps = law_every_step_may_fail<dense_faults<-1>>(3, 0, specs, settings_of(false));
    check_steps(steps,
                {"the source's parameters", "the source's placement", "tensor 0 of the source",
                 "tensor 5 of the source", "a release of the source", "broadcast in preflight",
                 "all-reduce in preflight", "broadcast in payload", "wait in payload",
                 "the sink's begin", "the sink's advance", "the sink's end", "all-reduce in vote",
                 "wait for an all-reduce in vote"});
}

BOOST_AUTO_TEST_CASE(b77_every_step_of_a_receiver_may_fail) {
    for (int const rank : {1, 2}) {
        auto const steps =
            law_every_step_may_fail<dense_faults<-1>>(3, rank, specs, settings_of(false));
        check_steps(steps, {"begin_update", "objection", "parts of t0", "destination of t5",
                            "version", "not_covered", "broadcast in preflight", "wait in preflight",
                            "all-reduce in preflight", "broadcast in payload", "wait in payload",
                            "the sink's begin", "the sink's advance", "the sink's end",
                            "all-reduce in vote", "wait for an all-reduce in vote"});
    }
}

BOOST_AUTO_TEST_CASE(b77_every_step_of_a_verified_update_may_fail) {
    for (int const rank : {0, 1})
        law_every_step_may_fail<dense_faults<-1>>(3, rank, specs, settings_of(true));
}

BOOST_AUTO_TEST_CASE(b77_every_step_of_an_update_on_a_device_may_fail) {
    for (int const rank : {0, 1})
        law_every_step_may_fail<dense_faults<1>>(2, rank, specs, settings_of(false));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weightcast::test
