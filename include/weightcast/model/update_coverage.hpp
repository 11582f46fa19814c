// SPDX-License-Identifier: Apache-2.0
#pragma once
// How much of a target an update promises to bring.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace weightcast {

/// From all of a target to any part of it. What is left out against the promise is a refusal in the preflight; what
/// may be left out is reported.
enum class update_coverage : std::uint8_t {
    everything,  ///< every parameter, and every registered buffer
    parameters,  ///< every parameter: the default
    partial,     ///< some; of a bundle, all members or none
    members      ///< some, also single members of bundles
};

/// "everything", "parameters", "partial", "members".
constexpr std::string_view to_string(update_coverage c) noexcept {
    constexpr std::array<std::string_view, 4> names{"everything", "parameters", "partial",
                                                    "members"};
    auto const i = static_cast<std::size_t>(c);
    return i < names.size() ? names[i] : "unknown coverage";
}

}  // namespace weightcast
