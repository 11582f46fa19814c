// SPDX-License-Identifier: Apache-2.0
#pragma once
// A client's connection: requests matched with answers, and a thread that hears what the server tells unasked.

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include <weightcast/base/deadline.hpp>
#include <weightcast/base/error.hpp>
#include <weightcast/comm/detail/connect.hpp>
#include <weightcast/comm/detail/group_failure.hpp>
#include <weightcast/comm/detail/quiet_thread.hpp>
#include <weightcast/comm/detail/rendezvous_messages.hpp>
#include <weightcast/comm/detail/wake.hpp>

namespace weightcast::detail {

/// Called on the channel's thread. None may throw, and none may wait for the channel.
struct channel_listener {
    std::function<void(group_failure const&)> failed{};
    std::function<void(peer_leaving const&)> leaving{};   ///< answer with `quiet` once it is so
    std::function<void(peer_leaving const&)> departed{};  ///< it has gone
    std::function<void()> lost{};  ///< once, when the connection ends before `close`
    /// Called whenever the thread wakes; returns when it wants to be called again.
    std::function<deadline()> tick{};
};

/// Connected from construction until `lost` or destruction.
class rendezvous_channel {
  public:
    /// @throws timeout  naming host, port and time waited; @throws system_failure  for what cannot work
    rendezvous_channel(endpoint const& to, deadline until, channel_listener listener)
        : to_{to}, listener_{std::move(listener)}, fd_{connect_until(to, until)} {
        greet(until);
        thread_ = quiet_thread([this] { hear(); });
    }
    rendezvous_channel(rendezvous_channel const&) = delete;
    rendezvous_channel& operator=(rendezvous_channel const&) = delete;
    ~rendezvous_channel() {
        closing_.store(true, std::memory_order_release);
        wake_.wake();
        thread_.join();
    }

    endpoint const& to() const noexcept { return to_; }
    /// This side's address of the connection: the one by which the server is reached.
    socket_address local_address() const noexcept { return socket_address::of_socket(fd_.value()); }
    /// Has the thread call `tick` soon. Any thread.
    void wake() const noexcept { wake_.wake(); }
    bool lost() const noexcept { return lost_.load(std::memory_order_acquire); }

    /// Sends a request and waits for its answer. Any thread but the channel's own.
    /// @throws timeout  when the deadline passes, with the server's reason where it had one in time
    /// @throws Refused  with the server's reason; @throws peer_error  when the connection is lost
    template <class Refused = bad_argument>
    std::string request(message_kind kind, std::string_view payload, deadline until,
                        char const* what) {
        if (payload.size() + 16 > limits_on_messages.frame) {
            throw bad_argument{std::string{what} + ": the message is too long"};
        }
        std::uint32_t id = 0;
        {
            std::lock_guard const lock{mutex_};
            id = ++last_request_;
            answers_[id];
        }
        auto answer = exchange(id, frame(kind, id, payload), until);
        if (!answer)
            fail_late(what, "the rendezvous server at " + to_string(to_) + " did not answer");
        if (answer->kind == message_kind::late) fail_late(what, answer->payload);
        if (answer->kind == message_kind::refused) {
            throw Refused{std::string{what} + ": " + answer->payload};
        }
        return std::move(answer->payload);
    }
    /// Sends without an answer. False when the connection is lost or takes nothing by then.
    bool post(message_kind kind, std::string_view payload, deadline until) noexcept {
        try {
            write(frame(kind, 0, payload), until);
            return true;
        } catch (...) {
            return false;
        }
    }

  private:
    void greet(deadline until) {
        write(greeting(), until);
        std::string heard;
        while (heard.size() < greeting_bytes) {
            std::array<char, greeting_bytes> buffer;
            if (!wait_for_io(fd_.value(), POLLIN, until)) {
                throw timeout{
                    "connect: " + to_string(to_) +
                    " accepted the connection but does not answer as a rendezvous server"};
            }
            auto const got = ::recv(fd_.value(), buffer.data(), greeting_bytes - heard.size(), 0);
            if (got <= 0) {
                if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
                throw peer_error{"connect: " + to_string(to_) + " closed the connection at once"};
            }
            heard.append(buffer.data(), static_cast<std::size_t>(got));
        }
        std::uint16_t version = 0;
        try {
            version = read_greeting(heard);
        } catch (bad_input const& problem) {
            throw bad_input{"connect: " + to_string(to_) + ": " + problem.what()};
        }
        if (version != protocol_version) {
            throw bad_input{"connect: the rendezvous server at " + to_string(to_) +
                            " speaks version " + std::to_string(version) +
                            " of the protocol; expected " + std::to_string(protocol_version)};
        }
    }

