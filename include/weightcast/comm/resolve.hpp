// SPDX-License-Identifier: Apache-2.0
#pragma once
// Names to addresses before anyone connects, with a deadline that a slow name service cannot break.

#include <netdb.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <weightcast/base/deadline.hpp>
#include <weightcast/base/error.hpp>
#include <weightcast/comm/detail/socket.hpp>
#include <weightcast/comm/endpoint.hpp>

namespace weightcast {

namespace detail {

/// What the name service answered.
struct resolution {
    int code = 0;  ///< of getaddrinfo, 0 for success
    std::vector<socket_address> addresses{};
};

inline resolution look_up(std::string const& host, std::uint16_t port, bool numeric) {
    addrinfo hints{};
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = numeric ? AI_NUMERICHOST : 0;
    addrinfo* list = nullptr;
    resolution found;
    found.code = ::getaddrinfo(host.c_str(), nullptr, &hints, &list);
    if (found.code != 0) return found;
    for (addrinfo const* one = list; one != nullptr; one = one->ai_next) {
        if (one->ai_family != AF_INET && one->ai_family != AF_INET6) continue;
        found.addresses.emplace_back(one->ai_addr, one->ai_addrlen).set_port(port);
    }
    ::freeaddrinfo(list);
    if (found.addresses.empty()) found.code = EAI_NONAME;
    return found;
}

/// A look-up that cannot be interrupted runs on a thread of its own, which is left behind when it is late.
struct background_look_up {
    std::mutex mutex;
    std::condition_variable done;
    bool finished = false;
    resolution found;
};

/// Nothing when the deadline passes first.
inline std::optional<resolution> look_up_until(endpoint const& at, deadline until) {
    if (is_ipv4(at.host()) || is_ipv6(at.host())) return look_up(at.host(), at.port(), true);
    auto shared = std::make_shared<background_look_up>();
    std::thread{[shared, at] {
        auto found = look_up(at.host(), at.port(), false);
        std::lock_guard const lock{shared->mutex};
        shared->found = std::move(found);
        shared->finished = true;
        shared->done.notify_all();
    }}.detach();
    std::unique_lock lock{shared->mutex};
    if (!shared->done.wait_until(lock, until.point(), [&] { return shared->finished; })) {
        return std::nullopt;
    }
    return std::move(shared->found);
}

inline std::string unresolved(endpoint const& at, int code) {
    return "connect: the host name '" + at.host() + "' cannot be resolved: " + ::gai_strerror(code);
}

}  // namespace detail

/// The addresses of an endpoint, each with its port, in the order of the name service.
/// @throws system_failure  for a name that cannot be resolved; @throws timeout  at the deadline
inline std::vector<detail::socket_address> resolve(endpoint const& at, deadline until) {
    auto found = detail::look_up_until(at, until);
    if (!found) {
        throw timeout{"connect: the host name '" + at.host() +
                      "' was not resolved within the deadline: the name service does not answer"};
    }
    if (found->code != 0) throw system_failure{detail::unresolved(at, found->code)};
    return std::move(found->addresses);
}

}  // namespace weightcast
