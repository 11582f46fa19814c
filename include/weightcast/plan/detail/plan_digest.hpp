// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/plan is host-only: include it from a .cpp file"
#endif
// One number for all that two ranks must agree on before bytes move.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <weightcast/plan/packed_chunk.hpp>
#include <weightcast/plan/packing_options.hpp>
#include <weightcast/plan/planned_tensor.hpp>
#include <weightcast/tensor/dtype.hpp>

namespace weightcast::detail {

/// Bytes to digest: numbers as 8 little-endian bytes, texts with their length in front, so that no two
/// different plans give the same bytes.
class digest_text {
  public:
    digest_text& number(std::uint64_t value) {
        for (int i = 0; i < 8; ++i) text_.push_back(static_cast<char>((value >> (8 * i)) & 0xffU));
        return *this;
    }
    digest_text& text(std::string_view value) {
        number(value.size());
        text_ += value;
        return *this;
    }
    std::string_view view() const noexcept { return text_; }

  private:
    std::string text_;
};

/// FNV-1a.
inline std::uint64_t digest_of(std::string_view text) noexcept {
    std::uint64_t hash = 0xcbf29ce484222325U;
    for (char const c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
    return hash;
}

/// The ring's length is left out: each side may cycle through as many buffers as it likes. So is `contiguous`:
/// what it decides shows in the cut.
inline std::uint64_t plan_digest(std::span<planned_tensor const> tensors,
                                 packing_options const& options,
                                 std::span<packed_chunk const> chunks,
                                 std::span<direct_tensor const> direct) {
    digest_text all;
    all.text(to_string(options.layout)).number(options.chunk_bytes);
    if (options.layout == packing_layout::native) {
        all.number(options.alignment).number(options.direct_from);
    }
    all.number(tensors.size());
    for (auto const& tensor : tensors) {
        all.text(tensor.name).text(to_string(tensor.type)).number(tensor.shape.size());
        for (auto const extent : tensor.shape) all.number(static_cast<std::uint64_t>(extent));
        all.number(static_cast<std::uint64_t>(tensor.root));
    }
    all.number(chunks.size());
    for (auto const& chunk : chunks) {
        all.number(static_cast<std::uint64_t>(chunk.root)).number(chunk.bytes);
        all.number(chunk.members.size());
        for (auto const& member : chunk.members) {
            all.number(member.tensor).number(member.first_byte);
            all.number(member.bytes).number(member.offset);
        }
    }
    all.number(direct.size());
    for (auto const& whole : direct) all.number(whole.tensor);
    return digest_of(all.view());
}

}  // namespace weightcast::detail
