// SPDX-License-Identifier: Apache-2.0
#pragma once
// The queue of a stream of host_runtime: callers put operations in, one thread takes them out, and the only
// order between the two is the one that a missing wait would lack.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <type_traits>
#include <utility>

#include <weightcast/runtime/detail/host_futex.hpp>

namespace weightcast::detail {

/// The most bytes that an operation may carry.
inline constexpr std::size_t host_operation_capacity = 320;

/// One operation. Its own word publishes it: a release by the caller, an acquire by the stream's thread.
/// All else in it is relaxed: the thread copies what it needs, then frees the node, and the caller that
/// fills it again looks at the word without acquiring. So a caller learns nothing of what a stream has done.
/// That is sound: the thread's loads come before its release of the word, the caller's stores depend on
/// having read it, and no compiler or core moves a store before the branch that it depends on.
struct alignas(64) host_node {
    static constexpr std::uint32_t free = 0;
    static constexpr std::uint32_t asleep = 1;  ///< free, and the stream's thread sleeps on it
    static constexpr std::uint32_t ready = 2;

    std::atomic<std::uint32_t> word{free};
    std::atomic<std::uint32_t> delay_us{0};
    std::atomic<host_node*> next{nullptr};
    std::atomic<void (*)(host_node&)> run{nullptr};
    std::array<std::atomic<std::uint64_t>, host_operation_capacity / 8> payload{};

    template <class F>
    void write(F const& operation) noexcept {
        auto const* const bytes = reinterpret_cast<std::byte const*>(&operation);
        constexpr std::size_t whole = sizeof(F) / 8;
        for (std::size_t i = 0; i < whole; ++i) write_word<8>(i, bytes);
        if constexpr (sizeof(F) % 8 != 0) write_word<sizeof(F) % 8>(whole, bytes);
        run.store(&take_and_run<F>, std::memory_order_relaxed);
    }

  private:
    template <class F>
    static constexpr std::size_t words_of = (sizeof(F) + 7) / 8;

    template <std::size_t Bytes>
    void write_word(std::size_t i, std::byte const* bytes) noexcept {
        std::uint64_t image = 0;
        std::memcpy(&image, bytes + 8 * i, Bytes);
        payload[i].store(image, std::memory_order_relaxed);
    }
    template <class F>
    static void take_and_run(host_node& node) noexcept {
        std::array<std::uint64_t, words_of<F>> image;
        for (std::size_t i = 0; i < image.size(); ++i) {
            image[i] = node.payload[i].load(std::memory_order_relaxed);
        }
        alignas(F) std::array<std::byte, sizeof(F)> storage;
        std::memcpy(storage.data(), image.data(), sizeof(F));
        node.word.store(free, std::memory_order_release);
        (*std::launder(reinterpret_cast<F*>(storage.data())))();
    }
};

/// A ring of nodes that grows. `push` under the stream's lock, the rest on the stream's thread.
class host_queue {
  public:
    host_queue() = default;
    host_queue(host_queue const&) = delete;
    host_queue& operator=(host_queue const&) = delete;
    ~host_queue() {
        while (newest_ != nullptr) delete std::exchange(newest_, newest_->older);
    }

    /// Puts an operation in; true when `wake(node)` must follow, best after the lock is dropped.
    /// Allocates only when all nodes are full. @throws std::bad_alloc  and nothing is queued
    template <class F>
    host_node* push(F const& operation, std::uint32_t delay_us) {
        prepare();
        host_node& node = *fill_;
        fill_ = node.next.load(std::memory_order_relaxed);
        node.write(operation);
        node.delay_us.store(delay_us, std::memory_order_relaxed);
        // The exchange tells whether the thread sleeps, so that no fence is needed between store and look.
        auto const before = node.word.exchange(host_node::ready, std::memory_order_release);
        return before == host_node::asleep ? &node : nullptr;
    }
    /// The next push does not allocate. @throws std::bad_alloc
    void prepare() {
        if (fill_ == nullptr) fill_ = add();
        // The node after one is chosen before the one is published, so that the thread goes where callers go.
        host_node* const next = fill_->next.load(std::memory_order_relaxed);
        if (next->word.load(std::memory_order_relaxed) != host_node::ready) return;
        host_node* const fresh = add();
        newest_->nodes.back().next.store(next, std::memory_order_relaxed);
        fill_->next.store(fresh, std::memory_order_relaxed);
    }
    static void wake(host_node* node) noexcept {
        if (node != nullptr) futex_wake(&node->word);
    }
    /// The node that the next push fills; where a new thread begins.
    host_node* position() {
        if (fill_ == nullptr) fill_ = add();
        return fill_;
    }

    /// Is an operation there?
    static bool is_ready(host_node const& node) noexcept {
        return node.word.load(std::memory_order_acquire) == host_node::ready;
    }
    /// Sleeps until one is.
    static void sleep(host_node& node) noexcept {
        auto seen = host_node::free;
        node.word.compare_exchange_strong(seen, host_node::asleep, std::memory_order_relaxed);
        while (!is_ready(node)) futex_wait(&node.word, host_node::asleep, never);
    }

  private:
    static constexpr std::size_t nodes_per_block = 64;
    struct block {
        std::array<host_node, nodes_per_block> nodes{};
        block* older = nullptr;
    };

    /// A ring of fresh nodes.
    host_node* add() {
        auto* const fresh = new block{};
        fresh->older = newest_;
        newest_ = fresh;
        auto& nodes = fresh->nodes;
        for (std::size_t i = 0; i < nodes.size(); ++i) {
            nodes[i].next.store(&nodes[(i + 1) % nodes.size()], std::memory_order_relaxed);
        }
        return &nodes.front();
    }

    host_node* fill_ = nullptr;  // always free
    block* newest_ = nullptr;
};

}  // namespace weightcast::detail
