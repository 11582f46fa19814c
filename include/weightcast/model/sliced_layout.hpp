// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/model is host-only: include it from a .cpp file"
#endif
// Shards: an own tensor that is a part of another layout along one dimension.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include <weightcast/base/error.hpp>
#include <weightcast/model/layout.hpp>
#include <weightcast/model/tensor_region.hpp>

namespace weightcast {

/// One of `ranks` ranks that share a tensor.
struct shard_position {
    std::int64_t rank = 0;
    std::int64_t ranks = 1;
};

namespace detail {

inline void check_dim(layout const& own, std::size_t dim) {
    if (dim < own.shape().size()) return;
    throw bad_argument{describe(own) + " has no dimension " + std::to_string(dim)};
}
inline void check_position(shard_position at) {
    if (at.rank >= 0 && at.rank < at.ranks) return;
    throw bad_argument{"rank " + std::to_string(at.rank) + " is none of " +
                       std::to_string(at.ranks) + " ranks"};
}

}  // namespace detail

/// The indices of a rank's shard, of `size` in all; where they do not divide, the first ranks have one more.
/// @throws bad_argument  for a rank outside, or a negative size
inline index_range shard_bounds(std::int64_t size, shard_position at) {
    detail::check_position(at);
    if (size < 0) throw bad_argument{"a shard of " + std::to_string(size) + " indices"};
    auto const each = size / at.ranks;
    auto const more = size % at.ranks;
    auto const first = at.rank * each + std::min(at.rank, more);
    return {first, first + each + (at.rank < more ? 1 : 0)};
}

namespace layouts {

/// Indices [first, last) of a dimension: a shard with explicit bounds, or a part of a fused checkpoint tensor.
/// @throws bad_argument  for a dimension or bounds outside the layout
inline layout sliced(layout const& of, std::size_t dim, index_range bounds) {
    detail::check_dim(of, dim);
    if (bounds.first < 0 || bounds.first > bounds.last || bounds.last > of.shape()[dim]) {
        throw bad_argument{describe(of) + ": [" + std::to_string(bounds.first) + ", " +
                           std::to_string(bounds.last) + ") is outside dimension " +
                           std::to_string(dim)};
    }
    auto const& from = of.state();
    detail::layout_state state{from.type, from.shape, from.sources, {}};
    state.shape[dim] = bounds.size();
    for (auto piece : from.pieces) {
        if (!detail::cut(piece, dim, bounds.first, bounds.last)) continue;
        piece.axes[dim].first -= bounds.first;
        state.pieces.push_back(piece);
    }
    return layout{std::move(state)};
}

/// A rank's shard of a dimension: `shard_bounds` of it.
/// @throws bad_argument  for a dimension or rank outside
inline layout sharded(layout const& of, std::size_t dim, shard_position at) {
    detail::check_dim(of, dim);
    return sliced(of, dim, shard_bounds(of.shape()[dim], at));
}

/// One index of a dimension, without that dimension: one expert of a stack that the engine holds apart.
/// @throws bad_argument  for a dimension or index outside
inline layout selected(layout const& of, std::size_t dim, std::int64_t index) {
    detail::check_dim(of, dim);
    if (index < 0 || index >= of.shape()[dim]) {
        throw bad_argument{describe(of) + " has no index " + std::to_string(index) +
                           " in dimension " + std::to_string(dim)};
    }
    auto state = sliced(of, dim, {index, index + 1}).state();
    extents shape;
    for (std::size_t d = 0; d < state.shape.size(); ++d) {
        if (d != dim) shape.push_back(state.shape[d]);
    }
    state.shape = shape;
    for (auto& piece : state.pieces) {
        std::move(piece.axes.begin() + static_cast<std::ptrdiff_t>(dim) + 1, piece.axes.end(),
                  piece.axes.begin() + static_cast<std::ptrdiff_t>(dim));
        piece.axes.back() = {};
    }
    return layout{std::move(state)};
}

}  // namespace layouts

}  // namespace weightcast
