// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/plan is host-only: include it from a .cpp file"
#endif
// One number for all that two ranks must agree on before bytes move.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include <weightcast/kernels/digest.hpp>
#include <weightcast/plan/packed_chunk.hpp>
#include <weightcast/plan/packing_options.hpp>
#include <weightcast/plan/planned_tensor.hpp>
#include <weightcast/tensor/dtype.hpp>

namespace weightcast::detail {

/// Numbers as 8 little-endian bytes, texts with their length in front, so that no two different plans give the
/// same bytes.
class plan_digester {
  public:
    plan_digester& number(std::uint64_t value) noexcept {
        std::array<std::byte, 8> bytes{};
        for (auto& byte : bytes) {
            byte = static_cast<std::byte>(value & 0xffU);
            value >>= 8U;
        }
        state_.update(bytes);
        return *this;
    }
    plan_digester& text(std::string_view value) noexcept {
        number(value.size());
        state_.update(std::as_bytes(std::span{value.data(), value.size()}));
        return *this;
    }
    std::uint64_t value() const noexcept { return state_.value(); }

  private:
    digest_state state_;
};

/// The ring's length is left out: each side may cycle through as many buffers as it likes. So is `contiguous`:
/// what it decides shows in the cut.
/// Cost: every name and member once.
inline std::uint64_t plan_digest(std::span<planned_tensor const> tensors,
                                 packing_options const& options,
                                 std::span<packed_chunk const> chunks,
                                 std::span<direct_tensor const> direct) {
    plan_digester all;
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
    return all.value();
}

}  // namespace weightcast::detail
