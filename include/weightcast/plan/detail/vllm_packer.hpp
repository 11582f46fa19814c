// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/plan is host-only: include it from a .cpp file"
#endif
// vLLM's cut, byte for byte: append without padding, close a chunk once it is larger than the buffer.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <range/v3/view/enumerate.hpp>

#include <weightcast/base/byte_count.hpp>
#include <weightcast/plan/packed_chunk.hpp>
#include <weightcast/plan/packing_options.hpp>
#include <weightcast/plan/planned_tensor.hpp>

namespace weightcast::detail {

/// A tensor larger than the buffer ends its chunk; a tail of tensors without bytes is a chunk of 0 bytes, because
/// the peer joins a broadcast of count 0 for it.
inline std::vector<packed_chunk> pack_vllm(std::span<planned_tensor const> tensors,
                                           packing_options const& options) {
    std::vector<packed_chunk> chunks;
    bool open = false;
    for (auto const& [index, tensor] : ranges::views::enumerate(tensors)) {
        if (tensor.root != tensors.front().root) {
            throw bad_argument{"packing: the vllm layout has one root; tensor '" +
                               std::string{tensor.name} + "' is held by rank " +
                               std::to_string(tensor.root) + ", the first by rank " +
                               std::to_string(tensors.front().root)};
        }
        if (!open) chunks.push_back({.root = tensor.root});
        auto& chunk = chunks.back();
        chunk.members.push_back({index, 0, tensor.bytes, chunk.bytes});
        chunk.bytes = checked_add(chunk.bytes, tensor.bytes);
        open = chunk.bytes <= options.chunk_bytes;
    }
    return chunks;
}

}  // namespace weightcast::detail
