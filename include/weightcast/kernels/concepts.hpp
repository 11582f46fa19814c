// SPDX-License-Identifier: Apache-2.0
#pragma once
// The concepts of kernels/ and their explanations in full sentences.

#include <cstdint>

#include <weightcast/kernels/launch.hpp>
#include <weightcast/runtime/concepts.hpp>
#include <weightcast/tensor/tensor_view.hpp>

namespace weightcast {

template <class R>
concept has_pack_launch = requires(const_tensor_view<typename R::space> const& view,
                                   std::uint64_t byte, void* to, typename R::stream_ref stream) {
    kernel_launcher<R>::pack_async(view, byte, byte, to, stream);
};
template <class R>
concept has_unpack_launch = requires(tensor_view<typename R::space> const& view, std::uint64_t byte,
                                     void const* from, typename R::stream_ref stream) {
    kernel_launcher<R>::unpack_async(from, view, byte, byte, stream);
};

/// A runtime on whose streams the kernels run.
/// Semantics: what is launched runs in the order of the stream and never on the caller.
/// Laws: tests/laws/kernel_laws.hpp. Models: host_runtime with host_launch.hpp; near-miss: a
/// runtime without a specialisation of kernel_launcher.
template <class R>
concept KernelRuntime = DeviceRuntime<R> && has_pack_launch<R> && has_unpack_launch<R>;

/// Says in full sentences why R is no KernelRuntime; true when it is one.
template <class R>
consteval bool explain_kernel_runtime() {
    static_assert(
        has_pack_launch<R>,
        "KernelRuntime: kernel_launcher<R> needs pack_async(view, first, last, to, stream); is the "
        "runtime's launch header included?");
    static_assert(
        has_unpack_launch<R>,
        "KernelRuntime: kernel_launcher<R> needs unpack_async(from, view, first, last, stream); is "
        "the runtime's launch header included?");
    return explain_device_runtime<R>() && KernelRuntime<R>;
}

}  // namespace weightcast
