// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/model is host-only: include it from a .cpp file"
#endif
// Boxes of a tensor's elements in memory order, joined before they are cut into intervals.

#include <algorithm>
#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include <weightcast/model/detail/interval_set.hpp>
#include <weightcast/tensor/extents.hpp>

namespace weightcast::detail {

/// A run of elements, and again `count` times at each of these strides. As many intervals as the counts' product;
/// none is 1.
struct strided_runs {
    struct step {
        std::uint64_t stride = 0;
        std::uint64_t count = 1;
        friend auto operator<=>(step const&, step const&) = default;
    };
    std::array<step, extents::max_rank>
        steps{};  ///< innermost first, unused ones at their defaults
    std::size_t used = 0;
    std::uint64_t first = 0;
    std::uint64_t run = 1;
};

/// Steps that only make a run longer become part of it.
inline void absorb(strided_runs& box) {
    std::size_t whole = 0;
    for (; whole < box.used && box.steps[whole].stride == box.run; ++whole) {
        box.run *= box.steps[whole].count;
    }
    if (whole == 0) return;
    auto const begin = box.steps.begin();
    std::move(begin + static_cast<std::ptrdiff_t>(whole),
              begin + static_cast<std::ptrdiff_t>(box.used), begin);
    std::fill(begin + static_cast<std::ptrdiff_t>(box.used - whole),
              begin + static_cast<std::ptrdiff_t>(box.used), strided_runs::step{});
    box.used -= whole;
}

/// @pre no size is 0
inline strided_runs runs_of_box(std::uint64_t first, extents const& sizes, extents const& strides) {
    strided_runs box;
    box.first = first;
    for (std::size_t d = 0; d < sizes.size(); ++d) {
        if (sizes[d] == 1) continue;
        box.steps[box.used++] = {static_cast<std::uint64_t>(strides[d]),
                                 static_cast<std::uint64_t>(sizes[d])};
    }
    std::sort(box.steps.begin(), box.steps.begin() + static_cast<std::ptrdiff_t>(box.used));
    absorb(box);
    return box;
}

/// Joins runs that lie next to each other at the same strides: the shards of a row, interleaved parts. Holds the same
/// elements, each as often as before.
/// Cost: n log n in the number of boxes, at most once a dimension: whatever is joined again has lost a step.
inline void join(std::vector<strided_runs>& boxes) {
    auto const key = [](strided_runs const& box) { return std::tie(box.steps, box.first); };
    for (auto before = boxes.size() + 1; boxes.size() < before;) {
        before = boxes.size();
        std::sort(boxes.begin(), boxes.end(),
                  [&](auto const& a, auto const& b) { return key(a) < key(b); });
        std::size_t kept = 0;
        for (std::size_t i = 1; i < boxes.size(); ++i) {
            auto& last = boxes[kept];
            auto const& next = boxes[i];
            // A run as long as its stride is whole: it is absorbed, and must not reach into its next turn.
            bool const fits = last.used == 0 || last.run + next.run <= last.steps[0].stride;
            if (last.steps == next.steps && last.first + last.run == next.first && fits) {
                last.run += next.run;
            } else {
                boxes[++kept] = next;
            }
        }
        if (!boxes.empty()) boxes.resize(kept + 1);
        for (auto& box : boxes) absorb(box);
    }
}

/// All intervals of a box.
inline void append_intervals(strided_runs const& box, std::size_t steps, std::uint64_t first,
                             std::vector<element_interval>& intervals) {
    if (steps == 0) {
        intervals.push_back({first, first + box.run});
        return;
    }
    auto const& step = box.steps[steps - 1];
    for (std::uint64_t i = 0; i < step.count; ++i) {
        append_intervals(box, steps - 1, first + i * step.stride, intervals);
    }
}

/// The intervals of all boxes, in no order. Cost: linear in their number once the boxes are joined.
inline std::vector<element_interval> intervals_of(std::vector<strided_runs> boxes) {
    join(boxes);
    std::vector<element_interval> intervals;
    for (auto const& box : boxes) append_intervals(box, box.used, box.first, intervals);
    return intervals;
}

}  // namespace weightcast::detail
