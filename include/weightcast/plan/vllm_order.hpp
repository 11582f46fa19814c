// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/plan is host-only: include it from a .cpp file"
#endif
// The order in which a sender hands tensors to vLLM's packed layout, so that the peer can view every member.

#include <algorithm>
#include <cstddef>
#include <functional>
#include <numeric>
#include <ranges>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <weightcast/model/layer_group.hpp>
#include <weightcast/plan/packing_plan.hpp>

namespace weightcast {

namespace detail {

/// The place of each tensor's layer group: 0 for names without a layer that come before the first layer, then
/// the layers as they appear, and last the other names without a layer.
inline std::vector<std::size_t> group_places(std::span<planned_tensor const> tensors) {
    std::unordered_map<std::string_view, std::size_t> seen;
    std::vector<std::size_t> places;
    places.reserve(tensors.size());
    for (auto const& tensor : tensors) {
        auto const group = layer_group_of(tensor.name);
        if (group.empty()) {
            places.push_back(seen.empty() ? 0 : tensors.size() + 1);
        } else {
            places.push_back(seen.try_emplace(group, seen.size() + 1).first->second);
        }
    }
    return places;
}

inline std::vector<planned_tensor> reordered(std::span<planned_tensor const> tensors,
                                             std::span<std::size_t const> order) {
    std::vector<planned_tensor> result;
    result.reserve(order.size());
    for (auto const index : order) result.push_back(tensors[index]);
    return result;
}

}  // namespace detail

/// Indices of the tensors in the order to send them: by item size, largest first, inside a layer group; equal ones
/// as given. Where a group of odd size would still push a later member off its item size (fp8 3x3 and its float32
/// scale, layer after layer), the whole list is ordered by item size instead, which always fits: then layers are
/// not sent one after the other.
/// @throws as packing_plan
/// Cost: n log n steps.
inline std::vector<std::size_t> order_for_vllm(std::span<planned_tensor const> tensors,
                                               packing_options const& options = vllm_packing()) {
    std::vector<std::size_t> order(tensors.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    auto const wide_first = [&](std::size_t index) { return item_size(tensors[index].type); };
    std::ranges::stable_sort(order, std::greater{}, wide_first);
    auto by_layer = order;
    auto const places = detail::group_places(tensors);
    std::ranges::stable_sort(by_layer, {}, [&](std::size_t index) { return places[index]; });
    auto const sent = detail::reordered(tensors, by_layer);
    return misaligned_members(packing_plan{sent, options}, sent).empty() ? by_layer : order;
}

}  // namespace weightcast
