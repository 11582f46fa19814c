// SPDX-License-Identifier: Apache-2.0
#pragma once
// One step of a make-believe training: some elements get other bits, from a seed that only the trainer has.

#include <cstdint>

#include <program/weight_memory.hpp>

namespace weightcast::program {

/// What a step changes.
struct change_options {
    double fraction = 0.02;  ///< of all elements, in [0, 1]
    std::uint64_t seed = 1;
};

/// Changes the bits of that fraction of the elements, spread over the whole model: the same elements and bits
/// for the same seed and step. At least one changes where the fraction is not 0. Returns how many did.
/// Cost: linear in the elements that change.
std::uint64_t change_weights(weight_memory const& weights, change_options const& options,
                             std::uint64_t step);

}  // namespace weightcast::program
