// SPDX-License-Identifier: Apache-2.0
#pragma once
// The rendezvous protocol: a greeting, then frames of {u32 length, u8 kind, u32 request, payload}.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <weightcast/base/error.hpp>
#include <weightcast/comm/detail/wire.hpp>

namespace weightcast::detail {

/// Both sides open with these bytes: magic, then a version.
inline constexpr std::string_view greeting_magic = "WCRV";
inline constexpr std::uint16_t protocol_version = 1;
inline constexpr std::size_t greeting_bytes = 8;

enum class message_kind : std::uint8_t {
    // requests of a client
    set = 1,
    get = 2,
    wait = 3,
    add = 4,
    erase = 5,
    count = 6,
    join = 16,
    barrier = 17,
    report = 18,
    status = 19,
    leave = 20,
    quiet = 21,
    // answers
    done = 64,
    refused = 65,
    late = 66,
    // told without a request
    failed = 96,
    leaving = 97,   ///< a rank wants to go: say when nothing of it is under way any more
    departed = 98,  ///< it has gone
};

/// Bounds on what anybody may send; checked before anything is allocated.
struct message_limits {
    std::size_t key = 512;
    std::size_t value = 1U << 20U;
    std::size_t name = 256;
    std::size_t settings = 1024;
    std::size_t text = 4096;
    std::uint32_t keys = 4096;    ///< of one wait
    std::uint32_t ranks = 65536;  ///< of one group
    std::size_t frame = (1U << 20U) + 65536U;
    std::int64_t wait_ms = 7LL * 24 * 3600 * 1000;
};
inline constexpr message_limits limits_on_messages{};

inline std::string greeting() {
    message_writer writer;
    writer.number(protocol_version).number(std::uint16_t{0});
    return std::string{greeting_magic} + writer.bytes();
}

/// The version in a greeting. @throws bad_input  when it is none
inline std::uint16_t read_greeting(std::string_view bytes) {
    if (!bytes.starts_with(greeting_magic)) throw bad_input{"this is no weightcast rendezvous"};
    message_reader reader{bytes.substr(greeting_magic.size())};
    return reader.number<std::uint16_t>();
}

inline std::string frame(message_kind kind, std::uint32_t request, std::string_view payload) {
    message_writer head;
    head.number(static_cast<std::uint32_t>(payload.size() + 5));
    head.number(static_cast<std::uint8_t>(kind)).number(request);
    std::string bytes = std::move(head).bytes();
    bytes.append(payload);
    return bytes;
}

/// A frame taken from the front of a buffer.
struct received_frame {
    message_kind kind{};
    std::uint32_t request = 0;
    std::string payload{};
};

/// Cuts the first whole frame off; false when it is not whole yet. @throws bad_input  for an impossible length
inline bool cut_frame(std::string& buffer, received_frame& into) {
    if (buffer.size() < 4) return false;
    message_reader head{buffer};
    auto const length = head.number<std::uint32_t>();
    if (length < 5 || length > limits_on_messages.frame) {
        throw bad_input{"a frame of " + std::to_string(length) + " bytes"};
    }
    if (buffer.size() < 4U + length) return false;
    into.kind = static_cast<message_kind>(head.number<std::uint8_t>());
    into.request = head.number<std::uint32_t>();
    into.payload.assign(buffer, 9, length - 5U);
    buffer.erase(0, 4U + length);
    return true;
}

/// Asks to become a rank of a group.
struct join_request {
    std::string group{};
    int rank = 0;
    int size = 0;
    std::string settings{};  ///< what all ranks must have alike
    std::string who{};       ///< for messages: "host trainer-0, process 17"
    std::int64_t timeout_ms = 0;

    std::string bytes() const {
        message_writer to;
        to.text(group).number(rank).number(size).text(settings).text(who).number(timeout_ms);
        return std::move(to).bytes();
    }
    static join_request read(std::string_view payload) {
        message_reader from{payload};
        join_request read;
        read.group = from.text(limits_on_messages.name);
        read.rank = from.number<int>();
        read.size = from.number<int>();
        read.settings = from.text(limits_on_messages.settings);
        read.who = from.text(limits_on_messages.name);
        read.timeout_ms =
            from.number_below<std::int64_t>(limits_on_messages.wait_ms, "a timeout of");
        from.expect_end();
        return read;
    }
};

/// Says what a rank has been doing for a while without progress, or that it moves again.
struct status_report {
    bool waiting = false;
    bool collective = false;
    std::uint64_t sequence = 0;
    int waiting_for = -1;
    std::string doing{};

    std::string bytes() const {
        message_writer to;
        to.number(std::uint8_t{waiting}).number(std::uint8_t{collective}).number(sequence);
        to.number(waiting_for).text(std::string_view{doing}.substr(0, limits_on_messages.settings));
        return std::move(to).bytes();
    }
    static status_report read(std::string_view payload) {
        message_reader from{payload};
        status_report read;
        read.waiting = from.number_below<std::uint8_t>(2, "a flag") == 1;
        read.collective = from.number_below<std::uint8_t>(2, "a flag") == 1;
        read.sequence = from.number<std::uint64_t>();
        read.waiting_for = from.number<int>();
        read.doing = from.text(limits_on_messages.settings);
        from.expect_end();
        return read;
    }
};

/// What a rank has done with each other one, so that they know when nothing of it is under way any more.
struct leave_account {
    std::uint64_t collectives = 0;          ///< completed
    std::vector<std::uint64_t> sent{};      ///< operations in which it sent to each rank
    std::vector<std::uint64_t> received{};  ///< and received from it

    std::string bytes() const {
        message_writer to;
        to.number(collectives).number(static_cast<std::uint32_t>(sent.size()));
        for (std::size_t i = 0; i < sent.size(); ++i) to.number(sent[i]).number(received[i]);
        return std::move(to).bytes();
    }
    static leave_account read(std::string_view payload) {
        message_reader from{payload};
        leave_account read;
        read.collectives = from.number<std::uint64_t>();
        auto const ranks = from.number_below<std::uint32_t>(limits_on_messages.ranks + 1, "a size");
        if (payload.size() != 12U + std::size_t{ranks} * 16U)
            throw bad_input{"an account is cut short"};
        for (std::uint32_t i = 0; i < ranks; ++i) {
            read.sent.push_back(from.number<std::uint64_t>());
            read.received.push_back(from.number<std::uint64_t>());
        }
        return read;
    }
};

/// A rank's part of another one's account.
struct peer_leaving {
    int rank = 0;
    std::uint64_t collectives = 0;
    std::uint64_t sent = 0;      ///< to the one that is told
    std::uint64_t received = 0;  ///< from the one that is told

    std::string bytes() const {
        message_writer to;
        to.number(rank).number(collectives).number(sent).number(received);
        return std::move(to).bytes();
    }
    static peer_leaving read(std::string_view payload) {
        message_reader from{payload};
        peer_leaving read;
        read.rank = from.number<int>();
        read.collectives = from.number<std::uint64_t>();
        read.sent = from.number<std::uint64_t>();
        read.received = from.number<std::uint64_t>();
        from.expect_end();
        return read;
    }
};

}  // namespace weightcast::detail
