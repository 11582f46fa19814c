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

/// The destinations of the announced parameters, in their order. Flags those as packed that cannot be received
/// into directly.
/// @throws device_mismatch, bad_argument  for one that is not on the communicator's device, or whose elements
///                                        overlap
template <class C, class Target, class Id>
std::vector<tensor_view<typename C::runtime::space>> destinations_of(announcement& a,
                                                                     Target& target, Id const& id,
                                                                     C const& communicator) {
    using runtime = typename C::runtime;
    std::vector<tensor_view<typename runtime::space>> all;
    all.reserve(a.parameters.size());
    int const ambient = runtime::current_device();
    for (std::size_t i = 0; i < a.parameters.size(); ++i) {
        operation_label const label{phase::preflight, a.parameters[i].name};
        auto tensor = target.destination(id, a.parameters[i].name);
        auto const& d = all.emplace_back(
            located<runtime>(writable_view_of(tensor), ambient, label, communicator.rank()));
        if (d.bytes() != 0 && d.where() != communicator.where()) {
            fail_device_mismatch(label, communicator.rank(),
                                 "a buffer on " + to_string(communicator.where()) +
                                     ", the communicator's device (receiving never stages)",
                                 to_string(d.where()));
        }
        if (d.contiguous()) continue;
        check_destination(d.layout());
        a.packed[i] = 1;
    }
    return all;
}

}  // namespace weightcast::detail
