// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/engine is host-only: include it from a .cpp file"
#endif
// How long an update may take, and how it is cut: one place for the defaults.

#include <chrono>
#include <cstdint>

#include <weightcast/base/deadline.hpp>
#include <weightcast/base/operation.hpp>
#include <weightcast/model/update_coverage.hpp>
#include <weightcast/plan/packing_options.hpp>

namespace weightcast {

/// Limits of one engine; each may be set per engine.
struct transfer_limits {
    std::chrono::milliseconds announcement{
        std::chrono::minutes{30}};                              ///< waiting for the next update
    std::chrono::milliseconds stall{std::chrono::seconds{20}};  ///< no byte moved
    /// A whole update: from the announcement at a sender, from its receipt at a receiver, to the vote.
    std::chrono::milliseconds update{std::chrono::seconds{300}};
    std::uint64_t ring_bytes = std::uint64_t{4}
                               << 30U;  ///< a receiver refuses plans whose ring is larger
    std::uint64_t held_bytes = std::uint64_t{4}
                               << 30U;  ///< a receiver holds no more for its layers' steps

    /// Limits of an operation that ends with the update that begins now. A sender that feeds several groups
    /// may be held up by a stuck one for its stall: receivers that share it wait twice as long.
    op_limits operations(bool shared_sender = false) const noexcept {
        auto const longest = std::chrono::milliseconds::max();
        auto const twice = stall > longest / 2 ? longest : 2 * stall;
        return {shared_sender ? twice : stall, deadline::after(update)};
    }
    /// Limits of the wait for an announcement: no stall timer of its own.
    op_limits waiting() const noexcept { return {announcement, deadline::after(announcement)}; }
};

/// What a sender chooses for an update; the announcement carries it, so that both sides plan alike.
struct transfer_settings {
    packing_options packing{};
    update_coverage coverage = update_coverage::parameters;  ///< what each update promises to bring
    bool verify = false;  ///< per-tensor digests are compared at the vote
};

}  // namespace weightcast
