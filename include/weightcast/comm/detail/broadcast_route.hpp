// SPDX-License-Identifier: Apache-2.0
#pragma once
// Who hands on to whom: a tree for short messages, and for long ones the root itself or a chain.

#include <algorithm>
#include <vector>

namespace weightcast::detail {

/// A rank's neighbours: `source` -1 for the one where it begins.
struct route {
    int source = -1;
    std::vector<int> targets{};
};

/// Position counted from the root, and back.
constexpr int position_from(int rank, int root, int size) noexcept {
    return (rank - root + size) % size;
}
constexpr int rank_at(int position, int root, int size) noexcept {
    return (position + root) % size;
}

/// Binomial tree: ceil(log2 size) steps; the farthest subtree is served first.
inline route tree_route(int rank, int root, int size) {
    int const at = position_from(rank, root, size);
    route found;
    int const lowest_bit = at & -at;
    if (at != 0) found.source = rank_at(at - lowest_bit, root, size);
    for (int step = 1; (at == 0 || step < lowest_bit) && at + step < size; step *= 2) {
        found.targets.push_back(rank_at(at + step, root, size));
    }
    std::ranges::reverse(found.targets);
    return found;
}

/// Up to this many receivers the root sends to each itself: fewer hops, and still no more than it can carry.
inline constexpr int most_fanned_out = 2;

/// For bytes in pieces: fan-out from the root, or a chain in which every rank sends each piece once.
inline route pipeline_route(int rank, int root, int size) {
    int const at = position_from(rank, root, size);
    route found;
    if (size - 1 <= most_fanned_out) {
        if (at != 0) found.source = root;
        for (int to = 1; at == 0 && to < size; ++to)
            found.targets.push_back(rank_at(to, root, size));
        return found;
    }
    if (at != 0) found.source = rank_at(at - 1, root, size);
    if (at + 1 < size) found.targets.push_back(rank_at(at + 1, root, size));
    return found;
}

}  // namespace weightcast::detail
