// SPDX-License-Identifier: Apache-2.0
#pragma once
// The yardstick of a transfer: plain memcpy of the same sizes, in the same run.

#include <cstddef>

#include <program/weight_memory.hpp>

namespace weightcast::program {

/// Copies a model, tensor by tensor, into memory of bounded size that is used again and again.
class copy_meter {
  public:
    explicit copy_meter(weight_memory const& weights);

    /// Seconds for all tensors.
    double seconds() const;

  private:
    static constexpr std::size_t most_bytes = std::size_t{64} << 20U;

    weight_memory const& weights_;
    weight_memory target_;
};

}  // namespace weightcast::program
