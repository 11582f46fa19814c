// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/engine is host-only: include it from a .cpp file"
#endif
// A receiver's chunks on their way: at most K proofs at once, oldest first.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <utility>

#include <weightcast/align/alignment_scope.hpp>
#include <weightcast/base/operation.hpp>
#include <weightcast/plan/packed_chunk.hpp>

namespace weightcast::detail {

/// A receiver's chunks under way.
template <class C>
class chunk_ring {
    using runtime = typename C::runtime;
    using destination = tensor_view<typename runtime::space>;

  public:
    chunk_ring(alignment_scope<C>& scope, std::size_t capacity)
        : scope_{scope}, capacity_{capacity} {}

    bool full() const noexcept { return under_way_.size() == capacity_; }

    /// Receives into a buffer of the ring.
    void receive(packed_chunk const& chunk, operation const& op) {
        start(std::make_unique<slot>(scope_, chunk, op.label), chunk.root, op);
    }
    /// Receives straight into the one tensor that the chunk is a piece of: nothing is left to unpack.
    void receive_into(destination whole, packed_chunk const& chunk, operation const& op) {
        start(std::make_unique<slot>(scope_, whole, op.label), chunk.root, op);
    }
    bool oldest_is_in_place() const noexcept { return under_way_.front()->in_place; }
    void const* oldest_data() const noexcept { return under_way_.front()->proof.data(); }
    void pop() noexcept { under_way_.pop_front(); }

  private:
    struct slot {
        slot(alignment_scope<C>& scope, packed_chunk const& chunk, operation_label const& label)
            : proof{scope.chunk(static_cast<std::size_t>(chunk.bytes), label)} {}
        slot(alignment_scope<C>& scope, destination& whole, operation_label const& label)
            : in_place{true}, proof{scope.require(whole, label)} {}
        bool in_place = false;
        writable_resident<C> proof;
    };
    void start(std::unique_ptr<slot> entry, int root, operation const& op) {
        scope_.communicator().broadcast_into(entry->proof, root, op);
        under_way_.push_back(std::move(entry));
    }
    alignment_scope<C>& scope_;
    std::size_t capacity_;
    std::deque<std::unique_ptr<slot>> under_way_;
};

}  // namespace weightcast::detail
