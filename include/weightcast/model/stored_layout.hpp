// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/model is host-only: include it from a .cpp file"
#endif
// How an own tensor is stored: with padding at the end, or with its dimensions in another order.

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <weightcast/base/error.hpp>
#include <weightcast/model/fused_layout.hpp>
#include <weightcast/model/layout.hpp>
#include <weightcast/model/sliced_layout.hpp>

namespace weightcast::layouts {

/// A dimension made longer: indices from the layout's size on belong to nobody and stay as they are. A vocabulary
/// that is padded, then sharded: the last ranks own fewer rows of the checkpoint, or none.
/// @throws bad_argument  for a dimension outside, or a size below the layout's
inline layout padded(layout const& of, std::size_t dim, std::int64_t size) {
    detail::check_dim(of, dim);
    if (size < of.shape()[dim]) {
        throw bad_argument{describe(of) + ": padded to " + std::to_string(size) + " in dimension " +
                           std::to_string(dim) + ", less than its " +
                           std::to_string(of.shape()[dim])};
    }
    auto rest = of.shape();
    rest[dim] = size - of.shape()[dim];
    return fused(dim, {of, unowned(of.type(), rest)});
}

/// The dimensions in another order: dimension d of the result is dimension order[d] of the layout.
/// @throws bad_argument  unless order holds each dimension once
inline layout permuted(layout const& of, std::vector<std::size_t> const& order) {
    auto state = of.state();
    std::vector<bool> seen(order.size());
    bool right = order.size() == state.shape.size();
    for (auto const d : order) {
        right = right && d < seen.size() && !seen[d];
        if (right) seen[d] = true;
    }
    if (!right) {
        throw bad_argument{describe(of) + ": " + to_string(extents{order}) +
                           " is no order of its " + std::to_string(state.shape.size()) +
                           " dimensions"};
    }
    for (std::size_t d = 0; d < order.size(); ++d) state.shape[d] = of.shape()[order[d]];
    for (auto& piece : state.pieces) {
        auto const axes = piece.axes;
        for (std::size_t d = 0; d < order.size(); ++d) piece.axes[d] = axes[order[d]];
    }
    return layout{std::move(state)};
}

/// The last two dimensions swapped: [out, in] stored as [in, out].
/// @throws bad_argument  for fewer than two dimensions
inline layout transposed(layout const& of) {
    auto const rank = of.shape().size();
    if (rank < 2) throw bad_argument{describe(of) + " has no two dimensions to swap"};
    std::vector<std::size_t> order;
    for (std::size_t d = 0; d < rank; ++d) order.push_back(d);
    std::swap(order[rank - 1], order[rank - 2]);
    return permuted(of, order);
}

}  // namespace weightcast::layouts
