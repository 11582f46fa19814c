// SPDX-License-Identifier: Apache-2.0
#pragma once
// Strided tensors of the host to dense bytes and back, on the calling thread.

#include <cstdint>

#include <weightcast/kernels/pack_body.hpp>
#include <weightcast/kernels/strided_region.hpp>
#include <weightcast/tensor/space.hpp>
#include <weightcast/tensor/tensor_view.hpp>

namespace weightcast {

/// Copies bytes [first, last) of the flattened (row-major) tensor to `to`; cuts may fall inside
/// elements. The ranges must not overlap. Cost: each byte once; a contiguous tensor is one memcpy.
/// @throws bad_argument  for a range outside the tensor or a null destination; nothing was written
inline void pack(const_tensor_view<host_space> const& from, std::uint64_t first, std::uint64_t last,
                 void* to) {
    kernels::pack_body(pack_arguments_of(from, first, last, to), 0, 1);
}
/// All bytes of the tensor.
inline void pack(const_tensor_view<host_space> const& from, void* to) {
    pack(from, 0, from.bytes(), to);
}

/// Copies `from` to bytes [first, last) of the flattened (row-major) tensor; other bytes stay as
/// they are. The ranges must not overlap. Cost: each byte once; a contiguous tensor is one memcpy.
/// @throws bad_argument  for a range outside the tensor, a null source, or a tensor whose elements
///                       overlap; nothing was written
inline void unpack(void const* from, tensor_view<host_space> const& to, std::uint64_t first,
                   std::uint64_t last) {
    kernels::unpack_body(unpack_arguments_of(from, to, first, last), 0, 1);
}
/// All bytes of the tensor.
inline void unpack(void const* from, tensor_view<host_space> const& to) {
    unpack(from, to, 0, to.bytes());
}

}  // namespace weightcast
