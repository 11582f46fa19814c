// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/plan is host-only: include it from a .cpp file"
#endif
// The parts of a packing plan.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace weightcast {

/// A tensor, or a piece of one, inside a chunk. Sizes in bytes.
struct chunk_member {
    std::size_t tensor = 0;        ///< index in the list that was planned
    std::uint64_t first_byte = 0;  ///< of the tensor's own bytes; not 0 where a tensor is cut
    std::uint64_t bytes = 0;
    std::uint64_t offset = 0;  ///< in the chunk
    friend bool operator==(chunk_member const&, chunk_member const&) = default;
};

/// One transfer of several tensors that the same rank holds.
struct packed_chunk {
    int root = 0;
    std::uint64_t bytes = 0;
    std::vector<chunk_member> members{};
    friend bool operator==(packed_chunk const&, packed_chunk const&) = default;
};

/// A tensor that is transferred by itself, in place.
struct direct_tensor {
    std::size_t tensor = 0;
    int root = 0;
    friend bool operator==(direct_tensor const&, direct_tensor const&) = default;
};

}  // namespace weightcast
