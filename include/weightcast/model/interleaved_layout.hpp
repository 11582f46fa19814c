// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/model is host-only: include it from a .cpp file"
#endif
// Own tensors whose parts take turns along a dimension.

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include <weightcast/base/error.hpp>
#include <weightcast/model/detail/joined_layout.hpp>
#include <weightcast/model/layout.hpp>
#include <weightcast/model/sliced_layout.hpp>

namespace weightcast {

namespace detail {

/// One part's turns: `block` indices, then all others', `period` in sum; its first turn begins at `first`.
struct turns {
    std::int64_t block;
    std::int64_t first;
    std::int64_t period;
};

/// Puts a piece of a part where its turns are. Turns of one index stay one piece; others are cut, one piece a turn.
template <class Put>
void put_interleaved(layout_piece const& piece, std::size_t dim, turns const& t, Put const& put) {
    auto const& axis = piece.axes[dim];
    auto const moved = [&](std::int64_t i) {
        return i / t.block * t.period + t.first + i % t.block;
    };
    if (axis.count == 1 || axis.step % t.block == 0) {
        auto whole = piece;
        whole.axes[dim].first = moved(axis.first);
        whole.axes[dim].step = axis.step / t.block * t.period;
        if (axis.count == 1) whole.axes[dim].step = 1;
        return put(whole);
    }
    auto const last = axis.first + (axis.count - 1) * axis.step;
    for (auto turn = axis.first / t.block; turn <= last / t.block; ++turn) {
        auto part = piece;
        if (!cut(part, dim, turn * t.block, (turn + 1) * t.block)) continue;
        part.axes[dim].first = moved(part.axes[dim].first);
        put(part);
    }
}

/// @throws bad_argument  unless each part is the same number of its blocks
inline std::vector<turns> turns_of(std::vector<layout> const& parts, std::size_t dim,
                                   std::vector<std::int64_t> const& blocks) {
    if (blocks.size() != parts.size()) {
        throw bad_argument{std::to_string(blocks.size()) + " interleaved blocks for " +
                           std::to_string(parts.size()) + " parts"};
    }
    std::vector<turns> all;
    std::int64_t period = 0;
    for (std::size_t k = 0; k < parts.size(); ++k) {
        auto const size = parts[k].shape()[dim];
        auto const size_0 = parts[0].shape()[dim];
        if (blocks[k] < 1 || size % blocks[k] != 0 || size / blocks[k] != size_0 / blocks[0]) {
            throw bad_argument{"part " + std::to_string(k) + ", " + describe(parts[k]) +
                               ": dimension " + std::to_string(dim) + " is not " +
                               (k == 0 ? "made" : std::to_string(size_0 / blocks[0])) +
                               " of blocks of " + std::to_string(blocks[k])};
        }
        all.push_back({blocks[k], period, 0});
        period = add_sizes(period, blocks[k]);
    }
    for (auto& t : all) t.period = period;
    return all;
}

}  // namespace detail

namespace layouts {

/// The parts in turn along a dimension: blocks[0] indices of the first, blocks[1] of the second and so on, then
/// over again. {1, 1}: row i of gate at 2i, row i of up at 2i + 1. Unequal blocks: the query heads of a group, then
/// its key and value head.
/// @throws bad_argument  for no part, a dimension outside, parts that differ elsewhere or in dtype, or sizes that are
///                       not the same number of blocks each
/// Cost: linear in the parts' sources and pieces; blocks over 1 make one region a block.
inline layout interleaved(std::size_t dim, std::vector<layout> const& parts,
                          std::vector<std::int64_t> const& blocks) {
    detail::check_alike(parts, dim);
    detail::check_dim(parts.front(), dim);
    auto const turns = detail::turns_of(parts, dim, blocks);
    auto shape = parts.front().shape();
    shape[dim] = 0;
    for (auto const& part : parts) {
        shape[dim] = detail::add_sizes(shape[dim], part.shape()[dim]);
    }
    return detail::joined(parts, shape,
                          [&](detail::layout_piece const& piece, std::size_t k, auto const& put) {
                              detail::put_interleaved(piece, dim, turns[k], put);
                          });
}
/// Blocks of one size for all parts.
inline layout interleaved(std::size_t dim, std::vector<layout> const& parts,
                          std::int64_t block = 1) {
    return interleaved(dim, parts, std::vector<std::int64_t>(parts.size(), block));
}

}  // namespace layouts

}  // namespace weightcast
