// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a rank has completed with each other one: it numbers operations, and says when leaving is safe.

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include <weightcast/comm/detail/operation_header.hpp>
#include <weightcast/comm/detail/rendezvous_messages.hpp>

namespace weightcast::detail {

/// Counts of completed operations, and the ranks that have left. Any thread.
class gloo_account {
  public:
    explicit gloo_account(int size)
        : done_{0, std::vector<std::uint64_t>(static_cast<std::size_t>(size)),
                std::vector<std::uint64_t>(static_cast<std::size_t>(size))} {}

    /// Position of the operation: among collectives, or among the messages of that pair and direction.
    std::uint64_t next(operation_header const& header, int self) const {
        std::lock_guard const lock{mutex_};
        return position(header, self);
    }
    /// True when a rank that has left waits for this side to be quiet.
    bool completed(operation_header const& header, int self) {
        std::lock_guard const lock{mutex_};
        if (header.collective()) {
            ++done_.collectives;
        } else if (header.root == self) {
            ++done_.sent[index(header.peer)];
        } else {
            ++done_.received[index(header.root)];
        }
        return !unquiet_.empty();
    }
    std::uint64_t collectives() const {
        std::lock_guard const lock{mutex_};
        return done_.collectives;
    }
    leave_account snapshot() const {
        std::lock_guard const lock{mutex_};
        return done_;
    }
    bool has_sent() const {
        std::lock_guard const lock{mutex_};
        for (auto const count : done_.sent) {
            if (count != 0) return true;
        }
        return false;
    }

    /// That rank wants to go once nothing of it is under way here.
    void leaves(peer_leaving const& one) {
        std::lock_guard const lock{mutex_};
        if (one.rank < 0 || index(one.rank) >= done_.sent.size()) return;
        leaving_[one.rank] = one;
        unquiet_[one.rank] = one;
    }
    /// It has gone, whatever is under way. False when it never said that it would.
    bool has_gone(int rank) {
        std::lock_guard const lock{mutex_};
        auto const found = leaving_.find(rank);
        if (found == leaving_.end()) return false;
        departed_[rank] = found->second;
        return true;
    }
    /// The rank that has gone without its part of this operation, if there is one.
    std::optional<int> missing(operation_header const& header, int self) const {
        std::lock_guard const lock{mutex_};
        auto const at = position(header, self);
        for (auto const& [rank, one] : departed_) {
            if (header.collective() && one.collectives <= at) return rank;
            if (header.collective()) continue;
            if (header.root == self && rank == header.peer && one.received <= at) return rank;
            if (header.peer == self && rank == header.root && one.sent <= at) return rank;
        }
        return std::nullopt;
    }
    /// Ranks that have left and of which nothing is under way here any more; each is named once.
    std::vector<int> take_quiet() {
        std::lock_guard const lock{mutex_};
        std::vector<int> quiet;
        for (auto const& [rank, one] : unquiet_) {
            bool const nothing = done_.collectives >= one.collectives &&
                                 done_.received[index(rank)] >= one.sent &&
                                 done_.sent[index(rank)] >= one.received;
            if (nothing) quiet.push_back(rank);
        }
        for (int const rank : quiet) unquiet_.erase(rank);
        return quiet;
    }

  private:
    static std::size_t index(int rank) noexcept { return static_cast<std::size_t>(rank); }
    std::uint64_t position(operation_header const& header, int self) const {
        if (header.collective()) return done_.collectives;
        return header.root == self ? done_.sent[index(header.peer)]
                                   : done_.received[index(header.root)];
    }

    mutable std::mutex mutex_;
    leave_account done_;
    std::map<int, peer_leaving> leaving_;
    std::map<int, peer_leaving> departed_;
    std::map<int, peer_leaving> unquiet_;
};

}  // namespace weightcast::detail
