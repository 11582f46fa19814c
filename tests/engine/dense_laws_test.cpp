// SPDX-License-Identifier: Apache-2.0
// The laws of engines for the dense ones, over groups of threads.

#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <laws/engine_laws.hpp>
#include <weightcast/comm/local_communicator.hpp>
#include <weightcast/engine/any_engine.hpp>
#include <weightcast/engine/dense_engine.hpp>
#include <weightcast/engine/dense_trainer.hpp>

namespace weightcast::test {
namespace {

using namespace std::chrono_literals;

/// Calls a hook where a bar would be drawn.
struct hooked_progress {
    std::function<void()> hook{};
    void begin(phase, std::uint64_t) {}
    void advance(std::uint64_t, std::string_view) { hook(); }
    void end() {}
};

struct dense_pair {
    using communicator = local_communicator;
    using engine = dense_engine<local_communicator, parameter_tables<>, hooked_progress>;
    using trainer = dense_trainer<local_communicator>;

    static transfer_limits limits() {
        return {.announcement = 240s, .stall = 120s, .update = 240s};
    }
    static group_init place(local_communicator const& c) {
        return {.rank = c.rank(), .size = c.size()};
    }
    static engine engine_over(local_communicator&& c, parameter_tables<>& target,
                              std::function<void()> hook) {
        auto const here = place(c);
        engine made{already_joined(std::move(c)), target, limits(), {std::move(hook)}};
        made.init(here);
        return made;
    }
    static trainer trainer_over(local_communicator&& c, bool verify) {
        auto const here = place(c);
        // Chunks that the model does not fit into, and direct tensors too.
        transfer_settings const settings{.packing = {.chunk_bytes = 4096, .direct_from = 1024},
                                         .verify = verify};
        trainer made{already_joined(std::move(c)), settings, limits()};
        made.init({here});
        return made;
    }
};

/// The same behind the run-time face.
struct erased_pair {
    using communicator = local_communicator;
    using engine = any_engine;
    using trainer = dense_pair::trainer;
    static engine engine_over(local_communicator&& c, parameter_tables<>& target,
                              std::function<void()> hook) {
        return any_engine{dense_pair::engine_over(std::move(c), target, std::move(hook))};
    }
    static trainer trainer_over(local_communicator&& c, bool verify) {
        return dense_pair::trainer_over(std::move(c), verify);
    }
};
static_assert(EnginePair<dense_pair> && EnginePair<erased_pair>);

/// Ranks on threads; all have joined before one runs.
struct local_maker {
    using communicator = local_communicator;
    template <class Body>
    std::vector<std::string> run(group_request const& request, Body body) {
        local_group const group{request.size, {.where = request.where, .grace = request.grace}};
        std::vector<local_communicator> ranks;
        for (int rank = 0; rank < request.size; ++rank) ranks.push_back(group.join(rank));
        std::vector<std::string> outcomes(ranks.size());
        {
            std::vector<std::jthread> threads;
            for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
                threads.emplace_back([&, rank] {
                    auto c = std::move(ranks[rank]);
                    try {
                        outcomes[rank] = body(c);
                    } catch (...) {
                        outcomes[rank] = describe_exception();
                    }
                });
            }
        }
        return outcomes;
    }
};
static_assert(GroupMaker<local_maker>);

device host(int index) { return {device_kind::host, index}; }

BOOST_AUTO_TEST_SUITE(dense_laws_suite)

BOOST_AUTO_TEST_CASE(b43_b45_b46_b49_exact_bytes) {
    local_maker maker;
    law_exact_bytes<dense_pair>(maker, 2, {}, true);
    law_exact_bytes<dense_pair>(maker, 3, {host(1)}, false);
    law_exact_bytes<dense_pair>(maker, 3, {host(0), cpu_device, host(2)}, true);
    law_exact_bytes<erased_pair>(maker, 2, {}, true);
}

BOOST_AUTO_TEST_CASE(b29_b47_a_refusal_writes_nothing) {
    local_maker maker;
    law_refusal_writes_nothing<dense_pair>(maker, 2, {});
    law_refusal_writes_nothing<dense_pair>(maker, 4, {host(0)});
    law_refusal_writes_nothing<erased_pair>(maker, 3, {});
}

BOOST_AUTO_TEST_CASE(b77_a_full_update_repairs_a_mixed_target) {
    local_maker maker;
    law_full_update_repairs_a_mixed_target<dense_pair>(maker, 2, {});
    law_full_update_repairs_a_mixed_target<dense_pair>(maker, 3, {host(0)});
    law_full_update_repairs_a_mixed_target<erased_pair>(maker, 3, {});
}

BOOST_AUTO_TEST_CASE(b42_targets_are_apart) {
    local_maker maker;
    law_targets_are_apart<dense_pair>(maker, {});
    law_targets_are_apart<erased_pair>(maker, {host(1)});
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weightcast::test
