// SPDX-License-Identifier: Apache-2.0
#pragma once
// Sockets without hidden waits: owned descriptors, addresses that print, and poll with a deadline.

#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include <weightcast/base/check.hpp>
#include <weightcast/base/deadline.hpp>
#include <weightcast/comm/endpoint.hpp>

namespace weightcast::detail {

/// Owns a file descriptor. Moved from: holds none.
class unique_fd {
  public:
    unique_fd() noexcept = default;
    explicit unique_fd(int fd) noexcept : fd_{fd} {}
    unique_fd(unique_fd&& other) noexcept : fd_{other.release()} {}
    unique_fd& operator=(unique_fd&& other) noexcept {
        reset(other.release());
        return *this;
    }
    ~unique_fd() { reset(); }

    int value() const noexcept { return fd_; }
    explicit operator bool() const noexcept { return fd_ >= 0; }
    int release() noexcept { return std::exchange(fd_, -1); }
    void reset(int fd = -1) noexcept {
        int const old = std::exchange(fd_, fd);
        if (old >= 0 && old != fd) ::close(old);
    }

  private:
    int fd_ = -1;
};

/// An address as the system sees it.
class socket_address {
  public:
    socket_address() noexcept = default;
    socket_address(sockaddr const* from, socklen_t length) noexcept {
        length_ = std::min<socklen_t>(length, sizeof storage_);
        std::memcpy(&storage_, from, length_);
    }
    static socket_address of_socket(int fd) noexcept { return named(fd, &::getsockname); }
    static socket_address of_peer(int fd) noexcept { return named(fd, &::getpeername); }

    sockaddr const* data() const noexcept { return reinterpret_cast<sockaddr const*>(&storage_); }
    socklen_t length() const noexcept { return length_; }
    int family() const noexcept { return storage_.ss_family; }

    std::uint16_t port() const noexcept {
        return ntohs(family() == AF_INET6 ? as<sockaddr_in6>().sin6_port
                                          : as<sockaddr_in>().sin_port);
    }
    void set_port(std::uint16_t port) noexcept {
        if (family() == AF_INET6) {
            reinterpret_cast<sockaddr_in6*>(&storage_)->sin6_port = htons(port);
        } else {
            reinterpret_cast<sockaddr_in*>(&storage_)->sin_port = htons(port);
        }
    }
    /// 0.0.0.0 or ::
    bool is_any() const noexcept {
        if (family() == AF_INET) return as<sockaddr_in>().sin_addr.s_addr == htonl(INADDR_ANY);
        auto const v6 = as<sockaddr_in6>();
        return family() == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&v6.sin6_addr) != 0;
    }
    /// 127.x.y.z or ::1
    bool is_loopback() const noexcept {
        if (family() == AF_INET) return (ntohl(as<sockaddr_in>().sin_addr.s_addr) >> 24U) == 127U;
        auto const v6 = as<sockaddr_in6>();
        if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr) != 0) return v6.sin6_addr.s6_addr[12] == 127;
        return family() == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr) != 0;
    }
    /// Same family and same host part (scope id included).
    bool same_host(socket_address const& other) const noexcept {
        return family() == other.family() && host() == other.host();
    }

    /// Numeric, with its scope id; an IPv4 address in IPv6 form prints as IPv4.
    std::string host() const {
        std::array<char, INET6_ADDRSTRLEN + 1> text{};
        if (family() == AF_INET) {
            auto const v4 = as<sockaddr_in>();
            inet_ntop(AF_INET, &v4.sin_addr, text.data(), text.size());
            return text.data();
        }
        auto const v6 = as<sockaddr_in6>();
        if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr) != 0) {
            inet_ntop(AF_INET, &v6.sin6_addr.s6_addr[12], text.data(), text.size());
            return text.data();
        }
        inet_ntop(AF_INET6, &v6.sin6_addr, text.data(), text.size());
        std::string host{text.data()};
        if (v6.sin6_scope_id == 0) return host;
        std::array<char, IF_NAMESIZE + 1> name{};
        bool const named = if_indextoname(v6.sin6_scope_id, name.data()) != nullptr;
        return host + "%" + (named ? std::string{name.data()} : std::to_string(v6.sin6_scope_id));
    }
    endpoint at() const { return {host(), port()}; }

  private:
    template <class T>
    T as() const noexcept {
        T typed{};
        std::memcpy(&typed, &storage_, sizeof typed);
        return typed;
    }
    static socket_address named(int fd, int (*query)(int, sockaddr*, socklen_t*)) noexcept {
        socket_address address;
        address.length_ = sizeof address.storage_;
        if (query(fd, reinterpret_cast<sockaddr*>(&address.storage_), &address.length_) != 0) {
            address = {};
        }
        return address;
    }

    sockaddr_storage storage_{};
    socklen_t length_ = 0;
};

/// Waits for `events`; false when the deadline passes first. A signal does not end the wait.
inline bool wait_for_io(int fd, short events, deadline until) {
    for (;;) {
        pollfd one{fd, events, 0};
        int const ready = ::poll(&one, 1, until.remaining_ms());
        if (ready > 0) return true;
        if (ready == 0 && until.expired()) return false;
        if (ready < 0 && errno != EINTR) check(posix_result{-1}, "poll");
    }
}

inline unique_fd new_socket(int family) {
    unique_fd made{::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
    check(posix_result{made.value()}, "socket");
    return made;
}

inline void set_option(int fd, int level, int option, int value, char const* call) {
    check(posix_result{::setsockopt(fd, level, option, &value, sizeof value)}, call);
}

/// For a connection that carries small messages and must notice a machine that vanished: about 10 s.
inline void tune_connection(int fd) {
    set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1, "setsockopt(TCP_NODELAY)");
    set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1, "setsockopt(SO_KEEPALIVE)");
    set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, 4, "setsockopt(TCP_KEEPIDLE)");
    set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, 2, "setsockopt(TCP_KEEPINTVL)");
    set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, 3, "setsockopt(TCP_KEEPCNT)");
}

}  // namespace weightcast::detail
