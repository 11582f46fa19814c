// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/model is host-only: include it from a .cpp file"
#endif
// Which layer a checkpoint name belongs to: what is loaded, post-processed and ordered together.

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <weightcast/model/parameter.hpp>

namespace weightcast {

/// The name up to its outermost integer segment: "model.layers.12" of "model.layers.12.mlp.experts.3.w1".
/// Empty for a name without one ("lm_head.weight"). Refers to the name's memory.
/// Cost: one pass over the name.
constexpr std::string_view layer_group_of(std::string_view name) noexcept {
    for (std::size_t begin = 0; begin < name.size();) {
        auto const end = std::min(name.find('.', begin), name.size());
        auto const segment = name.substr(begin, end - begin);
        auto const is_digit = [](char c) { return c >= '0' && c <= '9'; };
        if (!segment.empty() && std::all_of(segment.begin(), segment.end(), is_digit)) {
            return name.substr(0, end);
        }
        begin = end + 1;
    }
    return {};
}

/// The parameters of one layer.
struct layer_group {
    std::string name{};  ///< "model.layers.12"; empty: those of no layer
    std::vector<parameter> parameters{};
};

/// Groups parameters by layer: groups in the order in which they first appear, parameters in theirs. Those of no
/// layer, wherever they stand, are one group without a name; layers of several stacks ("encoder.0", "decoder.0") are
/// groups of their own.
inline std::vector<layer_group> layer_groups(std::vector<parameter> const& parameters) {
    std::vector<layer_group> groups;
    std::unordered_map<std::string_view, std::size_t> places;
    for (auto const& p : parameters) {
        auto const name = layer_group_of(p.name);
        auto const [place, added] = places.try_emplace(name, groups.size());
        if (added) groups.push_back({std::string{name}, {}});
        groups[place->second].parameters.push_back(p);
    }
    return groups;
}

}  // namespace weightcast
