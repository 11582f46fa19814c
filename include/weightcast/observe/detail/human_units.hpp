// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/observe is host-only: include it from a .cpp file"
#endif
// Sizes, rates and times as people read them, never wider than a few characters.

#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>

namespace weightcast::detail {

/// Three significant digits: "0.75", "40.9", "123".
inline std::string three_digits(double value) {
    std::array<char, 32> text{};
    int const decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
    std::snprintf(text.data(), text.size(), "%.*f", decimals, value);
    return text.data();
}

/// "512 B", "1.50 kB", "90.9 MB", in powers of 1000.
inline std::string human_bytes(std::uint64_t bytes) {
    if (bytes < 1000) return std::to_string(bytes) + " B";
    auto value = static_cast<double>(bytes);
    std::string unit;
    for (auto const* const next : {"kB", "MB", "GB", "TB", "PB", "EB"}) {
        if (value < 999.5 && !unit.empty()) break;
        value /= 1000;
        unit = next;
    }
    return three_digits(value) + " " + unit;
}

/// "0.75 GB/s"; "-- GB/s" while no time has passed.
inline std::string human_rate(std::uint64_t bytes, double seconds) {
    if (!(seconds > 0)) return "-- GB/s";
    return three_digits(static_cast<double>(bytes) / seconds / 1e9) + " GB/s";
}

/// "0:07", "12:34", "3:25:45"; "--:--" for what is no time or over four days.
inline std::string human_clock(double seconds) {
    if (!(seconds >= 0) || seconds >= 100 * 3600.0) return "--:--";
    auto const whole = static_cast<unsigned>(std::ceil(seconds));
    std::array<char, 32> text{};
    if (whole < 3600) {
        std::snprintf(text.data(), text.size(), "%u:%02u", whole / 60, whole % 60);
    } else {
        std::snprintf(text.data(), text.size(), "%u:%02u:%02u", whole / 3600, whole / 60 % 60,
                      whole % 60);
    }
    return text.data();
}

}  // namespace weightcast::detail
