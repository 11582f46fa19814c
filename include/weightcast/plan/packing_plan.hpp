// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/plan is host-only: include it from a .cpp file"
#endif
// How the tensors of an update become transfers: a pure function of metadata, the same on every rank.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <range/v3/view/enumerate.hpp>

#include <weightcast/base/byte_count.hpp>
#include <weightcast/plan/detail/native_packer.hpp>
#include <weightcast/plan/detail/plan_digest.hpp>
#include <weightcast/plan/detail/vllm_packer.hpp>
#include <weightcast/plan/packed_chunk.hpp>
#include <weightcast/plan/packing_options.hpp>
#include <weightcast/plan/planned_tensor.hpp>

namespace weightcast {

/// Chunks and direct tensors, each in the order in which every rank transfers them. Tensors without bytes are
/// in no native transfer: their metadata is all there is to deliver.
/// Cost: linear in tensors and chunks.
class packing_plan {
  public:
    /// More are refused before any is planned: sizes may come from the network.
    static constexpr std::uint64_t most_chunks = std::uint64_t{1} << 20U;

    packing_plan() = default;
    /// @throws bad_argument  for options that do not hold, two roots in the vllm layout, or chunks so small that
    ///                       there would be more than most_chunks
    /// @throws bad_input     for a tensor whose bytes are not those of its dtype and shape
    explicit packing_plan(std::span<planned_tensor const> tensors,
                          packing_options const& options = {})
        : options_{options} {
        validate(options);
        for (auto const& tensor : tensors) validate(tensor);
        if (options.layout == packing_layout::vllm) {
            chunks_ = detail::pack_vllm(tensors, options);
        } else {
            refuse_too_many(tensors);
            pack_native(tensors);
        }
        for (auto const& chunk : chunks_) wire_bytes_ = checked_add(wire_bytes_, chunk.bytes);
        for (auto const& whole : direct_) {
            wire_bytes_ = checked_add(wire_bytes_, tensors[whole.tensor].bytes);
        }
        digest_ = detail::plan_digest(tensors, options_, chunks_, direct_);
    }

    packing_options const& options() const noexcept { return options_; }
    /// Packed chunks.
    std::span<packed_chunk const> chunks() const noexcept { return chunks_; }
    /// Tensors that go from the source's memory into the destination's.
    std::span<direct_tensor const> direct() const noexcept { return direct_; }
    /// Bytes that enter transfers, padding included.
    std::uint64_t wire_bytes() const noexcept { return wire_bytes_; }
    /// Equal on two ranks when they agree about names, dtypes, shapes, roots, layout and cut (xxh3-64).
    std::uint64_t digest() const noexcept { return digest_; }

    /// Bytes that each buffer of the ring must hold: chunk_bytes (native), the largest chunk (vllm).
    std::uint64_t slot_bytes() const noexcept {
        std::uint64_t largest = 0;
        for (auto const& chunk : chunks_) largest = std::max(largest, chunk.bytes);
        if (options_.layout == packing_layout::vllm || chunks_.empty()) return largest;
        return options_.chunk_bytes;
    }

  private:
    bool goes_direct(planned_tensor const& tensor) const noexcept {
        return tensor.contiguous && tensor.bytes >= options_.direct_from;
    }
    void refuse_too_many(std::span<planned_tensor const> tensors) const {
        std::uint64_t packed = 0;
        for (auto const& t : tensors) {
            if (!goes_direct(t)) packed = checked_add(packed, t.bytes);
        }
        if (packed / options_.chunk_bytes <= most_chunks) return;
        throw bad_argument{"packing: " + std::to_string(packed) + " bytes in chunks of " +
                           std::to_string(options_.chunk_bytes) + " bytes are more than " +
                           std::to_string(most_chunks) + " chunks; take larger ones"};
    }
    void pack_native(std::span<planned_tensor const> tensors) {
        detail::native_packer packer{options_};
        for (auto const& [index, tensor] : ranges::views::enumerate(tensors)) {
            if (tensor.bytes == 0) continue;
            if (goes_direct(tensor)) {
                direct_.push_back({index, tensor.root});
            } else {
                packer.add(index, tensor);
            }
        }
        chunks_ = std::move(packer).chunks();
    }

    packing_options options_{};
    std::vector<packed_chunk> chunks_;
    std::vector<direct_tensor> direct_;
    std::uint64_t wire_bytes_ = 0;
    std::uint64_t digest_ = 0;
};

/// A member that the peer cannot view in place.
struct misaligned_member {
    std::size_t chunk = 0;
    std::size_t tensor = 0;
    std::uint64_t offset = 0;
    friend bool operator==(misaligned_member const&, misaligned_member const&) = default;
};

/// Members whose offset is no multiple of their item size: vLLM's and ms-swift's receivers raise on them after
/// the bytes have moved, so they must not be sent. Empty for the native layout; `order_for_vllm` is the remedy.
inline std::vector<misaligned_member> misaligned_members(packing_plan const& plan,
                                                         std::span<planned_tensor const> tensors) {
    std::vector<misaligned_member> found;
    for (auto const& [index, chunk] : ranges::views::enumerate(plan.chunks())) {
        for (auto const& member : chunk.members) {
            if (member.offset % item_size(tensors[member.tensor].type) == 0) continue;
            found.push_back({index, member.tensor, member.offset});
        }
    }
    return found;
}

}  // namespace weightcast
