// SPDX-License-Identifier: Apache-2.0
#pragma once
// The kernels on the streams of host_runtime: the same bodies, run by the stream's thread.

#include <cstdint>

#include <weightcast/kernels/concepts.hpp>
#include <weightcast/kernels/launch.hpp>
#include <weightcast/kernels/pack_body.hpp>
#include <weightcast/kernels/strided_region.hpp>
#include <weightcast/runtime/host_runtime.hpp>

namespace weightcast {

template <>
struct kernel_launcher<host_runtime> {
    /// @throws bad_argument  for a range outside the tensor or a null destination; nothing was
    ///                       enqueued
    static void pack_async(const_tensor_view<host_space> const& from, std::uint64_t first,
                           std::uint64_t last, void* to, host_runtime::stream_ref stream) {
        auto const arguments = pack_arguments_of(from, first, last, to);
        if (first == last) return;
        host_runtime::enqueue(stream,
                              [arguments]() noexcept { kernels::pack_body(arguments, 0, 1); });
    }
    /// @throws bad_argument  for a range outside the tensor, a null source, or a tensor whose
    ///                       elements overlap; nothing was enqueued
    static void unpack_async(void const* from, tensor_view<host_space> const& to,
                             std::uint64_t first, std::uint64_t last,
                             host_runtime::stream_ref stream) {
        auto const arguments = unpack_arguments_of(from, to, first, last);
        if (first == last) return;
        host_runtime::enqueue(stream,
                              [arguments]() noexcept { kernels::unpack_body(arguments, 0, 1); });
    }
};
static_assert(KernelRuntime<host_runtime>);

}  // namespace weightcast
