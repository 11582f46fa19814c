// SPDX-License-Identifier: Apache-2.0
#pragma once
// The rendezvous server's one thread: polls, takes frames, answers. A bad client costs it that client only.

#include <poll.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <weightcast/base/deadline.hpp>
#include <weightcast/base/error.hpp>
#include <weightcast/base/log.hpp>
#include <weightcast/comm/detail/key_store.hpp>
#include <weightcast/comm/detail/rendezvous_connection.hpp>
#include <weightcast/comm/detail/rendezvous_groups.hpp>
#include <weightcast/comm/detail/wake.hpp>
#include <weightcast/comm/listen_socket.hpp>

namespace weightcast::detail {

/// Bounds of a server.
struct server_limits {
    std::size_t connections = 16384;
    std::size_t waits_per_connection = 64;
    store_limits store{};
};

/// State and loop. All but `stop` belongs to the thread that calls `run`.
class rendezvous_loop {
  public:
    rendezvous_loop(listen_socket socket, int host_rank, server_limits limits)
        : listener_{std::move(socket)},
          limits_{limits},
          store_{limits.store},
          groups_{[this](auto to, auto kind, auto request, std::string const& payload) {
                      tell(to, kind, request, payload);
                  },
                  host_rank} {
        groups_.on_group_end([this](std::string const& prefix) { store_.erase_prefix(prefix); });
    }
    rendezvous_loop(rendezvous_loop const&) = delete;
    rendezvous_loop& operator=(rendezvous_loop const&) = delete;

    listen_socket const& listener() const noexcept { return listener_; }

    void run() noexcept {
        for (bool last = false; !last;) {
            last =
                stopping_.load(std::memory_order_acquire);  // what was sent before is still taken
            try {
                turn(last);
            } catch (std::exception const& problem) {
                log_line(std::string{"rendezvous server: "} + problem.what());
            }
        }
        listener_.close();
        finish_writing();
        connections_.clear();
    }
    /// Any thread.
    void stop() noexcept {
        stopping_.store(true, std::memory_order_release);
        wake_.wake();
    }

  private:
    using connection_id = std::uint64_t;

    void turn(bool last) {
        auto const now = deadline::clock::now();
        bool const accepts = !last && now >= accept_again_;
        std::vector<pollfd> fds{{wake_.descriptor(), POLLIN, 0}};
        fds.push_back({accepts ? listener_.descriptor() : -1, POLLIN, 0});
        std::vector<connection_id> ids;
        for (auto const& [id, one] : connections_) {
            short const events = one.wants_to_write() ? POLLIN | POLLOUT : POLLIN;
            fds.push_back({one.descriptor(), events, 0});
            ids.push_back(id);
        }
        ::poll(fds.data(), fds.size(), last ? 0 : wake_at(accepts).remaining_ms());
        if (fds[0].revents != 0) wake_.clear();
        for (std::size_t i = 0; i < ids.size(); ++i) serve(ids[i], fds[i + 2].revents);
        if (fds[1].revents != 0) accept_all();  // after the ends of old connections were seen
        expire();
        drop_broken();
    }
    deadline wake_at(bool accepts) const {
        auto next = earlier(groups_.next_deadline(), store_.next_deadline());
        for (auto const& [id, one] : connections_) next = earlier(next, one.impatient_at());
        return accepts ? next : earlier(next, deadline::at(accept_again_));
    }

    void accept_all() {
        for (;;) {
            auto fresh = listener_.accept();
            if (!fresh) {
                // out of descriptors: leave the listener alone for a moment instead of spinning
                if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
                    drop_oldest_outsider();
                    accept_again_ = deadline::clock::now() + std::chrono::milliseconds{100};
                }
                return;
            }
            if (connections_.size() >= limits_.connections) {  // closed at once; it may try again
                drop_oldest_outsider();
                continue;
            }
            tune_connection(fresh.value());
            auto const id = ++last_id_;
            connections_.emplace(id, rendezvous_connection{std::move(fresh), id});
        }
    }
    // Descriptors are for ranks: who is here longest without being one makes room.
    void drop_oldest_outsider() {
        for (auto const& [id, one] : connections_) {
            if (!groups_.is_member(id) && !is_broken(id)) return mark_broken(id);
        }
    }
    void serve(connection_id id, short events) {
        auto const found = connections_.find(id);
        if (found == connections_.end() || events == 0) return;
        auto& one = found->second;
        try {
            if ((events & POLLOUT) != 0 && !one.flush()) return mark_broken(id);
            if ((events & (POLLIN | POLLHUP | POLLERR)) == 0) return;
            bool const open = one.receive();
            if (one.take_greeting() && !one.send(greeting())) return mark_broken(id);
            received_frame frame;
            while (!is_broken(id) && one.take_frame(frame)) handle(id, frame);
            if (!open) mark_broken(id);
        } catch (bad_input const&) {
            mark_broken(id);  // not one of ours, or not well: no answer could be understood
        }
    }
    void expire() {
        auto const now = deadline::clock::now();
        for (auto const& late : store_.expired(now)) {
            tell(late.connection, message_kind::late, late.request,
                 "key '" + late.missing.front() + "' was not set");
        }
        groups_.expire(now);
        for (auto const& [id, one] : connections_) {
            if (one.impatient_at().point() <= now) mark_broken(id);
        }
    }

