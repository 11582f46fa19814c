// SPDX-License-Identifier: Apache-2.0
#pragma once
// A port that is bound once and kept: what is published is what is held, so that nobody can take it meanwhile.

#include <string>
#include <utility>

#include <weightcast/base/check.hpp>
#include <weightcast/base/deadline.hpp>
#include <weightcast/base/error.hpp>
#include <weightcast/comm/detail/socket.hpp>
#include <weightcast/comm/endpoint.hpp>
#include <weightcast/comm/resolve.hpp>

namespace weightcast {

/// A listening TCP socket. Moved from: holds nothing, and `at()` is empty.
class listen_socket {
  public:
    listen_socket() noexcept = default;

    /// Binds and listens; port 0 lets the system choose, once.
    /// @throws system_failure  when the port is in use (the message has it), or the host is not of this machine
    explicit listen_socket(endpoint const& at,
                           deadline until = deadline::after(std::chrono::seconds{10})) {
        auto const addresses = resolve(at, until);
        for (std::size_t i = 0; i < addresses.size(); ++i) {
            int const failure = bind_to(addresses[i]);
            if (failure == 0) break;
            if (i + 1 < addresses.size() && failure != EADDRINUSE) continue;
            throw system_failure{describe_failure(at, failure)};
        }
        auto const bound = detail::socket_address::of_socket(fd_.value());
        bound_ = bound;
        at_ = at.with_port(bound.port());
    }

    /// Where it listens: the host as it was given, and the port that it really has.
    endpoint const& at() const noexcept { return at_; }
    /// The address that is bound.
    detail::socket_address const& address() const noexcept { return bound_; }
    int descriptor() const noexcept { return fd_.value(); }
    explicit operator bool() const noexcept { return static_cast<bool>(fd_); }

    /// The next connection, not blocking; an empty one when none waits.
    detail::unique_fd accept() const noexcept {
        return detail::unique_fd{
            ::accept4(fd_.value(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)};
    }
    void close() noexcept { fd_.reset(); }

  private:
    /// 0, or errno.
    int bind_to(detail::socket_address const& address) {
        auto made = detail::new_socket(address.family());
        auto const allow_reuse = [&] {
            detail::set_option(made.value(), SOL_SOCKET, SO_REUSEADDR, 1,
                               "setsockopt(SO_REUSEADDR)");
        };
        // a fixed port whose last connections are still closing can be bound again at once; a port that
        // the system chooses must be nobody else's, but passes the right on to its connections
        if (address.port() != 0) allow_reuse();
        if (address.family() == AF_INET6) {
            detail::set_option(made.value(), IPPROTO_IPV6, IPV6_V6ONLY, address.is_any() ? 0 : 1,
                               "setsockopt(IPV6_V6ONLY)");
        }
        if (::bind(made.value(), address.data(), address.length()) != 0) return errno;
        allow_reuse();
        if (::listen(made.value(), SOMAXCONN) != 0) return errno;
        fd_ = std::move(made);
        return 0;
    }
    static std::string describe_failure(endpoint const& at, int failure) {
        if (failure == EADDRINUSE) {
            return "connect: port " + std::to_string(at.port()) + " of " + at.host() +
                   " is in use: another process listens there";
        }
        if (failure == EADDRNOTAVAIL) {
            return "connect: cannot listen at " + to_string(at) + ": " + at.host() +
                   " is no address of this machine";
        }
        return "connect: cannot listen at " + to_string(at) + ": " +
               std::generic_category().message(failure);
    }

    detail::unique_fd fd_;
    endpoint at_;
    detail::socket_address bound_;
};

}  // namespace weightcast
