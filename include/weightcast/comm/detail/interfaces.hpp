// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which of this machine's addresses a group uses: chosen here, in the open, and never by a fall-back.

#include <ifaddrs.h>
#include <net/if.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <weightcast/base/check.hpp>
#include <weightcast/base/error.hpp>
#include <weightcast/comm/detail/socket.hpp>

namespace weightcast::detail {

/// An address and the interface that has it.
struct interface_address {
    std::string interface{};
    socket_address address{};
};

/// All addresses of interfaces that are up.
inline std::vector<interface_address> list_interfaces() {
    ifaddrs* list = nullptr;
    check(posix_result{::getifaddrs(&list)}, "getifaddrs");
    std::vector<interface_address> found;
    for (ifaddrs const* one = list; one != nullptr; one = one->ifa_next) {
        if (one->ifa_addr == nullptr || (one->ifa_flags & IFF_UP) == 0) continue;
        int const family = one->ifa_addr->sa_family;
        if (family != AF_INET && family != AF_INET6) continue;
        socklen_t const length = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
        found.push_back({one->ifa_name, socket_address{one->ifa_addr, length}});
    }
    ::freeifaddrs(list);
    return found;
}

/// "lo (127.0.0.1, ::1), eth0 (192.0.2.2)"
inline std::string describe(std::vector<interface_address> const& all) {
    std::vector<std::pair<std::string, std::string>> names;
    for (auto const& one : all) {
        auto const same = [&](auto const& entry) { return entry.first == one.interface; };
        auto const known = std::ranges::find_if(names, same);
        if (known == names.end()) {
            names.emplace_back(one.interface, one.address.host());
        } else {
            known->second += ", " + one.address.host();
        }
    }
    std::string text;
    for (auto const& [name, addresses] : names) {
        text += (text.empty() ? "" : ", ") + name + " (" + addresses + ")";
    }
    return text.empty() ? "none" : text;
}

inline char const* family_name(int family) noexcept { return family == AF_INET6 ? "IPv6" : "IPv4"; }

/// What the choice depends on.
struct interface_wish {
    std::string interface{};   ///< the option: a name or an address of one; empty: not set
    std::string host{};        ///< of the rendezvous, as it was given
    socket_address towards{};  ///< this side's address of the connection to the rendezvous
    std::vector<socket_address> advertised{};  ///< addresses of the advertise option, if it is set
};
struct interface_choice {
    interface_address chosen{};
    std::string warning{};  ///< empty, or a line to log
};

/// @throws bad_argument  listing the interfaces, when none has that name or address
inline void require_interface(std::string const& wanted,
                              std::vector<interface_address> const& all) {
    auto const is_it = [&](interface_address const& one) {
        return one.interface == wanted || one.address.host() == wanted;
    };
    if (std::ranges::any_of(all, is_it)) return;
    throw bad_argument{"interface '" + wanted + "' is none of this machine's: " + describe(all)};
}

/// The first address of that interface in the family of the rendezvous.
/// @throws bad_argument  as require_interface; naming families, when it has none of that kind
inline interface_address named_interface(interface_wish const& wish,
                                         std::vector<interface_address> const& all) {
    require_interface(wish.interface, all);
    for (auto const& one : all) {
        if (one.address.host() == wish.interface) return one;
        if (one.interface == wish.interface && one.address.family() == wish.towards.family()) {
            return one;
        }
    }
    throw bad_argument{"interface '" + wish.interface + "' has no " +
                       family_name(wish.towards.family()) +
                       " address, and the rendezvous is reached over " +
                       family_name(wish.towards.family()) + "; this machine has " + describe(all)};
}

/// The explicit option wins; then the advertised address; then the address by which the rendezvous is reached.
/// @throws bad_argument  for an interface or an advertised address that this machine does not have
inline interface_choice choose_interface(interface_wish const& wish,
                                         std::vector<interface_address> const& all) {
    if (!wish.interface.empty()) return {named_interface(wish, all), {}};
    auto const owner_of = [&](socket_address const& address) -> std::optional<interface_address> {
        for (auto const& one : all) {
            if (one.address.same_host(address)) return one;
        }
        for (auto const& one : all) {  // all of 127.0.0.0/8 is the loopback's
            if (address.is_loopback() && one.address.is_loopback() &&
                one.address.family() == address.family()) {
                return interface_address{one.interface, address};
            }
        }
        return std::nullopt;
    };
    for (auto const& address : wish.advertised) {
        if (auto const owner = owner_of(address)) return {*owner, {}};
    }
    if (!wish.advertised.empty()) {
        throw bad_argument{"the advertised address " + wish.advertised.front().host() +
                           " is none of this machine's: " + describe(all) +
                           "; set gloo_options::interface to the one that other ranks can reach"};
    }
    auto const owner = owner_of(wish.towards);
    if (!owner) {
        throw bad_argument{"the address " + wish.towards.host() +
                           " by which the rendezvous is reached is on no interface: " +
                           describe(all) + "; set gloo_options::interface"};
    }
    bool const says_loopback = wish.host == "localhost" || is_ipv4(wish.host) || is_ipv6(wish.host);
    if (!owner->address.is_loopback() || says_loopback) return {*owner, {}};
    return {*owner, "the host name '" + wish.host + "' resolves to the loopback address " +
                        owner->address.host() + ": the group uses interface '" + owner->interface +
                        "', which no other machine can reach; set gloo_options::interface (" +
                        describe(all) + ") or another address of the rendezvous"};
}

}  // namespace weightcast::detail
