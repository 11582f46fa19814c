// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/model is host-only: include it from a .cpp file"
#endif
// Expert parallelism: which logical experts lie in which slots of a rank's stack.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <weightcast/base/error.hpp>
#include <weightcast/model/layout.hpp>
#include <weightcast/model/sliced_layout.hpp>
#include <weightcast/model/stored_layout.hpp>
#include <weightcast/model/tensor_region.hpp>

namespace weightcast {

/// Logical experts by physical slot, over all ranks. An expert may have several slots (replicas) or none; a slot may
/// be empty. A layout is made from one, so that rebalancing between updates means: make the layout again.
class expert_map {
  public:
    static constexpr std::int64_t empty = -1;  ///< no expert in that slot

    /// slots[s]: the expert in physical slot s, or `empty`.
    /// @throws bad_argument  for an expert outside [0, experts)
    expert_map(std::int64_t experts, std::vector<std::int64_t> slots)
        : experts_{experts}, slots_{std::move(slots)} {
        for (std::size_t s = 0; s < slots_.size(); ++s) {
            if (slots_[s] == empty || (slots_[s] >= 0 && slots_[s] < experts)) continue;
            throw bad_argument{"expert map: slot " + std::to_string(s) + " holds expert " +
                               std::to_string(slots_[s]) + " of " + std::to_string(experts)};
        }
    }
    /// Expert e in slot e.
    static expert_map linear(std::int64_t experts) {
        std::vector<std::int64_t> slots;
        for (std::int64_t e = 0; e < experts; ++e) slots.push_back(e);
        return {experts, std::move(slots)};
    }
    /// replicas[e]: the physical slots of expert e; slots that none names are empty.
    /// @throws bad_argument  for a slot outside [0, slot_count), or one that is named twice
    static expert_map of_replicas(std::vector<std::vector<std::int64_t>> const& replicas,
                                  std::int64_t slot_count) {
        if (slot_count < 0) {
            throw bad_argument{"expert map: " + std::to_string(slot_count) + " slots"};
        }
        std::vector<std::int64_t> slots(static_cast<std::size_t>(slot_count), empty);
        for (std::size_t e = 0; e < replicas.size(); ++e) {
            for (auto const s : replicas[e]) put(slots, s, static_cast<std::int64_t>(e));
        }
        return {static_cast<std::int64_t>(replicas.size()), std::move(slots)};
    }

    std::int64_t experts() const noexcept { return experts_; }
    std::vector<std::int64_t> const& slots() const noexcept { return slots_; }

  private:
    static void put(std::vector<std::int64_t>& slots, std::int64_t slot, std::int64_t expert) {
        if (slot < 0 || slot >= static_cast<std::int64_t>(slots.size())) {
            throw bad_argument{"expert map: expert " + std::to_string(expert) + " in slot " +
                               std::to_string(slot) + " of " + std::to_string(slots.size())};
        }
        auto& held = slots[static_cast<std::size_t>(slot)];
        if (held != empty) {
            throw bad_argument{"expert map: slot " + std::to_string(slot) + " holds expert " +
                               std::to_string(held) + " and expert " + std::to_string(expert)};
        }
        held = expert;
    }
    std::int64_t experts_;
    std::vector<std::int64_t> slots_;
};

namespace detail {

/// Indices of a dimension that go to consecutive places.
struct index_run {
    index_range from;
    std::int64_t to;
};

inline std::vector<index_run> runs_of(std::vector<std::int64_t> const& indices) {
    std::vector<index_run> runs;
    for (std::size_t place = 0; place < indices.size(); ++place) {
        auto const i = indices[place];
        if (!runs.empty() && runs.back().from.last == i) {
            ++runs.back().from.last;
        } else {
            runs.push_back({{i, i + 1}, static_cast<std::int64_t>(place)});
        }
    }
    return runs;
}

/// Puts pieces of a layout where its indices go; pieces of one index, as of experts with a tensor each, by look-up.
class index_gather {
  public:
    index_gather(std::size_t dim, std::int64_t size, std::vector<std::int64_t> const& indices)
        : dim_{dim}, runs_{runs_of(indices)}, places_(static_cast<std::size_t>(size)) {
        for (std::size_t place = 0; place < indices.size(); ++place) {
            places_[static_cast<std::size_t>(indices[place])].push_back(
                static_cast<std::int64_t>(place));
        }
    }
    void operator()(layout_piece piece, std::vector<layout_piece>& put) const {
        auto const axis = piece.axes[dim_];
        if (axis.count == 1) {
            for (auto const place : places_[static_cast<std::size_t>(axis.first)]) {
                piece.axes[dim_].first = place;
                put.push_back(piece);
            }
            return;
        }
        for (auto const& run : runs_) {
            auto part = piece;
            if (!cut(part, dim_, run.from.first, run.from.last)) continue;
            part.axes[dim_].first += run.to - run.from.first;
            put.push_back(part);
        }
    }

  private:
    std::size_t dim_;
    std::vector<index_run> runs_;
    std::vector<std::vector<std::int64_t>> places_;
};

}  // namespace detail

namespace layouts {

/// These indices of a dimension, in this order; an index may be there several times or not at all.
/// @throws bad_argument  for a dimension or index outside
/// Cost: linear in pieces and indices; a checkpoint tensor of several indices: a region a run of consecutive ones.
inline layout taken(layout const& of, std::size_t dim, std::vector<std::int64_t> const& indices) {
    detail::check_dim(of, dim);
    auto const& from = of.state();
    for (auto const i : indices) {
        if (i >= 0 && i < from.shape[dim]) continue;
        throw bad_argument{describe(of) + " has no index " + std::to_string(i) + " in dimension " +
                           std::to_string(dim)};
    }
    detail::layout_state state{from.type, from.shape, from.sources, {}};
    state.shape[dim] = static_cast<std::int64_t>(indices.size());
    detail::index_gather const gather{dim, from.shape[dim], indices};
    for (auto const& piece : from.pieces) gather(piece, state.pieces);
    return layout{std::move(state)};
}

/// A rank's stack of experts, [slots, ...], from the layout of all logical experts, [experts, ...]: a stacked
/// checkpoint tensor or `stacked` ones. `slots` are the rank's physical slots, e.g. `shard_bounds` of all.
/// Experts that are not here resolve to no regions; empty slots belong to nobody.
/// @throws bad_argument  for slots outside the map, or a layout of another number of experts than the map's
inline layout expert_parallel(layout const& all, expert_map const& map, index_range slots) {
    detail::check_dim(all, 0);
    if (all.shape()[0] != map.experts()) {
        throw bad_argument{describe(all) + ": dimension 0 is not the expert map's " +
                           std::to_string(map.experts()) + " experts"};
    }
    if (slots.first < 0 || slots.first > slots.last ||
        slots.last > static_cast<std::int64_t>(map.slots().size())) {
        throw bad_argument{"slots [" + std::to_string(slots.first) + ", " +
                           std::to_string(slots.last) + ") are outside the expert map's " +
                           std::to_string(map.slots().size())};
    }
    std::vector<std::int64_t> indices{map.slots().begin() + slots.first,
                                      map.slots().begin() + slots.last};
    // Empty slots take an index of padding behind the last expert.
    std::replace(indices.begin(), indices.end(), expert_map::empty, map.experts());
    return taken(padded(all, 0, map.experts() + 1), 0, indices);
}

}  // namespace layouts

}  // namespace weightcast
