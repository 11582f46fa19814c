// SPDX-License-Identifier: Apache-2.0
// What a name costs before any byte moves: plan, preflight message, checks, destinations.
// Counted, not timed: run it under callgrind and take the inclusive cost of the functions below.
//   names_cost [names]

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include <fmt/core.h>

#include <weightcast/comm/local_communicator.hpp>
#include <weightcast/engine/detail/destinations.hpp>
#include <weightcast/model/parameter_tables.hpp>
#include <weightcast/plan/announcement.hpp>
#include <weightcast/plan/packing_plan.hpp>

namespace {

using namespace weightcast;

/// 80 characters, the first 60 shared by many: as those of a mixture of experts.
std::string name_of(std::size_t i) {
    auto const number = std::to_string(i);
    std::string name = "model.language_model.decoder.layers." + std::to_string(i / 400) +
                       ".mlp.experts.gate_up_projection.";
    name.append(80 - name.size() - number.size(), '0');
    return name + number;
}
constexpr std::int64_t elements = 100;

announcement announced(std::size_t count) {
    announcement a;
    a.version = {1, {}};
    a.options.chunk_bytes = (count / 200) * 448;  // 200 chunks
    for (std::size_t i = 0; i < count; ++i) {
        a.parameters.push_back({name_of(i), dtype::float32, {elements}});
    }
    a.roots.assign(count, 0);
    a.packed.assign(count, 1);
    return a;
}

[[gnu::noinline]] std::size_t plan_names(announcement& a) {
    packing_plan const plan{planned_tensors(a), a.options};
    a.plan_digest = plan.digest();
    return plan.chunks().size();
}
/// The message out and in, and the receiver's own plan of it.
[[gnu::noinline]] announcement preflight_names(announcement const& a) {
    auto received = decode_announcement(encode(a));
    packing_plan const plan{planned_tensors(received), received.options};
    if (plan.digest() != a.plan_digest) std::abort();
    return received;
}
[[gnu::noinline]] std::size_t resolve_names(announcement& a, parameter_tables<>& tables,
                                            local_communicator const& group) {
    auto const objection =
        tables.objection({}, a.parameters.data(), a.parameters.size(), a.coverage);
    if (objection) std::abort();
    if (!tables.alias_pairs({}, a.parameters.data(), a.parameters.size()).empty()) std::abort();
    if (!tables.layer_runs({}, a.parameters.data(), a.parameters.size()).empty()) std::abort();
    std::vector<detail::destination<host_space>> all(a.parameters.size());
    detail::add_destinations(all, a, tables, target_id::main(), group);
    return all.size();
}

}  // namespace

int main(int argc, char** argv) {
    std::size_t const count = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 20'000;
    std::vector<float> memory(count * elements);
    parameter_tables<> tables;
    for (std::size_t i = 0; i < count; ++i) {
        tables.main().add(
            name_of(i),
            tensor_view<>{memory.data() + i * elements, dtype::float32, {elements}, cpu_device});
    }
    local_group const ranks{1};
    auto const group = ranks.join(0);
    auto a = announced(count);
    auto const chunks = plan_names(a);
    auto received = preflight_names(a);
    auto const resolved = resolve_names(received, tables, group);
    fmt::print("{} names of {} characters in {} chunks, {} resolved\n", count, name_of(0).size(),
               chunks, resolved);
}
