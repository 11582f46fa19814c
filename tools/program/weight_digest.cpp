// SPDX-License-Identifier: Apache-2.0
#include <program/weight_digest.hpp>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

#include <weightcast/kernels/model_digest.hpp>

namespace weightcast::program {

weight_digests digests_of(weight_memory const& weights) {
    weight_digests digests;
    std::vector<std::size_t> order(weights.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    auto const name = [&](std::size_t i) -> auto const& { return weights.parameters()[i].name; };
    std::ranges::sort(order, {}, name);
    model_digest_state model;
    for (auto const i : order) model.add(name(i), weights.tensor(i));
    digests.model = model.value();
    digests.tensors.reserve(weights.size());
    for (std::size_t i = 0; i < weights.size(); ++i) {
        digests.tensors.push_back(tensor_digest(weights.tensor(i)));
    }
    return digests;
}

}  // namespace weightcast::program
