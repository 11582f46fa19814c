// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/model is host-only: include it from a .cpp file"
#endif
// Which weights a target holds.

#include <cstdint>
#include <optional>
#include <string>

namespace weightcast {

/// A number that the sender counts from 1, and an optional label. Never set: number 0, which no label equals,
/// although it prints as "default".
struct weight_version {
    std::uint64_t number = 0;
    std::optional<std::string> label{};

    bool is_set() const noexcept { return number != 0; }
    friend bool operator==(weight_version const&, weight_version const&) = default;
};

/// The label, else the number, else "default".
inline std::string to_string(weight_version const& version) {
    if (version.label) return *version.label;
    return version.is_set() ? std::to_string(version.number) : "default";
}

}  // namespace weightcast
