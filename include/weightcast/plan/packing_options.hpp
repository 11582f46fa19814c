// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/plan is host-only: include it from a .cpp file"
#endif
// How an update is cut into transfers: both sides must plan with the same options.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include <weightcast/base/error.hpp>

namespace weightcast {

/// `native`: aligned members in chunks of bounded size, large contiguous tensors direct.
/// `vllm`: byte for byte the packed chunks of vLLM's engines.
enum class packing_layout : std::uint8_t { native, vllm };

constexpr std::string_view to_string(packing_layout layout) noexcept {
    return layout == packing_layout::vllm ? "vllm" : "native";
}

/// Sizes in bytes. The defaults are the native layout's; `vllm_packing()` has vLLM's.
struct packing_options {
    packing_layout layout = packing_layout::native;
    /// native: no chunk is larger; vllm: a chunk is closed once it is larger
    std::uint64_t chunk_bytes = std::uint64_t{64} << 20U;
    /// native: offsets of members are multiples of it; a power of two, at least 8
    std::uint64_t alignment = 64;
    /// native: contiguous tensors of at least so many bytes are not packed
    std::uint64_t direct_from = std::uint64_t{1} << 20U;
    /// buffers that a side cycles through; changes no cut
    std::size_t ring = 2;

    friend bool operator==(packing_options const&, packing_options const&) = default;
};

/// vLLM's layout; the peer's `packed_buffer_size_bytes` must be the same.
constexpr packing_options vllm_packing(std::uint64_t buffer_bytes = std::uint64_t{1}
                                                                    << 30U) noexcept {
    return {.layout = packing_layout::vllm, .chunk_bytes = buffer_bytes};
}

/// @throws bad_argument  for options with which nothing can be planned
inline void validate(packing_options const& options) {
    if (options.ring == 0) throw bad_argument{"packing: the ring needs at least 1 buffer, got 0"};
    if (options.chunk_bytes == 0)
        throw bad_argument{"packing: a chunk needs at least 1 byte, got 0"};
    if (options.layout == packing_layout::vllm) return;
    // 8 is the largest item size: with it every member can be viewed in place, whatever its dtype.
    if (!std::has_single_bit(options.alignment) || options.alignment < 8) {
        throw bad_argument{"packing: the alignment must be a power of two of at least 8, got " +
                           std::to_string(options.alignment)};
    }
    if (options.chunk_bytes < options.alignment) {
        throw bad_argument{"packing: a chunk of " + std::to_string(options.chunk_bytes) +
                           " bytes is smaller than the alignment " +
                           std::to_string(options.alignment)};
    }
    if (options.chunk_bytes > std::numeric_limits<std::uint64_t>::max() / options.ring) {
        throw bad_argument{"packing: a ring of " + std::to_string(options.ring) + " chunks of " +
                           std::to_string(options.chunk_bytes) + " bytes does not fit in 64 bits"};
    }
}

}  // namespace weightcast
