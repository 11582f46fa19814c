// SPDX-License-Identifier: Apache-2.0
#pragma once
// A client as the server's thread sees it: bytes in, bytes out, neither without a bound.

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <weightcast/base/deadline.hpp>
#include <weightcast/comm/detail/rendezvous_messages.hpp>
#include <weightcast/comm/detail/socket.hpp>

namespace weightcast::detail {

/// One connection of a rendezvous server. Never blocks.
class rendezvous_connection {
  public:
    /// The largest message and a few more: who reads more slowly is not one of ours.
    static constexpr std::size_t most_unsent = 4U << 20U;
    /// How long a greeting or a frame may take from its first to its last byte.
    static constexpr std::chrono::seconds patience{10};

    rendezvous_connection(unique_fd fd, std::uint64_t id)
        : fd_{std::move(fd)}, id_{id}, impatient_at_{deadline::after(patience)} {}

    int descriptor() const noexcept { return fd_.value(); }
    std::uint64_t id() const noexcept { return id_; }
    bool greeted() const noexcept { return greeted_; }
    bool wants_to_write() const noexcept { return !unsent_.empty(); }
    /// When it is dropped unless what it began is whole by then.
    deadline impatient_at() const noexcept { return impatient_at_; }

    /// Puts bytes on their way; false when the client reads too slowly to be kept.
    bool send(std::string_view bytes) {
        if (unsent_.size() + bytes.size() > most_unsent) return false;
        unsent_.append(bytes);
        return flush();
    }
    /// Writes what the socket takes; false when the connection is broken.
    bool flush() {
        std::size_t written = 0;
        while (written < unsent_.size()) {
            auto const put = ::send(fd_.value(), unsent_.data() + written, unsent_.size() - written,
                                    MSG_NOSIGNAL | MSG_DONTWAIT);
            if (put < 0 && errno == EINTR) continue;
            if (put < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
            if (put < 0) return false;
            written += static_cast<std::size_t>(put);
        }
        unsent_.erase(0, written);
        return true;
    }
    /// Reads once; false at its end.
    bool receive() {
        std::array<char, 65536> buffer;
        auto const got = ::recv(fd_.value(), buffer.data(), buffer.size(), MSG_DONTWAIT);
        if (got < 0) return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
        if (got == 0) return false;
        bool const fresh = read_.empty();
        read_.append(buffer.data(), static_cast<std::size_t>(got));
        if (fresh && greeted_) impatient_at_ = deadline::after(patience);
        return true;
    }
    /// Takes the greeting once it is whole; true then. @throws bad_input
    bool take_greeting() {
        if (greeted_ || read_.size() < greeting_bytes) return false;
        if (read_greeting(read_) != protocol_version) throw bad_input{"another protocol version"};
        read_.erase(0, greeting_bytes);
        greeted_ = true;
        settle();
        return true;
    }
    /// The next whole frame. @throws bad_input
    bool take_frame(received_frame& into) {
        if (!greeted_) return false;
        bool const whole = cut_frame(read_, into);
        if (whole || read_.empty()) settle();
        return whole;
    }

  private:
    void settle() noexcept {
        impatient_at_ = read_.empty() ? deadline::at(deadline::clock::time_point::max())
                                      : deadline::after(patience);
    }

    unique_fd fd_;
    std::uint64_t id_;
    bool greeted_ = false;
    deadline impatient_at_;
    std::string read_;
    std::string unsent_;
};

}  // namespace weightcast::detail
