// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where something listens: a host and a port, in the one written form that every option and message uses.

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <compare>
#include <concepts>
#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <weightcast/base/error.hpp>

namespace weightcast {

namespace detail {

inline bool is_ipv4(std::string const& text) {
    in_addr parsed{};
    return inet_pton(AF_INET, text.c_str(), &parsed) == 1;
}
/// With or without a scope id ("fe80::1%eth0").
inline bool is_ipv6(std::string const& text) {
    auto const percent = text.find('%');
    in6_addr parsed{};
    if (inet_pton(AF_INET6, text.substr(0, percent).c_str(), &parsed) != 1) return false;
    if (percent == std::string::npos) return true;
    auto const scope = std::string_view{text}.substr(percent + 1);
    auto const allowed = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '.' || c == '-' || c == '_';
    };
    return !scope.empty() && scope.size() <= 32 && std::all_of(scope.begin(), scope.end(), allowed);
}

inline bool is_host_name(std::string_view text) {
    if (text.empty() || text.size() > 253) return false;
    if (text.ends_with('.')) text.remove_suffix(1);  // fully qualified
    bool only_digits = true;
    std::size_t label = 0;
    for (char const c : text) {
        bool const digit = c >= '0' && c <= '9';
        bool const letter =
            (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_';
        if (c == '.' ? label == 0 : !digit && !letter) return false;
        label = c == '.' ? 0 : label + 1;
        if (label > 63 || (c == '-' && label == 1)) return false;
        only_digits = only_digits && (digit || c == '.');
    }
    return label > 0 && !only_digits;  // digits and dots alone are an IPv4 address or nothing
}

/// The host without brackets. @throws bad_argument  naming what is wrong with it
inline std::string checked_host(std::string_view host) {
    bool const bracketed = host.starts_with('[') && host.ends_with(']');
    std::string plain{bracketed ? host.substr(1, host.size() - 2) : host};
    bool const text = plain.find('\0') == std::string::npos;  // C would read only what is before it
    if (text && is_ipv6(plain)) return plain;
    if (text && !bracketed && (is_ipv4(plain) || is_host_name(plain))) return plain;
    throw bad_argument{"'" + std::string{host} +
                       "' is no host: expected a name, an IPv4 address or an IPv6 address"};
}

}  // namespace detail

/// Host (a name, an IPv4 or an IPv6 address, a scope id included) and port. Port 0 is for listening only:
/// the system chooses.
class endpoint {
  public:
    endpoint() noexcept = default;
    /// From its two parts; an IPv6 address may stand in brackets. @throws bad_argument
    endpoint(std::string_view host, int port) : host_{detail::checked_host(host)} {
        if (port < 0 || port > 65535) {
            throw bad_argument{"port " + std::to_string(port) + " is not from 0 to 65535"};
        }
        port_ = static_cast<std::uint16_t>(port);
    }
    /// Reads "host:port"; an IPv6 address needs its brackets there. @throws bad_argument
    template <std::convertible_to<std::string_view> Text>
    endpoint(Text const& text) : endpoint{parsed(text)} {}  // implicit: options take "host:port"

    /// Without brackets.
    std::string const& host() const noexcept { return host_; }
    std::uint16_t port() const noexcept { return port_; }
    bool empty() const noexcept { return host_.empty(); }
    endpoint with_port(int port) const { return {host_, port}; }

    friend bool operator==(endpoint const&, endpoint const&) = default;

  private:
    static endpoint parsed(std::string_view text) {
        auto const refuse = [&](std::string const& why) -> endpoint {
            throw bad_argument{"'" + std::string{text} + "' is no host:port: " + why};
        };
        auto const colon = text.rfind(':');
        if (colon == std::string_view::npos) return refuse("the port is missing");
        auto const host = text.substr(0, colon);
        auto const digits = text.substr(colon + 1);
        if (host.empty()) return refuse("the host is missing");
        if (host.find(':') != std::string_view::npos && !host.starts_with('[')) {
            return refuse("write an IPv6 address in brackets, as [::1]:29500");
        }
        int port = 0;
        auto const [end, code] =
            std::from_chars(digits.data(), digits.data() + digits.size(), port);
        bool const whole = code == std::errc{} && end == digits.data() + digits.size();
        if (!whole || port < 0 || port > 65535 || digits.size() > 5) {
            return refuse("the port is not a number from 0 to 65535");
        }
        return {host, port};
    }

    std::string host_;
    std::uint16_t port_ = 0;
};

/// "127.0.0.1:29500", "[::1]:29500", "trainer:29500"; `endpoint` reads it back.
inline std::string to_string(endpoint const& at) {
    bool const brackets = at.host().find(':') != std::string::npos;
    return (brackets ? "[" + at.host() + "]" : at.host()) + ":" + std::to_string(at.port());
}

inline std::ostream& operator<<(std::ostream& out, endpoint const& at) {
    return out << to_string(at);
}

}  // namespace weightcast