    // --- requests ---
    void handle(connection_id from, received_frame const& frame) {
        try {
            dispatch(from, frame.kind, frame.request, frame.payload);
        } catch (bad_argument const& problem) {
            tell(from, message_kind::refused, frame.request, problem.what());
        }
    }
    void dispatch(connection_id from, message_kind kind, std::uint32_t request,
                  std::string const& payload) {
        message_reader reader{payload};
        switch (kind) {
            case message_kind::set: return set(from, request, reader);
            case message_kind::get: return get(from, request, reader);
            case message_kind::wait: return wait(from, request, reader);
            case message_kind::add: return add(from, request, reader);
            case message_kind::erase: return erase(from, request, reader);
            case message_kind::count: return count(from, request);
            case message_kind::join:
                return groups_.join(from, request, join_request::read(payload));
            case message_kind::barrier: return barrier(from, request, reader);
            case message_kind::report: return groups_.report(from, group_failure::read(reader));
            case message_kind::status: return groups_.status(from, status_report::read(payload));
            case message_kind::leave:
                return groups_.leave(from, request, leave_account::read(payload));
            case message_kind::quiet: return groups_.quiet(from, reader.number<int>());
            default: throw bad_input{"a message of an unknown kind"};
        }
    }
    static std::string key_of(message_reader& reader) {
        return reader.text(limits_on_messages.key);
    }

    void set(connection_id from, std::uint32_t request, message_reader& reader) {
        auto const key = key_of(reader);
        store_.set(key, reader.text(limits_on_messages.value));
        tell(from, message_kind::done, request, {});
        for (auto const& one : store_.arrived(key)) {
            tell(one.connection, message_kind::done, one.request, {});
        }
    }
    void get(connection_id from, std::uint32_t request, message_reader& reader) {
        auto const value = store_.get(key_of(reader));
        message_writer answer;
        answer.number(std::uint8_t{value.has_value()}).text(value ? *value : std::string{});
        tell(from, message_kind::done, request, answer.bytes());
    }
    void wait(connection_id from, std::uint32_t request, message_reader& reader) {
        key_store::waiter one{.connection = from, .request = request};
        one.until = deadline::after(std::chrono::milliseconds{
            reader.number_below<std::int64_t>(limits_on_messages.wait_ms, "a timeout of")});
        auto const keys = reader.number_below<std::uint32_t>(limits_on_messages.keys + 1, "keys");
        for (std::uint32_t i = 0; i < keys; ++i) one.missing.push_back(key_of(reader));
        if (store_.waiting(from) >= limits_.waits_per_connection) {
            throw bad_argument{"this connection waits for too much at once"};
        }
        if (store_.wait(std::move(one))) tell(from, message_kind::done, request, {});
    }
    void add(connection_id from, std::uint32_t request, message_reader& reader) {
        auto const key = key_of(reader);
        auto const sum = store_.add(key, reader.number<std::int64_t>());
        tell(from, message_kind::done, request, message_writer{}.number(sum).bytes());
        for (auto const& one : store_.arrived(key)) {
            tell(one.connection, message_kind::done, one.request, {});
        }
    }
    void erase(connection_id from, std::uint32_t request, message_reader& reader) {
        bool const existed = store_.erase(key_of(reader));
        tell(from, message_kind::done, request,
             message_writer{}.number(std::uint8_t{existed}).bytes());
    }
    void count(connection_id from, std::uint32_t request) {
        message_writer answer;
        answer.number(std::uint64_t{store_.keys()}).number(std::uint64_t{store_.bytes()});
        answer.number(std::uint64_t{connections_.size()}).number(std::uint64_t{groups_.size()});
        tell(from, message_kind::done, request, answer.bytes());
    }
    void barrier(connection_id from, std::uint32_t request, message_reader& reader) {
        auto const timeout =
            reader.number_below<std::int64_t>(limits_on_messages.wait_ms, "a timeout of");
        groups_.barrier(from, request, reader.text(limits_on_messages.name), timeout);
    }

    // --- connections ---
    void tell(connection_id to, message_kind kind, std::uint32_t request,
              std::string const& payload) {
        auto const found = connections_.find(to);
        if (found == connections_.end() || is_broken(to)) return;
        if (!found->second.send(frame(kind, request, payload))) mark_broken(to);
    }
    bool is_broken(connection_id id) const {
        return std::ranges::find(broken_, id) != broken_.end();
    }
    void mark_broken(connection_id id) {
        if (!is_broken(id)) broken_.push_back(id);
    }
    /// Takes broken connections out; what others are told of that may break more.
    void drop_broken() {
        while (!broken_.empty()) {
            auto const id = broken_.back();
            broken_.pop_back();
            if (connections_.erase(id) == 0) continue;
            store_.forget(id);
            groups_.gone(id);
        }
    }
    /// What is on its way when the server stops still goes out, for a moment.
    void finish_writing() noexcept {
        auto const until = deadline::after(std::chrono::milliseconds{200});
        for (auto& [id, one] : connections_) {
            while (one.wants_to_write() && one.flush() && one.wants_to_write() &&
                   !until.expired()) {
                pollfd fd{one.descriptor(), POLLOUT, 0};
                ::poll(&fd, 1, until.remaining_ms());
            }
        }
    }

    listen_socket listener_;
    server_limits limits_;
    wake_up wake_;
    std::atomic<bool> stopping_{false};
    std::map<connection_id, rendezvous_connection> connections_;
    std::vector<connection_id> broken_;
    connection_id last_id_ = 0;
    deadline::clock::time_point accept_again_{};
    key_store store_;
    rendezvous_groups groups_;
};

}  // namespace weightcast::detail
