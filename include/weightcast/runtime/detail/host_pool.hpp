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
        auto const first = std::ranges::lower_bound(free_, bytes, {}, &host_block::capacity);
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
        auto const at = std::ranges::upper_bound(free_, block.capacity, {}, &host_block::capacity);
        free_.insert(at, &block);  // within what prepare_for_another reserved
    }
    void unlist(host_block& block) noexcept {
        free_.erase(std::ranges::find(free_, &block));
        forget(block);
        block.outgrown = false;
    }

    /// A request of that capacity must go to the system: `release(block)` returns what is not worth keeping,
    /// and all that is idle where the limit leaves no room.
    template <class Release>
    void make_room(std::size_t capacity, std::size_t limit, Release release) {
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
    template <class Release>
    void release_outgrown(Release release) {
        if (outgrown_ == 0) return;
        release_if([](host_block const& b) { return b.outgrown && b.is_idle(); }, release);
    }
    template <class Release>
    void release_idle(Release release) {
        release_if([](host_block const& b) { return b.is_idle(); }, release);
    }
    template <class Which, class Release>
    void release_if(Which which, Release release) {
        std::erase_if(free_, [&](host_block* block) {
            if (!which(*block)) return false;
            drop(*block, release);
            return true;
        });
    }

  private:
    template <class Release>
    bool release_oldest(Release release) {
        host_block* oldest = nullptr;
        for (auto* block : free_) {
            if (block->is_idle() &&
                (oldest == nullptr || block->freed_order < oldest->freed_order)) {
                oldest = block;
            }
        }
        if (oldest == nullptr) return false;
        free_.erase(std::ranges::find(free_, oldest));
        drop(*oldest, release);
        return true;
    }
    void forget(host_block const& block) noexcept {
        free_bytes_ -= block.capacity;
        if (block.outgrown) --outgrown_;
    }
    template <class Release>
    void drop(host_block& block, Release release) {
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
