// SPDX-License-Identifier: Apache-2.0
#pragma once
// The customisation point by which kernels run on a runtime's streams.

#include <weightcast/runtime/concepts.hpp>

namespace weightcast {

/// How kernels run on streams of R; each runtime's specialisation stands in a header of its own
/// (host_runtime: host_launch.hpp), which a communicator of that runtime includes.
/// - `pack_async(view, first, last, to, stream)`: bytes [first, last) of the flat tensor to `to`;
/// - `unpack_async(from, view, first, last, stream)`: `from` to those bytes of the tensor.
/// Both check their arguments at the call and throw bad_argument before anything is enqueued.
/// Ordering: in the order of the stream, after what it holds; memory must stay until the stream is
/// past it.
template <DeviceRuntime R>
struct kernel_launcher;

}  // namespace weightcast
