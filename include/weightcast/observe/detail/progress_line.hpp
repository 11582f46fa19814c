// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/observe is host-only: include it from a .cpp file"
#endif
// The text of a progress bar: a pure function, cut to the width that there is.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <weightcast/observe/detail/human_units.hpp>

namespace weightcast::detail {

struct progress_state {
    std::string_view phase{};
    std::string_view tensor{};
    std::uint64_t done = 0;
    std::uint64_t total = 0;  ///< 0 when it is not known
    double seconds = 0;
};

/// Printable ASCII, so that bytes are columns and no name moves the cursor.
inline std::string printable(std::string_view text) {
    std::string result{text};
    std::ranges::replace_if(result, [](char c) { return c < ' ' || c > '~'; }, '?');
    return result;
}

inline double fraction_done(progress_state const& s) {
    if (s.total == 0) return 0;
    return std::min(1.0, static_cast<double>(s.done) / static_cast<double>(s.total));
}

inline std::string bar(double fraction, std::size_t width) {
    auto const filled = static_cast<std::size_t>(fraction * static_cast<double>(width));
    std::string text(width, ' ');
    std::fill_n(text.begin(), filled, '=');
    if (filled < width) text[filled] = '>';
    return "[" + text + "]";
}

inline std::string progress_facts(progress_state const& s) {
    auto const rate = human_rate(s.done, s.seconds);
    if (s.total == 0) return human_bytes(s.done) + "  " + rate;
    auto const fraction = fraction_done(s);
    auto percent = std::to_string(static_cast<int>(fraction * 100));
    percent.insert(0, 3 - percent.size(), ' ');
    double const left = s.done == 0 ? -1 : s.seconds * (1 - fraction) / fraction;
    return percent + "%  " + human_bytes(s.done) + " of " + human_bytes(s.total) + "  " + rate +
           "  ETA " + human_clock(left);
}

/// "payload [=====>    ]  45%  40.9 MB of 90.9 MB  0.75 GB/s  ETA 0:07  encoder.layer.3", at most
/// `columns` characters: the tensor's name goes first, then the bar, then the end of the line.
inline std::string progress_line(progress_state const& s, std::size_t columns) {
    auto line = std::string{s.phase};
    auto const facts = progress_facts(s);
    constexpr std::size_t widest_bar = 30;
    constexpr std::size_t narrowest_bar = 10;
    auto const taken = line.size() + facts.size() + 5;  // with the bar's edges and blanks
    if (s.total != 0 && columns >= taken + narrowest_bar) {
        line += " " + bar(fraction_done(s), std::min(widest_bar, columns - taken));
    }
    line += "  " + facts;
    constexpr std::size_t shortest_name = 8;
    if (columns >= line.size() + 2 + shortest_name) {
        auto name = printable(s.tensor);
        auto const room = columns - line.size() - 2;
        if (name.size() > room) name = "..." + name.substr(name.size() - room + 3);
        if (!name.empty()) line += "  " + name;
    }
    return line.substr(0, columns);
}

/// "payload: 90.9 MB in 0.12 s, 0.75 GB/s".
inline std::string progress_summary(progress_state const& s, std::size_t columns) {
    auto const line = std::string{s.phase} + ": " + human_bytes(s.done) + " in " +
                      three_digits(s.seconds) + " s, " + human_rate(s.done, s.seconds);
    return line.substr(0, columns);
}

}  // namespace weightcast::detail
