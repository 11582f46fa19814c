// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/model is host-only: include it from a .cpp file"
#endif
// How alike two names are.

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <vector>

namespace weightcast::detail {

/// Insertions, deletions and replacements from a to b, or limit + 1 when it takes more than limit.
/// Cost: length times 2 * limit + 1.
inline std::size_t edit_distance(std::string_view a, std::string_view b, std::size_t limit) {
    if (a.size() > b.size()) std::swap(a, b);
    if (b.size() - a.size() > limit) return limit + 1;
    std::vector<std::size_t> row(a.size() +
                                 1);  // distance of b's first j characters to a's first i
    for (std::size_t i = 0; i <= a.size(); ++i) row[i] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
        auto const low = j > limit ? j - limit : 1;
        auto const high = std::min(a.size(), j + limit);
        auto diagonal = row[low - 1];
        row[low - 1] = low == 1 ? j : limit + 1;
        auto least = row[low - 1];
        for (auto i = low; i <= high; ++i) {
            auto const above = i == j + limit ? limit + 1 : row[i];  // outside the band before
            auto const next =
                std::min({diagonal + (a[i - 1] == b[j - 1] ? 0 : 1), above + 1, row[i - 1] + 1});
            diagonal = row[i];
            row[i] = next;
            least = std::min(least, next);
        }
        if (least > limit) return limit + 1;
    }
    return std::min(row[a.size()], limit + 1);
}

/// Characters of the whole components ("a.b" has two) that both names end with, dots between them included.
inline std::size_t common_suffix(std::string_view a, std::string_view b) {
    std::size_t same = 0;
    std::size_t components = 0;
    auto const ends_here = [&](std::string_view name) {
        return same == name.size() || name[name.size() - 1 - same] == '.';
    };
    while (true) {
        if (ends_here(a) && ends_here(b)) components = same;
        if (same == a.size() || same == b.size()) return components;
        if (a[a.size() - 1 - same] != b[b.size() - 1 - same]) return components;
        ++same;
    }
}

}  // namespace weightcast::detail
