// SPDX-License-Identifier: Apache-2.0
#pragma once
// One rank's side of an operation among threads: what the other ranks compare with their own.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <weightcast/base/operation.hpp>
#include <weightcast/comm/transfer_range.hpp>
#include <weightcast/tensor/dtype.hpp>

namespace weightcast::detail {

enum class local_kind : std::uint8_t { broadcast, send, receive, all_reduce };

/// Refers to the caller's ranges.
struct local_operation {
    local_kind kind = local_kind::broadcast;
    int rank = 0;  ///< whose side this is
    int other =
        0;  ///< the root of a broadcast, the peer of a send or receive; no meaning in an all-reduce
    std::span<transfer_range const> ranges{};
    dtype type = dtype::uint8;       ///< all-reduce only
    reduction how = reduction::sum;  ///< all-reduce only
    operation_label label{};
    op_limits limits{};

    bool is_collective() const noexcept {
        return kind == local_kind::broadcast || kind == local_kind::all_reduce;
    }
    /// That rank takes part, this one included.
    bool involves(int r) const noexcept { return is_collective() || r == rank || r == other; }
    /// Its bytes go out and none come in.
    bool only_sends() const noexcept {
        return kind == local_kind::send || (kind == local_kind::broadcast && rank == other);
    }
    std::uint64_t bytes() const noexcept {
        std::uint64_t sum = 0;
        for (auto const& range : ranges) sum += range.bytes;
        return sum;
    }
    /// The tensor that messages name: the operation's, else that of its first range.
    std::string tensor() const {
        if (!label.tensor().empty() || ranges.empty()) return std::string{label.tensor()};
        return std::string{ranges.front().label.tensor()};
    }
};

/// "a broadcast of 12 bytes from rank 0".
inline std::string describe(local_operation const& op) {
    auto const ranges =
        op.ranges.size() == 1 ? "" : " in " + std::to_string(op.ranges.size()) + " ranges";
    auto const size = std::to_string(op.bytes()) + " bytes" + ranges;
    auto const other = std::to_string(op.other);
    switch (op.kind) {
        case local_kind::send: return "a send of " + size + " to rank " + other;
        case local_kind::receive: return "a receive of " + size + " from rank " + other;
        case local_kind::all_reduce:
            return "an all-reduce (" + std::string{to_string(op.how)} + ") of " + size + " of " +
                   std::string{weightcast::to_string(op.type)};
        case local_kind::broadcast: break;
    }
    return "a broadcast of " + size + " from rank " + other;
}

/// The first range of different size; the number of ranges when there is none.
inline std::size_t first_difference(local_operation const& a, local_operation const& b) noexcept {
    std::size_t i = 0;
    while (i < a.ranges.size() && i < b.ranges.size() && a.ranges[i].bytes == b.ranges[i].bytes)
        ++i;
    return i;
}

/// Two sides of one operation. Both involve the other's rank.
inline bool match(local_operation const& a, local_operation const& b) noexcept {
    if (a.ranges.size() != b.ranges.size() || first_difference(a, b) != a.ranges.size())
        return false;
    switch (a.kind) {
        case local_kind::send: return b.kind == local_kind::receive;
        case local_kind::receive: return b.kind == local_kind::send;
        case local_kind::broadcast: return b.kind == a.kind && b.other == a.other;
        case local_kind::all_reduce: break;
    }
    return b.kind == a.kind && b.type == a.type && b.how == a.how;
}

/// What rank a.rank called, and where it differs from b in one range of several.
inline std::string describe_against(local_operation const& a, local_operation const& b) {
    auto text = describe(a) + " (called by rank " + std::to_string(a.rank) + ")";
    auto const at = first_difference(a, b);
    if (a.ranges.size() > 1 && at < a.ranges.size() && a.ranges.size() == b.ranges.size()) {
        text += ", range " + std::to_string(at) + " '" + std::string{a.ranges[at].label.tensor()} +
                "' of " + std::to_string(a.ranges[at].bytes) + " bytes";
    }
    return text;
}

}  // namespace weightcast::detail
