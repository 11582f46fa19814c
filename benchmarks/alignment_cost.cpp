// SPDX-License-Identifier: Apache-2.0
// What broadcast_aligned costs beyond the communicator's own work, for a tensor that is resident already.
// Counted, not timed: run it under callgrind and compare the inclusive cost of the two functions below.
//   alignment_cost [calls]

#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <new>
#include <optional>
#include <vector>

#include <fmt/core.h>

#include <weightcast/align/broadcast_aligned.hpp>
#include <weightcast/comm/local_communicator.hpp>

namespace {

std::size_t allocations = 0;
bool counting = false;

}  // namespace

// NOLINTBEGIN(misc-new-delete-overloads): only counts
void* operator new(std::size_t bytes) {
    if (counting) ++allocations;
    if (void* const memory = std::malloc(bytes)) return memory;
    throw std::bad_alloc{};
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
// NOLINTEND(misc-new-delete-overloads)

namespace {

using namespace weightcast;
using event_type = event<host_runtime>;

operation limits() { return {{phase::payload, "layer.0.weight"}, {}}; }

/// The library's call and its wait.
[[gnu::noinline]] void aligned_call(local_communicator& group, tensor_view<> const& tensor,
                                    operation const& op) {
    auto sent = broadcast_aligned(group, tensor, produced_anywhere{}, op);
    sent.wait(op.limits.at);
}

/// The communicator's own work: enqueue, record, wait.
[[gnu::noinline]] void bare_call(local_communicator& group,
                                 resident<local_communicator> const& tensor, event_type& done,
                                 operation const& op) {
    group.broadcast_from(tensor, op);
    host_runtime::record(done.ref(), group.core().collective_stream());
    group.wait(done.ref(), op.limits.at, op.label);
}

}  // namespace

int main(int argc, char** argv) {
    int const calls = argc > 1 ? std::atoi(argv[1]) : 1000;
    local_group const ranks{1};
    auto group = ranks.join(0);
    std::vector<float> weights(16, 1.0F);
    tensor_view<> const tensor{weights.data(), dtype::float32, {16}};
    auto const op = limits();

    for (int i = 0; i < 64; ++i)
        aligned_call(group, tensor, op);  // queue and event cache reach their size
    counting = true;
    for (int i = 0; i < calls; ++i) aligned_call(group, tensor, op);
    counting = false;
    {
        event_type done{};
        alignment_scope<local_communicator> scope{group};
        auto const proof = scope.align(tensor, already_ready{}, op.label);
        for (int i = 0; i < calls; ++i) bare_call(group, proof, done, op);
    }
    fmt::print("{} calls, {} allocations in broadcast_aligned, pending and the host queue\n", calls,
               allocations);
    return allocations == 0 ? 0 : 1;
}
