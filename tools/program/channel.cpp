// SPDX-License-Identifier: Apache-2.0
#include <program/channel.hpp>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <boost/json.hpp>
#include <program/json_text.hpp>

#include <weightcast/base/check.hpp>
#include <weightcast/base/error.hpp>

namespace weightcast::program {

namespace {

bool wait_for(int descriptor, short events, deadline until) {
    for (;;) {
        pollfd entry{descriptor, events, 0};
        int const ready = ::poll(&entry, 1, until.remaining_ms());
        if (ready > 0) return true;
        if (ready == 0 && until.expired()) return false;
        if (ready < 0 && errno != EINTR) check(posix_result{ready}, "poll");
    }
}

}  // namespace

channel::channel(int descriptor) : descriptor_{descriptor} {
    int const flags = ::fcntl(descriptor, F_GETFL);
    check(posix_result{flags}, "fcntl(F_GETFL)");
    check(posix_result{::fcntl(descriptor, F_SETFL, flags | O_NONBLOCK)}, "fcntl(F_SETFL)");
}

channel& channel::operator=(channel&& other) noexcept {
    if (this != &other) {
        close();
        descriptor_ = std::exchange(other.descriptor_, -1);
        unread_ = std::move(other.unread_);
    }
    return *this;
}

std::pair<channel, channel> channel::pair() {
    std::array<int, 2> ends{};
    check(posix_result{::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data())},
          "socketpair");
    return {channel{ends[0]}, channel{ends[1]}};
}

void channel::close() noexcept {
    if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
}

void channel::send(boost::json::value const& message, deadline until) {
    auto const line = json_line(message) + '\n';
    for (std::string_view rest = line; !rest.empty();) {
        auto const sent = ::send(descriptor_, rest.data(), rest.size(), MSG_NOSIGNAL);
        if (sent >= 0) {
            rest.remove_prefix(static_cast<std::size_t>(sent));
        } else if (errno == EPIPE || errno == ECONNRESET) {
            throw peer_error{"the other side of a control channel is gone"};
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            if (!wait_for(descriptor_, POLLOUT, until)) {
                throw timeout{"the other side of a control channel does not read"};
            }
        } else if (errno != EINTR) {
            check(posix_result{sent}, "send");
        }
    }
}

std::optional<boost::json::value> channel::receive(deadline until) {
    std::size_t searched = 0;
    for (;;) {
        auto const end = unread_.find('\n', searched);
        if (end != std::string::npos) {
            boost::json::error_code failure;
            auto message = boost::json::parse(std::string_view{unread_}.substr(0, end), failure);
            unread_.erase(0, end + 1);
            if (failure) throw bad_input{"a control message is no JSON: " + failure.message()};
            return message;
        }
        searched = unread_.size();
        if (!read_some(until)) return std::nullopt;
    }
}

/// False at the end of the stream.
bool channel::read_some(deadline until) {
    std::array<char, 65536> buffer;  // NOLINT(*-member-init): written before it is read
    for (;;) {
        auto const got = ::recv(descriptor_, buffer.data(), buffer.size(), 0);
        if (got > 0) {
            unread_.append(buffer.data(), static_cast<std::size_t>(got));
            return true;
        }
        if (got == 0 || errno == ECONNRESET) return false;
        if (errno == EAGAIN || errno == EWOULDBLOCK) {
            if (!wait_for(descriptor_, POLLIN, until)) {
                throw timeout{"no message came over a control channel in time"};
            }
        } else if (errno != EINTR) {
            check(posix_result{got}, "recv");
        }
    }
}

}  // namespace weightcast::program