    void write(std::string_view bytes, deadline until) {
        std::lock_guard const lock{write_mutex_};
        while (!bytes.empty()) {
            if (lost()) fail_lost();
            auto const put =
                ::send(fd_.value(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
            if (put >= 0) {
                bytes.remove_prefix(static_cast<std::size_t>(put));
            } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
                if (wait_for_io(fd_.value(), POLLOUT, until)) continue;
                ::shutdown(fd_.value(),
                           SHUT_RDWR);  // half a frame may be out: nothing can follow it
                fail_lost();
            } else if (errno != EINTR) {
                fail_lost();
            }
        }
    }
    /// Nothing when the deadline passes first.
    std::optional<received_frame> exchange(std::uint32_t id, std::string const& bytes,
                                           deadline until) {
        try {
            write(bytes, until);
        } catch (...) {
            std::lock_guard const lock{mutex_};
            answers_.erase(id);
            throw;
        }
        // the server ends waits by itself and says why: a little longer here, so that its reason arrives
        auto const end = until.point() < deadline::clock::time_point::max() - answer_slack
                             ? until.point() + answer_slack
                             : until.point();
        std::unique_lock lock{mutex_};
        bool const there =
            answered_.wait_until(lock, end, [&] { return answers_[id].has_value() || lost(); });
        auto answer = std::move(answers_[id]);
        answers_.erase(id);
        if (!there) return std::nullopt;
        if (!answer) fail_lost();
        return answer;
    }
    [[noreturn]] void fail_lost() const {
        throw peer_error{"contact with the rendezvous server at " + to_string(to_) + " was lost"};
    }
    [[noreturn]] void fail_late(char const* what, std::string const& why) const {
        throw timeout{std::string{what} + ": " + why + " within the deadline (rendezvous at " +
                      to_string(to_) + ")"};
    }

    // --- the channel's thread ---
    void hear() noexcept {
        bool open = true;
        while (!closing_.load(std::memory_order_acquire)) {
            auto const next = listener_.tick ? listener_.tick()
                                             : deadline::at(deadline::clock::time_point::max());
            std::array<pollfd, 2> fds{
                {{wake_.descriptor(), POLLIN, 0}, {open ? fd_.value() : -1, POLLIN, 0}}};
            ::poll(fds.data(), fds.size(), next.remaining_ms());
            if (fds[0].revents != 0) wake_.clear();
            if (fds[1].revents == 0) continue;
            open = receive();
            if (!open) declare_lost();
        }
    }
    bool receive() noexcept {
        try {
            std::array<char, 65536> buffer;
            auto const got = ::recv(fd_.value(), buffer.data(), buffer.size(), MSG_DONTWAIT);
            if (got < 0) return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
            if (got == 0) return false;
            read_.append(buffer.data(), static_cast<std::size_t>(got));
            received_frame one;
            while (cut_frame(read_, one)) take(one);
            return true;
        } catch (...) {
            return false;  // a server that talks nonsense is a lost one
        }
    }
    void take(received_frame& one) {
        if (one.kind == message_kind::failed) {
            message_reader reader{one.payload};
            auto const failure = group_failure::read(reader);
            if (listener_.failed) listener_.failed(failure);
        } else if (one.kind == message_kind::leaving) {
            auto const leaving = peer_leaving::read(one.payload);
            if (listener_.leaving) listener_.leaving(leaving);
        } else if (one.kind == message_kind::departed) {
            auto const departed = peer_leaving::read(one.payload);
            if (listener_.departed) listener_.departed(departed);
        } else {
            std::lock_guard const lock{mutex_};
            auto const found = answers_.find(one.request);
            if (found != answers_.end()) found->second = std::move(one);
            answered_.notify_all();
        }
    }
    void declare_lost() noexcept {
        {
            std::lock_guard const lock{mutex_};
            lost_.store(true, std::memory_order_release);
            answered_.notify_all();
        }
        if (listener_.lost) listener_.lost();
    }

    static constexpr std::chrono::milliseconds answer_slack{250};

    endpoint to_;
    channel_listener listener_;
    unique_fd fd_;
    wake_up wake_;
    std::atomic<bool> closing_{false};
    std::atomic<bool> lost_{false};
    std::mutex write_mutex_;
    std::mutex mutex_;
    std::condition_variable answered_;
    std::map<std::uint32_t, std::optional<received_frame>> answers_;
    std::uint32_t last_request_ = 0;
    std::string read_;
    std::thread thread_;
};

}  // namespace weightcast::detail
