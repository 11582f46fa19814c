// SPDX-License-Identifier: Apache-2.0
#pragma once
// One piece of memory of a pool of host_runtime, and what is done to it in the order of a stream.

#include <cstddef>
#include <cstdint>
#include <new>

#include <weightcast/runtime/detail/host_marks.hpp>
#include <weightcast/runtime/detail/host_poison.hpp>
#include <weightcast/runtime/detail/host_stream.hpp>
#include <weightcast/tensor/device.hpp>

namespace weightcast::detail {

/// A stream as its handle names it.
struct host_stream_use {
    host_stream* stream;
    std::uint64_t generation;
    friend bool operator==(host_stream_use const&, host_stream_use const&) = default;
};

/// Memory taken from the system: in use, or free from a point of a stream on.
struct host_block {
    static constexpr std::size_t alignment = 256;

    std::byte* data = nullptr;
    std::size_t capacity = 0;
    std::size_t bytes = 0;  ///< as asked for; 0 while free
    device where{};
    bool ever_poisoned = false;
    bool outgrown = false;  ///< goes back to the system as soon as it is idle
    host_stream_use freed_on{nullptr, 0};
    host_mark_ring::issued free_from{};
    std::uint64_t freed_order = 0;

    bool is_active() const noexcept { return bytes != 0; }
    bool is_free_on(host_stream_use stream) const noexcept { return freed_on == stream; }
    /// The stream that it was freed on has left it. A yes synchronises with that stream.
    bool is_idle() const noexcept { return free_from.mark->reached(free_from.point.generation()); }
    /// The same without an order: `hand_over` makes the next stream wait.
    bool looks_idle() const noexcept {
        return free_from.mark->reached_unordered(free_from.point.generation());
    }

    /// From here on in the stream's order the block belongs to someone new, who gets that many bytes.
    void hand_over(std::size_t wanted, host_stream_use to, host_poison poison) const {
        if (!is_free_on(to)) {
            to.stream->push_wait(to.generation, *free_from.mark, free_from.point.generation());
        }
        if (ever_poisoned) to.stream->push(to.generation, unpoison{poison, data, wanted});
    }
    /// From here on in the stream's order no one may touch it.
    void take_back(host_stream_use from, host_poison poison, bool poisoned) {
        if (poisoned) {
            from.stream->push(from.generation, fill{poison, data, bytes, capacity});
            ever_poisoned = true;
        }
        free_from = from.stream->push_point(from.generation);
        freed_on = from;
    }

    static std::byte* from_system(std::size_t capacity) noexcept {
        return static_cast<std::byte*>(
            ::operator new(capacity, std::align_val_t{alignment}, std::nothrow));
    }
    void to_system(host_poison poison) const noexcept {
        if (ever_poisoned) poison.unpoison(data, capacity);
        ::operator delete(data, std::align_val_t{alignment});
    }

  private:
    struct fill {
        host_poison poison;
        void* data;
        std::size_t used;  // the rest may be closed since the last time
        std::size_t capacity;
        void operator()() const noexcept { poison.poison(data, used, capacity); }
    };
    struct unpoison {
        host_poison poison;
        void* data;
        std::size_t bytes;
        void operator()() const noexcept { poison.unpoison(data, bytes); }
    };
};

}  // namespace weightcast::detail
