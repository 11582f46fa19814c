// SPDX-License-Identifier: Apache-2.0
#pragma once
// What ranks tell each other before any byte of an operation moves, so that a disagreement is an error and
// never a wrong byte: the operation's kind, position, root and sizes, and small payloads themselves.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <type_traits>

#include <weightcast/comm/transfer_range.hpp>
#include <weightcast/tensor/dtype.hpp>

namespace weightcast::detail {

enum class operation_kind : std::uint8_t { broadcast, send, all_reduce };

/// Fixed part of the message; then `listed` sizes of 8 bytes, then the payload when `eager`.
struct operation_header {
    static constexpr std::uint32_t expected_magic =
        0x31504357;  // "WCP1"; byte order shows here too
    static constexpr std::uint32_t most_listed = 128;
    static constexpr std::size_t most_eager = 4096;

    std::uint32_t magic = expected_magic;
    operation_kind kind = operation_kind::broadcast;
    dtype type = dtype::uint8;       ///< of an all-reduce
    reduction how = reduction::sum;  ///< of an all-reduce
    std::uint8_t eager = 0;          ///< the payload is in this message
    std::uint64_t sequence = 0;  ///< among collectives, or among messages from sender to receiver
    std::uint64_t bytes = 0;     ///< of all ranges together
    std::uint64_t digest = 0;    ///< of the sizes in their order
    std::uint32_t ranges = 0;
    std::uint32_t listed = 0;
    int root = 0;   ///< of a broadcast; the sender of a message
    int peer = -1;  ///< the receiver of a message

    bool collective() const noexcept { return kind != operation_kind::send; }
};
static_assert(std::is_trivially_copyable_v<operation_header> && sizeof(operation_header) == 48);

/// Largest message: header, listed sizes, payload.
inline constexpr std::size_t most_control_bytes =
    sizeof(operation_header) + operation_header::most_listed * 8 + operation_header::most_eager;

/// "a broadcast of 12 bytes in 3 ranges from rank 0".
inline std::string describe(operation_header const& header) {
    std::string const size =
        std::to_string(header.bytes) + " bytes" +
        (header.ranges == 1 ? std::string{} : " in " + std::to_string(header.ranges) + " ranges");
    switch (header.kind) {
        case operation_kind::send:
            return "a message of " + size + " from rank " + std::to_string(header.root) +
                   " to rank " + std::to_string(header.peer);
        case operation_kind::all_reduce:
            return "an all-reduce (" + std::string{weightcast::to_string(header.how)} + ") of " +
                   size + " of " + std::string{to_string(header.type)};
        case operation_kind::broadcast: break;
    }
    return "a broadcast of " + size + " from rank " + std::to_string(header.root);
}

/// FNV-1a over 8-byte words: equal on all ranks for equal sizes, in any process.
inline std::uint64_t size_digest(std::span<transfer_range const> ranges) noexcept {
    std::uint64_t digest = 0xcbf29ce484222325U;
    for (auto const& range : ranges) {
        std::uint64_t size = range.bytes;
        for (int byte = 0; byte < 8; ++byte) {
            digest = (digest ^ (size & 0xFFU)) * 0x100000001b3U;
            size >>= 8U;
        }
    }
    return digest;
}

inline void fill_sizes(operation_header& header, std::span<transfer_range const> ranges) noexcept {
    header.bytes = 0;
    for (auto const& range : ranges) header.bytes += range.bytes;
    header.ranges = static_cast<std::uint32_t>(ranges.size());
    header.listed = std::min(header.ranges, operation_header::most_listed);
    header.digest = size_digest(ranges);
    header.eager = header.bytes <= operation_header::most_eager ? 1 : 0;
}

/// Writes header and sizes; returns where the payload goes. @pre  `message` has most_control_bytes
inline std::byte* write_header(std::byte* message, operation_header const& header,
                               std::span<transfer_range const> ranges) noexcept {
    std::memcpy(message, &header, sizeof header);
    message += sizeof header;
    for (std::uint32_t i = 0; i < header.listed; ++i) {
        std::uint64_t const size = ranges[i].bytes;
        std::memcpy(message, &size, sizeof size);
        message += sizeof size;
    }
    return message;
}
inline std::size_t control_bytes(operation_header const& header) noexcept {
    return sizeof header + std::size_t{header.listed} * 8 + (header.eager != 0 ? header.bytes : 0);
}
inline operation_header read_header(std::byte const* message) noexcept {
    operation_header header;
    std::memcpy(&header, message, sizeof header);
    return header;
}
inline std::byte const* payload_of(std::byte const* message) noexcept {
    return message + sizeof(operation_header) + std::size_t{read_header(message).listed} * 8;
}

/// Copies small ranges behind a header, or out from behind one.
inline void gather(std::byte* to, std::span<transfer_range const> ranges) noexcept {
    for (auto const& range : ranges) {
        if (range.bytes != 0) std::memcpy(to, range.data, range.bytes);
        to += range.bytes;
    }
}
inline void scatter(std::byte const* from, std::span<transfer_range const> ranges) noexcept {
    for (auto const& range : ranges) {
        if (range.bytes != 0) std::memcpy(range.data, from, range.bytes);
        from += range.bytes;
    }
}

/// Why what rank `theirs_by` calls is not what this rank calls; nothing when it is.
inline std::optional<std::string> disagreement(std::byte const* message, int theirs_by,
                                               operation_header const& mine, int mine_by,
                                               std::span<transfer_range const> ranges) {
    auto const theirs = read_header(message);
    if (theirs.magic != operation_header::expected_magic ||
        theirs.listed > operation_header::most_listed) {
        return "rank " + std::to_string(theirs_by) +
               " sent no header: another version of the library, or another byte order";
    }
    bool const alike = theirs.kind == mine.kind && theirs.root == mine.root &&
                       theirs.peer == mine.peer && theirs.bytes == mine.bytes &&
                       theirs.ranges == mine.ranges && theirs.digest == mine.digest &&
                       theirs.type == mine.type && theirs.how == mine.how;
    if (alike && theirs.sequence == mine.sequence) return std::nullopt;
    std::string why = "the ranks do not call the same: rank " + std::to_string(theirs_by) +
                      " calls " + describe(theirs) + ", rank " + std::to_string(mine_by) +
                      " calls " + describe(mine);
    if (alike) {
        return why + "; but for the one it is operation " + std::to_string(theirs.sequence) +
               ", for the other " + std::to_string(mine.sequence);
    }
    if (theirs.ranges == mine.ranges && mine.ranges > 1) {
        for (std::uint32_t i = 0; i < std::min(theirs.listed, mine.listed); ++i) {
            std::uint64_t size = 0;
            std::memcpy(&size, message + sizeof theirs + std::size_t{i} * 8, sizeof size);
            if (size == ranges[i].bytes) continue;
            return why + "; range " + std::to_string(i) + " '" +
                   std::string{ranges[i].label.tensor()} + "' has " + std::to_string(size) +
                   " bytes for the one, " + std::to_string(ranges[i].bytes) + " for the other";
        }
    }
    return why;
}

}  // namespace weightcast::detail
