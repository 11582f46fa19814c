// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which rank of a transfer group a worker has, and the proof that no two workers claim one.

#include <algorithm>
#include <ranges>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <weightcast/base/error.hpp>

namespace weightcast {

/// Receivers of one engine: `replicas` data-parallel replicas of `world_per_dp` ranks (TP x PP x PCP) each,
/// from `rank_offset` on (the trainer's ranks lie below it).
struct rank_layout {
    int rank_offset = 1;
    int world_per_dp = 1;
    int replicas = 1;

    /// Number of receivers.
    int receivers() const noexcept { return world_per_dp * replicas; }
    /// Smallest world that holds them all.
    int world_size() const noexcept { return rank_offset + receivers(); }

    /// `rank_offset + dp_index * world_per_dp + rank_within_dp`.
    /// @throws bad_argument  for an index out of its range: a process-wide rank in place of one within the replica
    int rank_of(int dp_index, int rank_within_dp) const {
        require_within("dp_index", dp_index, replicas);
        require_within("rank_within_dp", rank_within_dp, world_per_dp);
        return rank_offset + dp_index * world_per_dp + rank_within_dp;
    }

  private:
    static void require_within(char const* what, int value, int end) {
        if (value >= 0 && value < end) return;
        throw bad_argument{std::string{what} + " " + std::to_string(value) + " is not from 0 to " +
                           std::to_string(end - 1) +
                           ": it counts within the engine, not over all processes"};
    }
};

/// Position of a process-wide rank among an engine's members, in their order.
/// @throws bad_argument  when it is no member, or a member is listed twice
inline int position_within(int process_rank, std::span<int const> members) {
    auto const found = std::find(members.begin(), members.end(), process_rank);
    if (found == members.end()) {
        throw bad_argument{"process rank " + std::to_string(process_rank) +
                           " is no member of this engine"};
    }
    if (std::count(members.begin(), members.end(), process_rank) != 1) {
        throw bad_argument{"process rank " + std::to_string(process_rank) +
                           " is listed twice among the members of this engine"};
    }
    return static_cast<int>(found - members.begin());
}

/// A worker's claim to a rank; `who` is what messages call it.
struct rank_claim {
    std::string who;
    int rank = 0;
};

/// Checks, before any network call, that the claims are exactly the ranks from 0 to world_size - 1.
/// @throws bad_argument  naming both claimants of one rank, a claimant outside the world, or the gap
inline void check_ranks(std::span<rank_claim const> claims, int world_size) {
    if (world_size < 1) {
        throw bad_argument{"a world of " + std::to_string(world_size) + " ranks has nobody in it"};
    }
    // By rank; a rank beyond the number of claims is claimed in vain while one below is not.
    std::vector<rank_claim const*> holders(claims.size(), nullptr);
    for (auto const& claim : claims) {
        if (claim.rank < 0 || claim.rank >= world_size) {
            throw bad_argument{claim.who + " claims rank " + std::to_string(claim.rank) +
                               ", which is no rank of a world of " + std::to_string(world_size)};
        }
        auto const rank = static_cast<std::size_t>(claim.rank);
        if (rank >= holders.size()) continue;
        if (holders[rank] != nullptr) {
            throw bad_argument{holders[rank]->who + " and " + claim.who + " both claim rank " +
                               std::to_string(claim.rank)};
        }
        holders[rank] = &claim;
    }
    std::size_t expected = 0;
    while (expected < holders.size() && holders[expected] != nullptr) ++expected;
    if (expected < static_cast<std::size_t>(world_size)) {
        throw bad_argument{"nobody claims rank " + std::to_string(expected) + " of a world of " +
                           std::to_string(world_size)};
    }
}

/// The claims of a layout's receivers, named by prefix, replica and rank within it: "engine dp 1 rank 0".
inline std::vector<rank_claim> claims_of(rank_layout const& layout, std::string const& prefix) {
    std::vector<rank_claim> claims;
    for (int dp = 0; dp < layout.replicas; ++dp) {
        for (int within = 0; within < layout.world_per_dp; ++within) {
            claims.push_back(
                {prefix + " dp " + std::to_string(dp) + " rank " + std::to_string(within),
                 layout.rank_of(dp, within)});
        }
    }
    return claims;
}

}  // namespace weightcast
