// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/plan is host-only: include it from a .cpp file"
#endif
// Which layer a checkpoint name belongs to: what is loaded, post-processed and ordered together.

#include <algorithm>
#include <string_view>

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

}  // namespace weightcast
