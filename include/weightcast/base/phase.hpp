// SPDX-License-Identifier: Apache-2.0
#pragma once
// The five phases of an update: every message, limit and failure names one of them.

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace weightcast {

/// Where in an update something happens.
enum class phase : std::uint8_t { connect, preflight, payload, vote, commit };

namespace detail {
inline constexpr std::array<std::string_view, 5> phase_names{"connect", "preflight", "payload",
                                                             "vote", "commit"};
}  // namespace detail

/// The word that messages and flags use.
constexpr std::string_view to_string(phase p) noexcept {
    auto const i = static_cast<std::size_t>(p);
    return i < detail::phase_names.size() ? detail::phase_names[i] : "unknown phase";
}

/// The phase of that name, or nothing.
constexpr std::optional<phase> parse_phase(std::string_view name) noexcept {
    for (std::size_t i = 0; i < detail::phase_names.size(); ++i) {
        if (detail::phase_names[i] == name) return static_cast<phase>(i);
    }
    return std::nullopt;
}

}  // namespace weightcast
