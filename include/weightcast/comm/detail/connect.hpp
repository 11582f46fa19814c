// SPDX-License-Identifier: Apache-2.0
#pragma once
// Connecting to a server that may not be up yet: tried again until the deadline, then one clear message.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>

#include <weightcast/base/deadline.hpp>
#include <weightcast/base/error.hpp>
#include <weightcast/comm/detail/socket.hpp>
#include <weightcast/comm/endpoint.hpp>
#include <weightcast/comm/resolve.hpp>

namespace weightcast::detail {

/// One attempt: 0 or errno; ETIMEDOUT when the deadline passes.
inline int try_connect(socket_address const& to, deadline until, unique_fd& connected) {
    auto made = new_socket(to.family());
    if (::connect(made.value(), to.data(), to.length()) != 0) {
        if (errno != EINPROGRESS) return errno;
        if (!wait_for_io(made.value(), POLLOUT, until)) return ETIMEDOUT;
        int failure = 0;
        socklen_t length = sizeof failure;
        check(posix_result{::getsockopt(made.value(), SOL_SOCKET, SO_ERROR, &failure, &length)},
              "getsockopt(SO_ERROR)");
        if (failure != 0) return failure;
    }
    // a port of one's own can be connected to itself when nobody listens there
    auto const self = socket_address::of_socket(made.value());
    if (self.port() == to.port() && self.same_host(to)) return ECONNREFUSED;
    tune_connection(made.value());
    connected = std::move(made);
    return 0;
}

inline bool worth_trying_again(int failure) noexcept {
    return failure != EINVAL && failure != EACCES && failure != EPERM && failure != EAFNOSUPPORT;
}

inline std::string seconds_text(std::chrono::steady_clock::duration span) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f s", std::chrono::duration<double>{span}.count());
    return text;
}

/// A connection to the endpoint: every address in turn, again and again until the deadline.
/// @throws timeout  naming host, port, the time waited and the last reason
/// @throws system_failure  for a name that does not exist, or an address that cannot work
inline unique_fd connect_until(endpoint const& to, deadline until) {
    auto const began = deadline::clock::now();
    auto pause = std::chrono::milliseconds{10};
    std::string reason = "no attempt was made";
    for (;;) {
        if (auto const found = look_up_until(to, until); !found) {
            reason = "the name service does not answer";
        } else if (found->code != 0) {
            reason = unresolved(to, found->code);
            if (found->code != EAI_AGAIN) throw system_failure{reason};
        } else {
            for (auto const& address : found->addresses) {
                unique_fd connected;
                int const failure = try_connect(address, until, connected);
                if (failure == 0) return connected;
                reason = std::generic_category().message(failure);
                if (!worth_trying_again(failure)) {
                    throw system_failure{"connect: cannot reach " + to_string(to) + ": " + reason};
                }
            }
        }
        if (until.remaining() <= pause) {
            throw timeout{"connect: nobody answered at " + to_string(to) + " within " +
                          seconds_text(deadline::clock::now() - began) + ": " + reason};
        }
        std::this_thread::sleep_for(pause);
        pause = std::min(pause * 2, std::chrono::milliseconds{250});
    }
}

}  // namespace weightcast::detail
