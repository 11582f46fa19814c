// SPDX-License-Identifier: Apache-2.0
#pragma once
// What one rank of a group of threads does with bytes: copies from a root, or its share of an all-reduce.

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <span>

#include <weightcast/comm/detail/reduce.hpp>
#include <weightcast/comm/transfer_range.hpp>
#include <weightcast/tensor/dtype.hpp>

namespace weightcast::detail {

/// Copies range by range, each in one call: the C library streams past the caches in large copies only.
/// Stops between two ranges when the group has ended. `copied(bytes)` follows each range.
template <class Copied>
void copy_ranges(std::span<transfer_range const> to, std::span<transfer_range const> from,
                 std::atomic<bool> const& ended, Copied copied) noexcept {
    for (std::size_t i = 0; i < to.size() && !ended.load(std::memory_order_relaxed); ++i) {
        // Ranks of one process may hand in the same memory.
        if (to[i].bytes != 0 && to[i].data != from[i].data) {
            std::memcpy(to[i].data, from[i].data, to[i].bytes);
        }
        copied(to[i].bytes);
    }
}

/// One rank's share of an all-reduce over `ranks` buffers of equal size: it reduces one slice of all of them
/// into its own buffer, then takes the other slices from those who reduced them. Between the two all meet.
/// Each byte is reduced once, in the order of the ranks: the result has the same bits on all.
class local_share {
  public:
    local_share(int rank, int ranks, std::size_t bytes, dtype type) noexcept
        : rank_{rank}, ranks_{ranks}, bytes_{bytes}, type_{type} {}

    template <class DataOf, class Done>
    void reduce(DataOf data_of, reduction how, Done done) const noexcept {
        constexpr std::size_t block_bytes = 4096;
        alignas(64) std::byte block[block_bytes];
        auto const last = begin_of(rank_ + 1);
        for (auto first = begin_of(rank_); first < last; first += block_bytes) {
            auto const bytes = std::min(block_bytes, last - first);
            std::memcpy(block, data_of(0) + first, bytes);
            for (int r = 1; r < ranks_; ++r) {
                reduce_into(block, data_of(r) + first, bytes, type_, how);
            }
            std::memcpy(data_of(rank_) + first, block, bytes);
            done(bytes);
        }
    }
    template <class DataOf, class Done>
    void gather(DataOf data_of, std::atomic<bool> const& ended, Done done) const noexcept {
        for (int r = 0; r < ranks_ && !ended.load(std::memory_order_relaxed); ++r) {
            auto const first = begin_of(r);
            auto const bytes = begin_of(r + 1) - first;
            if (r == rank_ || bytes == 0) continue;
            std::memcpy(data_of(rank_) + first, data_of(r) + first, bytes);
            done(bytes);
        }
    }

  private:
    /// Where the slice of that rank begins; one past the last rank: the end.
    std::size_t begin_of(int rank) const noexcept {
        auto const items = bytes_ / item_size(type_);
        auto const r = static_cast<std::size_t>(rank);
        auto const n = static_cast<std::size_t>(ranks_);
        return (items / n * r + items % n * r / n) * item_size(type_);
    }
    int rank_;
    int ranks_;
    std::size_t bytes_;
    dtype type_;
};

}  // namespace weightcast::detail
