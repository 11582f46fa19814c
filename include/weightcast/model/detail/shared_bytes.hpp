// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/model is host-only: include it from a .cpp file"
#endif
// Which tensors of a list have bytes in common.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include <weightcast/model/detail/address_range.hpp>
#include <weightcast/model/detail/interval_set.hpp>
#include <weightcast/model/detail/strided_runs.hpp>
#include <weightcast/tensor/dtype.hpp>
#include <weightcast/tensor/extents.hpp>
#include <weightcast/tensor/tensor_view.hpp>

namespace weightcast::detail {

/// The tensor's bytes, counted from an address before it.
template <MemorySpace Space>
std::vector<element_interval> byte_intervals(tensor_view<Space> const& view, std::uint64_t base) {
    auto const item = item_size(view.type());
    auto runs = runs_of_box(0, view.shape(), view.strides());
    runs.first = reinterpret_cast<std::uint64_t>(view.data()) - base;
    runs.run *= item;
    for (auto& step : runs.steps) step.stride *= item;
    return intervals_of({runs});
}

/// Exact for tensors that lie between each other's elements. @pre  their ranges overlap
template <MemorySpace Space>
bool share_bytes(tensor_view<Space> const& a, tensor_view<Space> const& b) {
    if (a.contiguous() && b.contiguous()) return true;
    auto const base = std::min(range_of(a).first, range_of(b).first);
    auto both = byte_intervals(a, base);
    auto const more = byte_intervals(b, base);
    both.insert(both.end(), more.begin(), more.end());
    return !sweep(std::move(both)).twice.empty();
}

/// Pairs of indices, the smaller first. Cost: n log n, and for each pair of overlapping ranges that are not dense their
/// intervals.
template <MemorySpace Space>
std::vector<std::pair<std::size_t, std::size_t>> sharing_pairs(
    std::vector<tensor_view<Space>> const& views) {
    struct placed {
        address_range range;
        std::size_t index;
    };
    std::vector<placed> order;
    for (std::size_t i = 0; i < views.size(); ++i) {
        auto const range = range_of(views[i]);
        if (range.bytes() != 0) order.push_back({range, i});
    }
    std::sort(order.begin(), order.end(),
              [](placed const& a, placed const& b) { return a.range.first < b.range.first; });
    std::vector<std::pair<std::size_t, std::size_t>> pairs;
    std::vector<placed> open;
    for (auto const& next : order) {
        std::erase_if(open, [&](placed const& p) { return p.range.last <= next.range.first; });
        for (auto const& before : open) {
            auto const& a = views[before.index];
            auto const& b = views[next.index];
            if (a.where() == b.where() && share_bytes(a, b))
                pairs.push_back(std::minmax({before.index, next.index}));
        }
        open.push_back(next);
    }
    return pairs;
}

}  // namespace weightcast::detail
