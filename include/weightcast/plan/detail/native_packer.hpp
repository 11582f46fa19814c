// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/plan is host-only: include it from a .cpp file"
#endif
// The native cut: aligned members, no chunk over the bound, one open chunk a root.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include <weightcast/base/byte_count.hpp>
#include <weightcast/plan/packed_chunk.hpp>
#include <weightcast/plan/packing_options.hpp>
#include <weightcast/plan/planned_tensor.hpp>

namespace weightcast::detail {

/// Appends staged tensors; chunks come in the order in which they were opened.
class native_packer {
  public:
    explicit native_packer(packing_options const& options) : options_{options} {}

    void add(std::size_t index, planned_tensor const& tensor) {
        if (tensor.bytes > options_.chunk_bytes) return add_cut(index, tensor);
        if (room(tensor.root) < tensor.bytes) open(tensor.root);
        append(tensor.root, {index, 0, tensor.bytes, 0});
    }
    std::vector<packed_chunk> chunks() && { return std::move(chunks_); }

  private:
    /// A tensor larger than a chunk fills the open chunk and as many more as it needs. Pieces but the last are
    /// multiples of the alignment, so that no element is cut.
    void add_cut(std::size_t index, planned_tensor const& tensor) {
        for (std::uint64_t first = 0; first < tensor.bytes;) {
            auto const whole = room(tensor.root) & ~(options_.alignment - 1);
            if (whole == 0) {
                open(tensor.root);
                continue;
            }
            auto const left = tensor.bytes - first;
            auto const bytes = left <= room(tensor.root) ? left : whole;
            append(tensor.root, {index, first, bytes, 0});
            first += bytes;
        }
    }
    /// Bytes that the root's open chunk can still take at an aligned offset.
    std::uint64_t room(int root) const {
        auto const found = open_.find(root);
        if (found == open_.end()) return 0;
        auto const offset = align_up(chunks_[found->second].bytes, options_.alignment);
        return options_.chunk_bytes - std::min(offset, options_.chunk_bytes);
    }
    void open(int root) {
        open_[root] = chunks_.size();
        chunks_.push_back({.root = root});
    }
    void append(int root, chunk_member member) {
        auto& chunk = chunks_[open_.at(root)];
        member.offset = align_up(chunk.bytes, options_.alignment);
        chunk.bytes = member.offset + member.bytes;
        chunk.members.push_back(member);
    }

    packing_options options_;
    std::vector<packed_chunk> chunks_;
    std::unordered_map<int, std::size_t> open_;  // root to its open chunk
};

}  // namespace weightcast::detail
