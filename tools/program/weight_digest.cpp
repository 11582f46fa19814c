// SPDX-License-Identifier: Apache-2.0
#include <program/weight_digest.hpp>

#include <span>

#include <weightcast/kernels/model_digest.hpp>

namespace weightcast::program {

weight_digests digests_of(std::span<named_view<> const> tensors) {
    weight_digests digests{.model = model_digest(tensors)};
    digests.tensors.reserve(tensors.size());
    for (auto const& t : tensors) digests.tensors.push_back(tensor_digest(t.tensor));
    return digests;
}

weight_digests digests_of(weight_memory const& weights) { return digests_of(weights.tensors()); }

}  // namespace weightcast::program
