// SPDX-License-Identifier: Apache-2.0
#pragma once
// A process at the meeting point: keys and values, joining a group, barriers, each with a deadline.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <weightcast/base/deadline.hpp>
#include <weightcast/base/error.hpp>
#include <weightcast/comm/detail/rendezvous_channel.hpp>
#include <weightcast/comm/detail/rendezvous_messages.hpp>
#include <weightcast/comm/endpoint.hpp>

namespace weightcast {

/// What a server holds: for tests and monitoring.
struct rendezvous_counts {
    std::uint64_t keys = 0;
    std::uint64_t bytes = 0;
    std::uint64_t connections = 0;
    std::uint64_t groups = 0;
};

/// Which place in which generation of a group a client got.
struct joined_group {
    std::uint64_t generation = 0;
    std::string key_prefix{};  ///< keys below it vanish with the group
    int host_rank = -1;        ///< the rank whose process runs the server, -1: none of the group
};

/// One connection to a rendezvous server. Requests from any thread; each waits no longer than its deadline.
/// @throws (all requests) timeout at the deadline, peer_error when the server is lost: connect anew
class rendezvous_client {
  public:
    /// Tries until the deadline: the server may come up later.
    /// @throws timeout  naming host, port and time waited; @throws bad_input  when no such server answers
    rendezvous_client(endpoint const& server, deadline until,
                      detail::channel_listener listener = {})
        : channel_{server, until, std::move(listener)} {}

    /// @throws bad_argument  when key or value are too long or the store is full
    void set(std::string_view key, std::string_view value, deadline until) {
        check_key(key);
        if (value.size() > detail::limits_on_messages.value) {
            throw bad_argument{"set '" + std::string{key} + "': a value of " +
                               std::to_string(value.size()) + " bytes; expected at most " +
                               std::to_string(detail::limits_on_messages.value)};
        }
        detail::message_writer message;
        message.text(key).text(value);
        channel_.request(detail::message_kind::set, message.bytes(), until, "set");
    }
    /// The value, or nothing when the key does not exist now.
    std::optional<std::string> find(std::string_view key, deadline until) {
        auto const answer = ask_about(detail::message_kind::get, key, until, "get");
        detail::message_reader reader{answer};
        bool const exists = reader.number<std::uint8_t>() == 1;
        auto value = reader.text(detail::limits_on_messages.value);
        if (!exists) return std::nullopt;
        return value;
    }
    /// Waits until all keys exist. @throws timeout  naming one that does not
    void wait(std::vector<std::string> const& keys, deadline until) {
        detail::message_writer message;
        message.number(milliseconds_until(until)).number(static_cast<std::uint32_t>(keys.size()));
        for (auto const& key : keys) {
            check_key(key);
            message.text(key);
        }
        channel_.request(detail::message_kind::wait, message.bytes(), until, "wait");
    }
    /// The value, once it exists.
    std::string get(std::string const& key, deadline until) {
        wait({key}, until);
        auto value = find(key, until);
        if (!value) throw peer_error{"get: key '" + key + "' was deleted meanwhile"};
        return std::move(*value);
    }
    /// Adds to a number and returns the sum; a key that does not exist is 0.
    std::int64_t add(std::string_view key, std::int64_t delta, deadline until) {
        check_key(key);
        detail::message_writer message;
        message.text(key).number(delta);
        auto const answer =
            channel_.request(detail::message_kind::add, message.bytes(), until, "add");
        return detail::message_reader{answer}.number<std::int64_t>();
    }
    /// True when the key existed.
    bool erase(std::string_view key, deadline until) {
        auto const answer = ask_about(detail::message_kind::erase, key, until, "erase");
        return detail::message_reader{answer}.number<std::uint8_t>() == 1;
    }
    rendezvous_counts counts(deadline until) {
        auto const answer = channel_.request(detail::message_kind::count, {}, until, "count");
        detail::message_reader reader{answer};
        rendezvous_counts counts;
        counts.keys = reader.number<std::uint64_t>();
        counts.bytes = reader.number<std::uint64_t>();
        counts.connections = reader.number<std::uint64_t>();
        counts.groups = reader.number<std::uint64_t>();
        return counts;
    }

