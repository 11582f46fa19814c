// SPDX-License-Identifier: Apache-2.0
#pragma once
// The free blocks of one device of host_runtime, and what it may keep of them.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <weightcast/runtime/concepts.hpp>
#include <weightcast/runtime/detail/host_block.hpp>

namespace weightcast::detail {

class host_memory;

/// Gives a block back to the system that a pool has dropped.
struct host_release {
    host_memory* memory;
    void operator()(host_block& block) const;
};

/// Counters and free blocks of one device; under the lock of host_memory.
/// Kept: what fits what is asked for. A block that is too small for a request that had to go to the system
/// is outgrown and goes back once idle; what is free stays below the peak of what was in use.
class host_pool {
  public:
    memory_counters const& counters() const noexcept { return counters_; }
    /// Reserved and given back, whether idle or not.
    std::size_t free_bytes() const noexcept { return free_bytes_; }

    /// The smallest free block that fits and is at most twice as large: one that the same stream freed, else
    /// one that its stream has left. Null when there is none.
    host_block* find(std::size_t bytes, host_stream_use on) const noexcept {
        auto const first = std::lower_bound(
            free_.begin(), free_.end(), bytes,
            [](host_block const* b, std::size_t wanted) { return b->capacity < wanted; });
        auto const most = std::max(bytes, host_block::alignment / 2);
        auto const last = std::find_if(first, free_.end(),
                                       [&](host_block const* b) { return b->capacity / 2 > most; });
        auto const same = std::find_if(first, last, [&](auto* b) { return b->is_free_on(on); });
        if (same != last) return *same;
        auto const idle = std::find_if(first, last, [&](auto* b) { return b->looks_idle(); });
        return idle != last ? *idle : nullptr;
    }
    /// The largest free block, if it fits at all: for a device at its limit.
    host_block* find_any(std::size_t bytes) const noexcept {
        return free_.empty() || free_.back()->capacity < bytes ? nullptr : free_.back();
    }

    /// A block of that capacity was taken from the system. @throws std::bad_alloc  and nothing changed
    void prepare_for_another() { free_.reserve(blocks_ + 1); }
    void added(std::size_t capacity) noexcept {
        ++blocks_;
        counters_.reserved += capacity;
    }
    void activate(host_block& block, std::size_t bytes) noexcept {
        block.bytes = bytes;
        counters_.active += bytes;
        counters_.peak = std::max(counters_.peak, counters_.active);
    }
    void list(host_block& block) noexcept {
        counters_.active -= block.bytes;
        block.bytes = 0;
        block.freed_order = ++frees_;
        free_bytes_ += block.capacity;
        auto const at = std::upper_bound(
            free_.begin(), free_.end(), block.capacity,
            [](std::size_t wanted, host_block const* b) { return wanted < b->capacity; });
        free_.insert(at, &block);  // within what prepare_for_another reserved
    }
    void unlist(host_block& block) noexcept {
        free_.erase(std::find(free_.begin(), free_.end(), &block));
        forget(block);
        block.outgrown = false;
    }

    /// A request of that capacity must go to the system: `release(block)` returns what is not worth keeping,
    /// and all that is idle where the limit leaves no room.
    void make_room(std::size_t capacity, std::size_t limit, host_release release) {
        for (auto* block : free_) {
            if (block->capacity < capacity && !block->outgrown) {
                block->outgrown = true;
                ++outgrown_;
            }
        }
        release_outgrown(release);
        while (free_bytes_ > counters_.peak && release_oldest(release)) {}
        if (!has_room(capacity, limit)) release_idle(release);
    }
    bool has_room(std::size_t capacity, std::size_t limit) const noexcept {
        return capacity <= limit && counters_.reserved <= limit - capacity;
    }
    void release_outgrown(host_release release) {
        if (outgrown_ != 0) release_free(which::outgrown, release);
    }
    void release_idle(host_release release) { release_free(which::idle, release); }
    /// Idle or not.
    void release_all(host_release release) { release_free(which::all, release); }

  private:
    enum class which : std::uint8_t { outgrown, idle, all };
    void release_free(which wanted, host_release release) {
        std::size_t left = 0;
        for (auto* block : free_) {
            bool const goes = wanted == which::all ||
                              ((wanted == which::idle || block->outgrown) && block->is_idle());
            if (goes) {
                drop(*block, release);
            } else {
                free_[left++] = block;
            }
        }
        free_.resize(left);
    }
    bool release_oldest(host_release release) {
        host_block* oldest = nullptr;
        for (auto* block : free_) {
            if (block->is_idle() &&
                (oldest == nullptr || block->freed_order < oldest->freed_order)) {
                oldest = block;
            }
        }
        if (oldest == nullptr) return false;
        free_.erase(std::find(free_.begin(), free_.end(), oldest));
        drop(*oldest, release);
        return true;
    }
    void forget(host_block const& block) noexcept {
        free_bytes_ -= block.capacity;
        if (block.outgrown) --outgrown_;
    }
    void drop(host_block& block, host_release release) {
        forget(block);
        --blocks_;
        counters_.reserved -= block.capacity;
        release(block);
    }

    memory_counters counters_{};
    std::vector<host_block*> free_;  // by capacity
    std::size_t blocks_ = 0;
    std::size_t free_bytes_ = 0;
    std::size_t outgrown_ = 0;
    std::uint64_t frees_ = 0;
};

}  // namespace weightcast::detail
