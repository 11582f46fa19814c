// SPDX-License-Identifier: Apache-2.0
#pragma once
// Memory spaces: what the compiler may know about where a tensor lies.

#include <concepts>

namespace weightcast {

/// Memory that the host reads and writes: device kinds `cpu` and `host`.
struct host_space {};
/// Memory of CUDA devices.
struct cuda_space {};
/// Known at run time only, as for at::Tensor or DLPack.
struct dynamic_space {};

/// One of the three spaces.
template <class S>
concept MemorySpace =
    std::same_as<S, host_space> || std::same_as<S, cuda_space> || std::same_as<S, dynamic_space>;

}  // namespace weightcast