    /// Becomes a rank of a group; returns once all ranks have. From then on the connection is this rank's
    /// sign of life: when it ends without `leave`, every other rank hears that this one is lost.
    /// A complete group of that name is aborted and replaced.
    /// @throws bad_argument  for another world size or other settings than a rank that is there, or a rank
    ///         that is taken: the message names both; @throws timeout  naming the ranks that are missing
    joined_group join(detail::join_request wish, deadline until) {
        wish.timeout_ms = milliseconds_until(until);
        auto const answer =
            channel_.request(detail::message_kind::join, wish.bytes(), until, "connect: join");
        detail::message_reader reader{answer};
        joined_group joined;
        joined.generation = reader.number<std::uint64_t>();
        joined.host_rank = reader.number<int>();
        joined.key_prefix = "group/" + std::to_string(joined.generation) + "/";
        return joined;
    }
    /// Returns once every rank of the group has entered. Names can be used again at once, and cost nothing.
    /// @throws peer_error  when the group fails or a rank has left; @throws timeout  naming who is missing
    void barrier(std::string_view name, deadline until) {
        detail::message_writer message;
        message.number(milliseconds_until(until)).text(name);
        channel_.request<peer_error>(detail::message_kind::barrier, message.bytes(), until,
                                     "barrier");
    }
    /// Says goodbye: returns once no other rank has anything of this one under way.
    /// @throws timeout  when some rank still has; leaving is announced nevertheless
    void leave(detail::leave_account const& account, deadline until) {
        channel_.request(detail::message_kind::leave, account.bytes(), until, "leave");
    }

    /// Tells the group its first failure. False when the server is lost.
    bool report(detail::group_failure const& failure, deadline until) noexcept {
        return post(detail::message_kind::report, until, [&](auto& to) { failure.write(to); });
    }
    bool report_status(detail::status_report const& status, deadline until) noexcept {
        return channel_.post(detail::message_kind::status, status.bytes(), until);
    }
    /// Nothing of that rank is under way here any more.
    bool report_quiet(int leaver, deadline until) noexcept {
        return post(detail::message_kind::quiet, until, [&](auto& to) { to.number(leaver); });
    }

    bool lost() const noexcept { return channel_.lost(); }
    void wake() const noexcept { channel_.wake(); }
    endpoint const& server() const noexcept { return channel_.to(); }
    detail::socket_address local_address() const noexcept { return channel_.local_address(); }

  private:
    /// What the server may wait: a little less than we do, so that its reason arrives in time.
    static std::int64_t milliseconds_until(deadline until) noexcept {
        auto const left = std::chrono::ceil<std::chrono::milliseconds>(until.remaining()).count();
        auto const margin = std::min<std::int64_t>(left / 4, 250);
        return std::min<std::int64_t>(left - margin, detail::limits_on_messages.wait_ms - 1);
    }
    static void check_key(std::string_view key) {
        if (key.size() <= detail::limits_on_messages.key && !key.empty()) return;
        throw bad_argument{"a key of " + std::to_string(key.size()) +
                           " bytes; expected from 1 to " +
                           std::to_string(detail::limits_on_messages.key)};
    }
    std::string ask_about(detail::message_kind kind, std::string_view key, deadline until,
                          char const* what) {
        check_key(key);
        detail::message_writer message;
        message.text(key);
        return channel_.request(kind, message.bytes(), until, what);
    }
    template <class Write>
    bool post(detail::message_kind kind, deadline until, Write write) noexcept {
        detail::message_writer message;
        write(message);
        return channel_.post(kind, message.bytes(), until);
    }

    detail::rendezvous_channel channel_;
};

}  // namespace weightcast
