// SPDX-License-Identifier: Apache-2.0
#pragma once
// Digests of a copy of a model: of the whole, and of each tensor, so that a difference has a name.

#include <cstdint>
#include <vector>

#include <program/weight_memory.hpp>

namespace weightcast::program {

struct weight_digests {
    std::uint64_t model = 0;               ///< over names, dtypes, shapes and bytes, in name order
    std::vector<std::uint64_t> tensors{};  ///< one a tensor, in the order of the parameters
    friend bool operator==(weight_digests const&, weight_digests const&) = default;
};

/// Cost: each byte is read twice.
weight_digests digests_of(weight_memory const& weights);

}  // namespace weightcast::program
