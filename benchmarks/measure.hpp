// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the benchmarks share: pre-touched memory, a clock, medians.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>

namespace bench {

/// Memory whose pages are all there: page faults are no part of a copy.
inline std::vector<std::byte> touched(std::size_t bytes, int value = 1) {
    return std::vector<std::byte>(bytes, static_cast<std::byte>(value));
}

template <class F>
double seconds(F const& run) {
    auto const begin = std::chrono::steady_clock::now();
    run();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

inline double median(std::vector<double> values) {
    std::ranges::sort(values);
    return values[values.size() / 2];
}

/// One measured way to move the same bytes.
struct variant {
    std::string name;
    std::vector<double> runs{};
    double gb_per_s(double bytes) const { return bytes / median(runs) / 1e9; }
};

/// "name  median GB/s  [slowest fastest]  ratio".
inline void print(variant const& v, double bytes, double reference) {
    auto const [fastest, slowest] = std::ranges::minmax_element(v.runs);
    fmt::print("{:<44} {:>7.2f} GB/s  [{:>6.2f} {:>6.2f}]  {:>5.2f}\n", v.name, v.gb_per_s(bytes),
               bytes / *slowest / 1e9, bytes / *fastest / 1e9, v.gb_per_s(bytes) / reference);
}

}  // namespace bench
