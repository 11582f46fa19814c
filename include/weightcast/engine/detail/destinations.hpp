// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/engine is host-only: include it from a .cpp file"
#endif
// Where a dense update goes: everything that can fail before the payload.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <weightcast/align/alignment_scope.hpp>
#include <weightcast/align/located.hpp>
#include <weightcast/base/error.hpp>
#include <weightcast/kernels/strided_region.hpp>
#include <weightcast/model/concepts.hpp>
#include <weightcast/model/tensor_region.hpp>
#include <weightcast/plan/announcement.hpp>
#include <weightcast/plan/packing_plan.hpp>

namespace weightcast::detail {

/// Says why a receiver cannot take a plan with such a ring, or nothing. Sizes come from the network.
template <class C>
std::optional<std::string> ring_objection(announcement const& a, std::uint64_t limit) {
    auto const ring = std::to_string(a.options.ring);
    if (a.options.ring > alignment_scope<C>::max_slots) {
        return "a ring of " + ring + " buffers is over the most of " +
               std::to_string(alignment_scope<C>::max_slots);
    }
    auto const slot = packing_plan{planned_tensors(a), a.options}.slot_bytes();
    auto const buffer = std::max(a.options.chunk_bytes, slot);
    if (buffer <= limit / a.options.ring) return std::nullopt;
    return "a ring of " + ring + " chunks of " + std::to_string(buffer) +
           " bytes is over this rank's limit of " + std::to_string(limit);
}

/// Where one announced tensor goes.
template <MemorySpace Space>
struct destination {
    tensor_view<Space> whole{};  ///< as it is announced, unless it goes in parts
    bool in_parts = false;       ///< by a layout; perhaps none of it is held here
    bool held = false;           ///< until a layer's step has read it
    std::vector<placed_region<Space>> parts{};
};

/// @throws device_mismatch  when a buffer is not on the communicator's device
template <class C, class View>
View destination_on(C const& communicator, View const& tensor, int ambient,
                    operation_label const& label) {
    auto const placed = located<typename C::runtime>(tensor, ambient, label, communicator.rank());
    if (placed.bytes() != 0 && placed.where() != communicator.where()) {
        fail_device_mismatch(label, communicator.rank(),
                             "a buffer on " + to_string(communicator.where()) +
                                 ", the communicator's device (receiving never stages)",
                             to_string(placed.where()));
    }
    return placed;
}

/// The destinations of the announced parameters that have none yet, in their order. Flags those as packed that cannot be
/// received into directly.
/// @throws device_mismatch, bad_argument  for one that is not on the communicator's device, or whose elements
///                                        overlap
template <class C, class Target, class Id>
void add_destinations(std::vector<destination<typename C::runtime::space>>& all, announcement& a,
                      Target& target, Id const& id, C const& communicator) {
    using runtime = typename C::runtime;
    int const ambient = runtime::current_device();
    for (std::size_t i = 0; i < a.parameters.size(); ++i) {
        if (all[i].held || all[i].in_parts) {
            a.packed[i] = 1;
            continue;
        }
        operation_label const label{phase::preflight, a.parameters[i].name};
        if constexpr (has_parts<Target>) {
            if (auto parts = target.parts(id, a.parameters[i])) {
                for (auto& part : *parts)
                    part.own = destination_on(communicator, part.own, ambient, label);
                all[i] = {{}, true, false, std::move(*parts)};
                a.packed[i] = 1;
                continue;
            }
        }
        auto tensor = target.destination(id, a.parameters[i].name);
        all[i].whole = destination_on(communicator, writable_view_of(tensor), ambient, label);
        if (all[i].whole.contiguous()) continue;
        check_destination(all[i].whole.layout());
        a.packed[i] = 1;
    }
}

}  // namespace weightcast::detail
