// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/io is host-only: include it from a .cpp file"
#endif
// Names and paths from outside, shown in messages: on one line, and never too long.

#include <cstddef>
#include <string>
#include <string_view>

namespace weightcast::detail {

/// 'text', with control characters as \xNN and at most 200 characters: a longer one keeps both
/// ends.
inline std::string in_quotes(std::string_view text) {
    constexpr std::size_t longest = 200;
    constexpr std::string_view digits = "0123456789abcdef";
    std::string result = "'";
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text.size() > longest && i == longest / 2) {
            result += "...";
            i = text.size() - longest / 2;
        }
        auto const c = static_cast<unsigned char>(text[i]);
        if (c >= 0x20 && c != 0x7F) {
            result += text[i];
        } else {
            result.append("\\x").append(1, digits[c >> 4U]).append(1, digits[c & 15U]);
        }
    }
    return result + "'";
}

}  // namespace weightcast::detail
