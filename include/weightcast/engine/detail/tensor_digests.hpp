// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/engine is host-only: include it from a .cpp file"
#endif
// Per-tensor digests that travel at the vote, so that every rank can prove its bytes.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <weightcast/base/error.hpp>
#include <weightcast/engine/engine_group.hpp>
#include <weightcast/kernels/model_digest.hpp>
#include <weightcast/plan/announcement.hpp>
#include <weightcast/tensor/tensor_view.hpp>

namespace weightcast::detail {

/// Limits of a vote: with digests, ranks hash all that they received before they come to it.
inline op_limits vote_limits(op_limits const& op, announcement const& a) noexcept {
    auto const whole = std::chrono::ceil<std::chrono::milliseconds>(op.at.remaining());
    return {a.verify ? std::max(op.stall, whole) : op.stall, op.at};
}

/// The trainers' digests in the order of the announced parameters; `own` is this rank's, when it is a trainer.
/// Collective.
template <class C>
std::vector<std::uint64_t> exchange_digests(engine_group<C>& member,
                                            std::optional<std::vector<std::uint64_t>> const& own,
                                            announcement const& a, op_limits const& update) {
    auto const limits = vote_limits(update, a);
    std::vector<std::uint64_t> all;
    for (int const root : member.init().trainers) {
        std::span<std::uint64_t const> mine;
        if (own && root == member.communicator().rank()) mine = *own;
        auto const bytes =
            member.mailbox().broadcast(std::as_bytes(mine), root, limits, phase::vote);
        std::vector<std::uint64_t> part(bytes.size() / sizeof(std::uint64_t));
        if (!part.empty())
            std::memcpy(part.data(), bytes.data(), part.size() * sizeof(std::uint64_t));
        all.insert(all.end(), part.begin(), part.end());
    }
    if (all.size() != a.parameters.size()) {
        throw bad_input{"the trainers sent " + std::to_string(all.size()) + " digests for " +
                        std::to_string(a.parameters.size()) + " tensors"};
    }
    return all;
}

}  // namespace weightcast::detail
