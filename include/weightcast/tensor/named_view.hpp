// SPDX-License-Identifier: Apache-2.0
#pragma once
// A tensor with its checkpoint name: what files hold, digests cover and lists of weights consist
// of.

#include <string_view>

#include <weightcast/tensor/tensor_view.hpp>

namespace weightcast {

/// A checkpoint name and a tensor that may only be read; owns neither.
template <MemorySpace Space = host_space>
struct named_view {
    std::string_view name{};
    const_tensor_view<Space> tensor{};
};

}  // namespace weightcast
