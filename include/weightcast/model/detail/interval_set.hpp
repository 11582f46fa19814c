// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/model is host-only: include it from a .cpp file"
#endif
// Sets of element numbers as sorted, disjoint intervals that do not touch.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace weightcast::detail {

/// Elements [first, last).
struct element_interval {
    std::uint64_t first = 0;
    std::uint64_t last = 0;
    friend bool operator==(element_interval const&, element_interval const&) = default;
};
using interval_set = std::vector<element_interval>;

/// Adds an interval that begins at or behind the last one's begin.
inline void append(interval_set& set, element_interval next) {
    if (next.first >= next.last) return;
    if (!set.empty() && next.first <= set.back().last) {
        set.back().last = std::max(set.back().last, next.last);
    } else {
        set.push_back(next);
    }
}

inline std::uint64_t element_count(interval_set const& set) {
    std::uint64_t count = 0;
    for (auto const& i : set) count += i.last - i.first;
    return count;
}

/// What intervals in any order hold once and more, and what they hold twice and more.
struct swept {
    interval_set once{};
    interval_set twice{};
};
/// Cost: n log n in the number of intervals.
inline swept sweep(std::vector<element_interval> intervals) {
    std::sort(intervals.begin(), intervals.end(),
              [](auto const& a, auto const& b) { return a.first < b.first; });
    swept result;
    for (auto const& i : intervals) {
        auto const end = result.once.empty() ? 0 : result.once.back().last;
        append(result.twice, {i.first, std::min(i.last, end)});
        append(result.once, i);
    }
    return result;
}

/// The elements of a that b does not hold. Cost: linear.
inline interval_set difference(interval_set const& a, interval_set const& b) {
    interval_set rest;
    std::size_t k = 0;
    for (auto i : a) {
        while (k < b.size() && b[k].last <= i.first) ++k;
        for (auto j = k; j < b.size() && b[j].first < i.last; ++j) {
            append(rest, {i.first, b[j].first});
            i.first = std::max(i.first, b[j].last);
            k = j;
        }
        append(rest, i);
    }
    return rest;
}

}  // namespace weightcast::detail
