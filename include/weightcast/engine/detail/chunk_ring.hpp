// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/engine is host-only: include it from a .cpp file"
#endif
// Chunks on their way: at most K proofs at once, oldest first; and the windows of direct tensors.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <weightcast/align/alignment_scope.hpp>
#include <weightcast/base/operation.hpp>
#include <weightcast/plan/announcement.hpp>
#include <weightcast/plan/packing_plan.hpp>

namespace weightcast::detail {

/// The name under which a chunk's operation is reported: its first tensor.
inline std::string_view chunk_name(packed_chunk const& chunk, announcement const& a) {
    return chunk.members.empty() ? std::string_view{"empty chunk"}
                                 : std::string_view{a.parameters[chunk.members.front().tensor].name};
}

/// Direct tensors [first, last) of one root that form one operation.
struct direct_window {
    std::size_t first = 0;
    std::size_t last = 0;
    int root = 0;
    std::uint64_t bytes = 0;
};

/// Cuts the direct tensors where the root changes, and after so many rings of bytes: a source that makes its
/// tensors for the moment holds no more than a window. The same on every rank.
inline std::vector<direct_window> direct_windows(packing_plan const& plan, announcement const& a) {
    constexpr std::uint64_t rings = 4;
    std::uint64_t const limit = rings * plan.options().ring * plan.options().chunk_bytes;
    std::vector<direct_window> windows;
    auto const direct = plan.direct();
    for (std::size_t i = 0; i < direct.size(); ++i) {
        if (windows.empty() || windows.back().root != direct[i].root || windows.back().bytes >= limit) {
            windows.push_back({i, i, direct[i].root, 0});
        }
        windows.back().last = i + 1;
        windows.back().bytes += a.parameters[direct[i].tensor].bytes();
    }
    return windows;
}

/// A receiver's chunks under way.
template <class C>
class chunk_ring {
    using runtime = typename C::runtime;

  public:
    chunk_ring(alignment_scope<C>& scope, std::size_t capacity) : scope_{scope}, capacity_{capacity} {}

    bool full() const noexcept { return under_way_.size() == capacity_; }
    bool empty() const noexcept { return under_way_.empty(); }

    /// Receives into a buffer of the ring.
    void receive(packed_chunk const& chunk, operation const& op) {
        start(std::make_unique<slot>(scope_, chunk, op.label), op);
    }
    /// Receives straight into the one tensor that the chunk is a piece of: nothing is left to unpack.
    void receive_into(tensor_view<typename runtime::space> destination, packed_chunk const& chunk,
                      operation const& op) {
        start(std::make_unique<slot>(scope_, chunk, destination, op.label), op);
    }
    /// Blocks until the oldest chunk is here in full.
    packed_chunk const& wait_oldest(deadline until) {
        auto& oldest = *under_way_.front();
        scope_.communicator().wait(oldest.arrived.ref(), until, oldest.proof.label());
        return oldest.chunk;
    }
    bool oldest_is_in_place() const noexcept { return under_way_.front()->in_place; }
    void const* oldest_data() const noexcept { return under_way_.front()->proof.data(); }
    void pop() noexcept { under_way_.pop_front(); }

  private:
    struct slot {
        slot(alignment_scope<C>& scope, packed_chunk const& c, operation_label const& label)
            : chunk{c}, proof{scope.chunk(static_cast<std::size_t>(c.bytes), label)} {}
        slot(alignment_scope<C>& scope, packed_chunk const& c,
             tensor_view<typename runtime::space>& destination, operation_label const& label)
            : chunk{c}, in_place{true}, proof{scope.require(destination, label)} {}
        packed_chunk const& chunk;
        bool in_place = false;
        writable_resident<C> proof;
        event<runtime> arrived{};
    };
    void start(std::unique_ptr<slot> entry, operation const& op) {
        auto& communicator = scope_.communicator();
        communicator.broadcast_into(entry->proof, entry->chunk.root, op);
        runtime::record(entry->arrived.ref(), communicator.core().collective_stream());
        under_way_.push_back(std::move(entry));
    }
    alignment_scope<C>& scope_;
    std::size_t capacity_;
    std::deque<std::unique_ptr<slot>> under_way_;
};

}  // namespace weightcast::detail
