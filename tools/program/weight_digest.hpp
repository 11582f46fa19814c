// SPDX-License-Identifier: Apache-2.0
#pragma once
// Digests of a copy of a model: of the whole, and of each tensor, so that a difference has a name.

#include <cstdint>
#include <span>
#include <vector>

#include <program/weight_memory.hpp>

#include <weightcast/tensor/named_view.hpp>

namespace weightcast::program {

struct weight_digests {
    std::uint64_t model = 0;               ///< over names, dtypes, shapes and bytes, in name order
    std::vector<std::uint64_t> tensors{};  ///< one a tensor, in the order in which they were given
    friend bool operator==(weight_digests const&, weight_digests const&) = default;
};

/// Cost: each byte is read twice.
weight_digests digests_of(std::span<named_view<> const> tensors);
weight_digests digests_of(weight_memory const& weights);

}  // namespace weightcast::program
