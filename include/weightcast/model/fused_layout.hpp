// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/model is host-only: include it from a .cpp file"
#endif
// Own tensors of several parts: one after the other, row by row in turn, or one on top of the other.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <weightcast/base/error.hpp>
#include <weightcast/model/detail/joined_layout.hpp>
#include <weightcast/model/layout.hpp>
#include <weightcast/model/sliced_layout.hpp>

namespace weightcast::layouts {

/// The parts one after the other along a dimension, in this order; their sizes there may differ. Gate and up, w3 and
/// w1, query, key and value.
/// @throws bad_argument  for no part, a dimension outside, or parts that differ elsewhere or in dtype
/// Cost: linear in the parts' sources and pieces.
inline layout fused(std::size_t dim, std::vector<layout> const& parts) {
    detail::check_alike(parts, dim);
    detail::check_dim(parts.front(), dim);
    auto shape = parts.front().shape();
    shape[dim] = 0;
    std::vector<std::int64_t> first;
    for (auto const& part : parts) {
        first.push_back(shape[dim]);
        shape[dim] = detail::add_sizes(shape[dim], part.shape()[dim]);
    }
    return detail::joined(parts, shape,
                          [&](detail::layout_piece piece, std::size_t k, auto const& put) {
                              piece.axes[dim].first += first[k];
                              put(piece);
                          });
}

/// The parts under a new outermost dimension: index k is part k. Experts with a checkpoint tensor each.
/// @throws bad_argument  for no part, or parts that differ in shape or dtype; bad_input for over 8 dimensions
/// Cost: linear in the parts' sources and pieces.
inline layout stacked(std::vector<layout> const& parts) {
    detail::check_alike(parts, detail::no_dim);
    extents shape{static_cast<std::int64_t>(parts.size())};
    for (auto const size : parts.front().shape()) shape.push_back(size);
    return detail::joined(parts, shape,
                          [](detail::layout_piece piece, std::size_t k, auto const& put) {
                              auto& axes = piece.axes;
                              std::move_backward(axes.begin(), axes.end() - 1, axes.end());
                              axes[0] = {static_cast<std::int64_t>(k), 1, 1, detail::no_dim};
                              put(piece);
                          });
}

}  // namespace weightcast::layouts
