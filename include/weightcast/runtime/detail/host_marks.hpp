// SPDX-License-Identifier: Apache-2.0
#pragma once
// Marks: how a stream of host_runtime tells that it has come to a point, and nothing more than that.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include <weightcast/base/error.hpp>
#include <weightcast/runtime/detail/host_futex.hpp>

namespace weightcast::detail {

/// One point of one stream. It is used again for later points of the *same* stream, with a higher
/// generation: who still asks for an earlier one gets the answer yes, which is right, as a stream runs in order.
class host_mark {
  public:
    /// Has the stream come to the point of that generation? Only a yes synchronises with the stream: an
    /// acquire on a no would order the caller after work that it has no right to see.
    bool reached(std::uint64_t generation) const noexcept {
        return (word_.load(std::memory_order_relaxed) >> 1U) >= generation &&
               (word_.load(std::memory_order_acquire) >> 1U) >= generation;
    }
    /// The same without an order: for the caller that wants to use the mark again.
    bool reached_unordered(std::uint64_t generation) const noexcept {
        return (word_.load(std::memory_order_relaxed) >> 1U) >= generation;
    }
    /// The stream is there. Called on its thread.
    void reach(std::uint64_t generation) noexcept {
        // The exchange tells whether anyone sleeps, so that no fence is needed between store and look.
        if ((word_.exchange(generation << 1U, std::memory_order_release) & sleeper) != 0) {
            futex_wake(low_half(&word_));
        }
    }
    /// True once the stream has come there; false when the deadline passes first.
    bool wait(std::uint64_t generation, deadline until) noexcept {
        for (int i = 0; i < spins_before_sleep; ++i) {
            if (reached(generation)) return true;
            spin_pause();
        }
        for (;;) {
            if (reached(generation)) return true;
            auto seen = word_.load(std::memory_order_relaxed);
            if ((seen >> 1U) >= generation) continue;
            if (until != never && until.expired()) return false;
            if ((seen & sleeper) == 0 &&
                !word_.compare_exchange_weak(seen, seen | sleeper, std::memory_order_relaxed)) {
                continue;
            }
            futex_wait(low_half(&word_), static_cast<std::uint32_t>(seen | sleeper), until);
        }
    }

  private:
    friend class host_mark_ring;
    static constexpr std::uint64_t sleeper = 1;
    std::atomic<std::uint64_t> word_{0};  // generation reached << 1 | someone sleeps
    // below: of the callers, under the lock of the stream that the mark belongs to
    std::uint64_t issued_ = 0;
    host_mark* next_ = nullptr;
    std::uint32_t index_ = 0;
};

/// A mark and a generation in one word, so that an event can be recorded and read without a lock.
/// Zero means "never recorded".
struct host_point {
    static constexpr unsigned index_bits = 24;
    std::uint64_t packed = 0;

    static constexpr host_point of(std::uint32_t index, std::uint64_t generation) noexcept {
        return {(generation << index_bits) | index};
    }
    constexpr std::uint32_t index() const noexcept {
        return static_cast<std::uint32_t>(packed & ((1U << index_bits) - 1));
    }
    constexpr std::uint64_t generation() const noexcept { return packed >> index_bits; }
    constexpr bool recorded() const noexcept { return packed != 0; }
};

/// All marks of a process by index. None is freed before all are: an event may outlive the stream it was
/// recorded on.
class host_mark_directory {
  public:
    host_mark_directory() = default;
    host_mark_directory(host_mark_directory const&) = delete;
    host_mark_directory& operator=(host_mark_directory const&) = delete;
    ~host_mark_directory() {
        for (auto const& slot : top_) {
            auto* const middle = slot.load(std::memory_order_relaxed);
            if (middle == nullptr) continue;
            for (auto const& marks : *middle) delete marks.load(std::memory_order_relaxed);
            delete middle;
        }
    }

    static constexpr std::size_t marks_per_chunk = 64;
    using chunk = std::array<host_mark, marks_per_chunk>;

    /// A fresh chunk and the index of its first mark. @throws out_of_memory  for more than 16 million marks
    struct grown {
        chunk* marks;
        std::uint32_t first;
    };
    grown grow() {
        std::lock_guard const lock{mutex_};
        auto const number = chunks_;
        if (number == fan_out * fan_out) {
            throw out_of_memory{"host_runtime: more than 16777216 event records are outstanding"};
        }
        auto& middle = top_[number / fan_out];
        if (middle.load(std::memory_order_relaxed) == nullptr) {
            middle.store(new level{}, std::memory_order_release);
        }
        auto* const fresh = new chunk{};
        (*middle.load(std::memory_order_relaxed))[number % fan_out].store(
            fresh, std::memory_order_release);
        ++chunks_;
        return {fresh, static_cast<std::uint32_t>(number * marks_per_chunk)};
    }

    /// The mark of an index that `grow` gave out.
    host_mark& at(std::uint32_t index) const noexcept {
        auto const number = index / marks_per_chunk;
        auto* const middle = load(top_[number / fan_out]);
        return (*load((*middle)[number % fan_out]))[index % marks_per_chunk];
    }

  private:
    static constexpr std::size_t fan_out = 512;
    using level = std::array<std::atomic<chunk*>, fan_out>;

    // An index may be seen before the pointers that lead to it (events carry it in a relaxed word, so that
    // they order nothing): look until they are there.
    template <class T>
    static T* load(std::atomic<T*> const& slot) noexcept {
        for (;;) {
            if (auto* const found = slot.load(std::memory_order_acquire)) return found;
            spin_pause();
        }
    }

    std::array<std::atomic<level*>, fan_out> top_{};
    std::mutex mutex_;  // among callers that grow
    std::size_t chunks_ = 0;
};

/// The marks of one stream, used in turn, the longest unused first. All calls under the stream's lock.
class host_mark_ring {
  public:
    /// A mark and a generation that nobody waits for yet. Allocates only when all marks are outstanding.
    struct issued {
        host_mark* mark;
        host_point point;
    };
    issued take(host_mark_directory& directory) {
        if (current_ == nullptr || !current_->reached_unordered(current_->issued_)) add(directory);
        host_mark& mark = *current_;
        last_ = current_;
        current_ = mark.next_;
        ++mark.issued_;
        return {&mark, host_point::of(mark.index_, mark.issued_)};
    }

  private:
    void add(host_mark_directory& directory) {
        auto const [chunk, first] = directory.grow();
        for (std::size_t i = 0; i < chunk->size(); ++i) {
            (*chunk)[i].index_ = first + static_cast<std::uint32_t>(i);
            (*chunk)[i].next_ = &(*chunk)[(i + 1) % chunk->size()];
        }
        if (current_ != nullptr) {
            last_->next_ = &chunk->front();
            chunk->back().next_ = current_;
        }
        current_ = &chunk->front();
    }
    host_mark* current_ = nullptr;
    host_mark* last_ = nullptr;
};

}  // namespace weightcast::detail
