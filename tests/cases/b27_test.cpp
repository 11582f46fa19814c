// SPDX-License-Identifier: Apache-2.0
// B27: weights that are gathered while they are sent: rank 0 sends, the others only iterate, and the ranks' own
// collectives met in different orders.
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <support/gloo_fleet.hpp>

namespace weightcast::test {
namespace {

constexpr int trainers = 4;
constexpr std::size_t tensors = 50;

/// Each trainer rank holds a shard of every tensor; a tensor is made by an all-gather of all of them. Sizes differ, so
/// that ranks which meet at different tensors are found out.
template <class C>
class gathered_source {
  public:
    gathered_source(C gather, test_model const& whole) : gather_{std::move(gather)} {
        memory_ = whole.values();
        for (std::size_t i = 0; i < whole.size(); ++i) {
            parameters_.push_back({whole.name(i), dtype::uint8, whole.view(i).shape()});
            auto& bytes = memory_[i];
            auto const shard = bytes.size() / trainers;
            for (std::size_t at = 0; at < bytes.size();
                 ++at) {  // what other ranks hold is not here
                if (at / shard != static_cast<std::size_t>(gather_.rank())) bytes[at] = {};
            }
        }
    }
    std::vector<parameter> const& parameters() const noexcept { return parameters_; }
    tensor_placement placement(std::size_t) const noexcept { return {}; }
    source_tensor<const_tensor_view<>> tensor(std::size_t index, host_stream_ref) {
        auto& bytes = memory_[index];
        auto const shard = static_cast<std::int64_t>(bytes.size() / trainers);
        operation const op = patiently("gather of " + parameters_[index].name);
        for (int root = 0; root < trainers; ++root) {
            tensor_view<> part{bytes.data() + root * shard, dtype::uint8, {shard}};
            alignment_scope<C> scope{gather_};
            if (root == gather_.rank())
                gather_.broadcast_from(scope.align(part, already_ready{}, op.label), op);
            else
                gather_.broadcast_into(scope.require(part, op.label), root, op);
        }
        finish(gather_, op);
        auto const& p = parameters_[index];
        return {p.name, const_tensor_view<>{bytes.data(), p.type, p.shape}};
    }

  private:
    C gather_;
    std::vector<parameter> parameters_;
    std::vector<contents> memory_;
};
static_assert(WeightSource<gathered_source<gloo_communicator>, host_runtime>);

std::vector<tensor_spec> specs() {
    std::vector<std::int64_t> sizes;
    for (std::size_t i = 0; i < tensors; ++i)
        sizes.push_back(trainers * (100 + 37 * static_cast<std::int64_t>(i)));
    return tensors_of_bytes(sizes);
}

/// 4 trainer ranks, of which the first alone is in the group of the receivers. `refuse`: the first update is refused,
/// and the ranks outside must not be left in the middle of their gathers.
template <class Ranks>
void run(int receivers, bool refuse) {
    using C = typename Ranks::communicator;
    auto const gatherers = Ranks::factories(trainers, cpu_device);
    auto const engines = Ranks::factories(receivers + 1, cpu_device);
    test_model const model{cpu_device, specs(), 1};
    auto const expected = model.values();
    transfer_settings const settings{.packing = {.chunk_bytes = 2048, .direct_from = 5000}};
    std::vector<std::function<std::string()>> bodies;
    for (int rank = 0; rank < trainers; ++rank) {
        bodies.push_back([&, rank]() -> std::string {
            gathered_source<C> source{gatherers(rank)(place(rank, trainers)), model};
            dense_trainer<C> trainer{engines(0), settings, patient_limits()};
            if (rank == 0) trainer.init({place(0, receivers + 1)});
            if (refuse) {
                send_update(trainer, source, 1);
                if (rank == 0 && failure_of(trainer).empty()) return "it was not refused";
            }
            send_update(trainer, source, 2);
            return rank == 0 ? failure_of(trainer) : std::string{};
        });
    }
    for (int rank = 1; rank <= receivers; ++rank) {
        bodies.push_back([&, rank]() -> std::string {
            parameter_tables<> tables;
            dense_engine<C, parameter_tables<>> engine{engines(rank), tables, patient_limits()};
            engine.init(place(rank, receivers + 1));
            if (refuse) {
                static_cast<void>(tables.main());  // knows none of the names
                if (message_of([&] { receive_update(engine); }).empty()) return "it passed";
            }
            test_model held{cpu_device, specs(), 0};
            held.add_to(tables.main());
            receive_update(engine);
            return first_difference(held, expected);
        });
    }
    auto const began = std::chrono::steady_clock::now();
    check_ranks(run_threads(bodies), "4 trainer ranks x 50 tensors");
    BOOST_TEST((std::chrono::steady_clock::now() - began < std::chrono::seconds{60}));
}

BOOST_AUTO_TEST_SUITE(b27)

BOOST_AUTO_TEST_CASE(b27_a_source_may_gather_its_tensors_in_another_gloo_group) {
    run<gloo_ranks>(1, false);
    run<gloo_ranks>(2, false);
}

BOOST_AUTO_TEST_CASE(b27_a_source_may_gather_its_tensors_in_another_local_group) {
    run<local_ranks>(2, false);
}

BOOST_AUTO_TEST_CASE(b27_ranks_that_only_iterate_end_with_rank_0_when_the_update_is_refused) {
    run<gloo_ranks>(1, true);
    run<local_ranks>(2, true);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weightcast::test
