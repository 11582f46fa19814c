// SPDX-License-Identifier: Apache-2.0
#pragma once
// A device as torch writes it, and the virtual `host:i` of host_runtime beside it.

#include <charconv>
#include <compare>
#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>

#include <weightcast/base/error.hpp>

namespace weightcast {

/// `cpu` is ordinary memory, never waited for; the others are accelerators.
enum class device_kind : std::uint8_t { cpu, cuda, host };

constexpr std::string_view to_string(device_kind kind) noexcept {
    switch (kind) {
        case device_kind::cuda: return "cuda";
        case device_kind::host: return "host";
        case device_kind::cpu: break;
    }
    return "cpu";
}

/// A device: kind and index. An accelerator's index may be `unresolved` until a communicator is
/// made.
struct device {
    static constexpr int unresolved = -1;

    device_kind kind = device_kind::cpu;
    int index = 0;

    /// Accelerators are waited for and staged across indices; `cpu` is not.
    constexpr bool is_accelerator() const noexcept { return kind != device_kind::cpu; }
    constexpr bool is_resolved() const noexcept { return index != unresolved; }
    /// This device, an unresolved index replaced by that one.
    constexpr device resolved_to(int current) const noexcept {
        return is_resolved() ? *this : device{kind, current};
    }

    friend constexpr bool operator==(device const&, device const&) = default;
    friend constexpr auto operator<=>(device const&, device const&) = default;
};

inline constexpr device cpu_device{};

/// "cpu", "cuda", "cuda:1", "host", "host:1"; `parse_device` reads it back.
inline std::string to_string(device d) {
    std::string text{to_string(d.kind)};
    if (d.is_accelerator() && d.is_resolved()) text += ":" + std::to_string(d.index);
    return text;
}

inline std::ostream& operator<<(std::ostream& out, device d) { return out << to_string(d); }

/// Reads "cpu", "cpu:0", "cuda", "cuda:1", "host", "host:1". One without an index stays unresolved.
/// @throws bad_argument  for any other text
inline device parse_device(std::string_view text) {
    auto const refuse = [&]() -> device {
        throw bad_argument{"device '" + std::string{text} +
                           "' is none of cpu, cuda, cuda:N, host, host:N"};
    };
    auto const colon = text.find(':');
    auto const kind_name = text.substr(0, colon);
    device parsed{};
    if (kind_name == "cuda") {
        parsed = {device_kind::cuda, device::unresolved};
    } else if (kind_name == "host") {
        parsed = {device_kind::host, device::unresolved};
    } else if (kind_name != "cpu") {
        return refuse();
    }
    if (colon == std::string_view::npos) return parsed;
    auto const digits = text.substr(colon + 1);
    int index = 0;
    auto const [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
    bool const canonical =
        digits == "0" || (!digits.empty() && digits.front() >= '1' && digits.front() <= '9');
    if (code != std::errc{} || end != digits.data() + digits.size() || !canonical) {
        return refuse();
    }
    if (!parsed.is_accelerator() && index != 0) return refuse();
    parsed.index = index;
    return parsed;
}

}  // namespace weightcast
