// SPDX-License-Identifier: Apache-2.0
#pragma once
// Stream-ordered memory of host_runtime, run by callers alone: a stream's thread takes no part but to run
// the points, waits and poisonings that were put on it.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#include <weightcast/base/error.hpp>
#include <weightcast/runtime/detail/host_pool.hpp>

namespace weightcast::detail {

/// The most devices that host_runtime can have.
inline constexpr int host_device_limit = 64;

/// All pools and the look-up from pointers to blocks, under one lock among callers.
class host_memory {
  public:
    /// Memory of that device, usable in the stream's order; `limit` is the most that its pool may reserve.
    /// @throws out_of_memory  with the numbers; nothing changed
    void* allocate(std::size_t bytes, device where, host_stream_use on, std::size_t limit) {
        std::lock_guard const lock{mutex_};
        auto& pool = pool_of(where);
        pool.release_outgrown(releaser());
        auto* block = pool.find(bytes, on);
        if (block == nullptr) {
            if (auto* const fresh = take_from_system(pool, bytes, where, limit)) {
                pool.activate(*fresh, bytes);
                return fresh->data;
            }
            block = pool.find_any(bytes);
        }
        if (block == nullptr) throw_out_of_memory(pool, bytes, where, limit);
        block->hand_over(bytes, on, poison_);
        pool.unlist(*block);
        pool.activate(*block, bytes);
        return block->data;
    }

    /// The block is free from the stream's present end on.
    /// @throws contract_violation  for a pointer that `allocate` did not give or that is free already
    void deallocate(void* data, host_stream_use on, bool poisoned) {
        std::lock_guard const lock{mutex_};
        auto const found = first_from(data);
        if (found == blocks_.end() || (*found)->data != data || !(*found)->is_active()) {
            throw contract_violation{
                "host_runtime::deallocate: this pointer was not allocated here, or is deallocated already"};
        }
        auto& block = **found;
        block.take_back(on, poison_, poisoned);
        pool_of(block.where).list(block);
    }

    memory_counters counters(device where) {
        std::lock_guard const lock{mutex_};
        auto& pool = pool_of(where);
        pool.release_outgrown(releaser());
        return pool.counters();
    }
    /// Returns to the system what is free and idle.
    void trim(device where) {
        std::lock_guard const lock{mutex_};
        pool_of(where).release_idle(releaser());
    }
    /// The same for every pool, idle or not: for the end of the process, when no stream runs any more.
    void release_all_free() {
        std::lock_guard const lock{mutex_};
        for (auto& pool : pools_) {
            pool.release_all(releaser());
        }
    }
    bool has_active() {
        std::lock_guard const lock{mutex_};
        for (auto const& pool : pools_) {
            if (pool.counters().active != 0) return true;
        }
        return false;
    }

    /// What is known of a pointer.
    struct place {
        bool known = false;          ///< inside a block in use
        bool freed = false;          ///< inside a block that was deallocated
        device where = cpu_device;   ///< of the block
        std::size_t bytes_left = 0;  ///< from the pointer to the end of what was asked for
    };
    place locate(void const* p) {
        std::lock_guard const lock{mutex_};
        auto const from = first_from(p);
        auto const is_its_start = from != blocks_.end() && (*from)->data == p;
        if (!is_its_start && from == blocks_.begin()) return {};
        auto const& block = is_its_start ? **from : *from[-1];
        auto const offset = address(p) - address(block.data);
        if (offset >= block.capacity) return {};
        if (!block.is_active()) return {false, true, block.where, 0};
        if (offset >= block.bytes) return {};
        return {true, false, block.where, block.bytes - offset};
    }

  private:
    friend host_release;
    host_release releaser() noexcept { return {this}; }

    static std::uintptr_t address(void const* p) noexcept {
        return reinterpret_cast<std::uintptr_t>(p);
    }
    host_pool& pool_of(device where) noexcept {
        return pools_[where.is_accelerator() ? static_cast<std::size_t>(where.index) + 1 : 0];
    }
    /// Null where the limit or the system says no.
    host_block* take_from_system(host_pool& pool, std::size_t bytes, device where,
                                 std::size_t limit) {
        constexpr auto step = host_block::alignment;
        if (bytes > std::numeric_limits<std::size_t>::max() / 2) return nullptr;
        auto const capacity = (bytes + step - 1) / step * step;
        pool.make_room(capacity, limit, releaser());
        if (!pool.has_room(capacity, limit)) return nullptr;
        pool.prepare_for_another();
        blocks_.reserve(blocks_.size() + 1);
        auto* const block = new host_block{.capacity = capacity, .where = where};
        block->data = host_block::from_system(capacity);
        if (block->data == nullptr) {
            delete block;
            return nullptr;
        }
        blocks_.insert(first_from(block->data), block);  // within what was reserved
        pool.added(capacity);
        return block;
    }
    /// The first block that begins there or behind it.
    std::vector<host_block*>::iterator first_from(void const* p) {
        return std::lower_bound(blocks_.begin(), blocks_.end(), p,
                                [](host_block const* block, void const* at) {
                                    return address(block->data) < address(at);
                                });
    }
    [[noreturn]] static void throw_out_of_memory(host_pool const& pool, std::size_t bytes,
                                                 device where, std::size_t limit) {
        auto const& c = pool.counters();
        std::string text = "host_runtime: no " + std::to_string(bytes) + " bytes on " +
                           to_string(where) + ": " + std::to_string(c.active) +
                           " bytes are in use, " + std::to_string(c.reserved) + " reserved, " +
                           std::to_string(pool.free_bytes()) +
                           " of them given back but too small or not yet left by their streams";
        if (limit != std::numeric_limits<std::size_t>::max()) {
            text += "; the limit is " + std::to_string(limit);
        }
        throw out_of_memory{text};
    }

    std::mutex mutex_;
    std::vector<host_block*> blocks_;                       // by address, owned
    std::array<host_pool, host_device_limit + 1> pools_{};  // 0: cpu
    host_poison poison_;
};

inline void host_release::operator()(host_block& block) const {
    block.to_system(memory->poison_);
    memory->blocks_.erase(memory->first_from(block.data));
    delete &block;
}

}  // namespace weightcast::detail
