// SPDX-License-Identifier: Apache-2.0
#pragma once
// A group's first failure as ranks tell each other, and how a rank that hears of it says so.

#include <cstdint>
#include <exception>
#include <string>
#include <utility>

#include <weightcast/base/error.hpp>
#include <weightcast/base/operation.hpp>
#include <weightcast/comm/detail/wire.hpp>

namespace weightcast::detail {

enum class failure_kind : std::uint8_t { timed_out, connection, mismatch, aborted, replaced, lost };

/// What broke a group: who says so, whom they suspect, and where they were.
struct group_failure {
    failure_kind kind = failure_kind::lost;
    int reporter = -1;  ///< -1: the rendezvous server
    int suspect = -1;   ///< -1: unknown
    phase where = phase::connect;
    std::string tensor{};
    std::uint64_t bytes_done = 0;
    std::uint64_t collectives = 0;  ///< that the reporter had completed
    std::string text{};

    static constexpr std::size_t longest_tensor = 256;
    static constexpr std::size_t longest_text = 2048;

    void write(message_writer& to) const {
        to.number(static_cast<std::uint8_t>(kind)).number(reporter).number(suspect);
        to.number(static_cast<std::uint8_t>(where)).number(bytes_done).number(collectives);
        to.text(std::string_view{tensor}.substr(0, longest_tensor));
        to.text(std::string_view{text}.substr(0, longest_text));
    }
    /// @throws bad_input
    static group_failure read(message_reader& from) {
        group_failure read;
        read.kind =
            static_cast<failure_kind>(from.number_below<std::uint8_t>(6, "a kind of failure"));
        read.reporter = from.number<int>();
        read.suspect = from.number<int>();
        read.where = static_cast<phase>(from.number_below<std::uint8_t>(5, "a phase"));
        read.bytes_done = from.number<std::uint64_t>();
        read.collectives = from.number<std::uint64_t>();
        read.tensor = from.text(longest_tensor);
        read.text = from.text(longest_text);
        return read;
    }
    friend bool operator==(group_failure const&, group_failure const&) = default;
};

/// An exception of type E in the one form of messages, not thrown.
template <class E>
std::exception_ptr make_failure(std::string const& message, failure_facts facts) {
    std::string const text = describe(message, facts);
    return std::make_exception_ptr(E{text, std::move(facts)});
}

/// What rank `self`, somewhere in `label`, makes of a failure that it heard of.
inline std::exception_ptr heard_failure(group_failure const& heard, int self,
                                        operation_label const& label, std::uint64_t bytes_done) {
    failure_facts facts{.where = label.where(),
                        .tensor = std::string{label.tensor()},
                        .rank = self,
                        .suspect = heard.suspect,
                        .bytes_done = bytes_done};
    std::string message = heard.text;
    if (heard.reporter >= 0 && heard.reporter != self) {
        message = "rank " + std::to_string(heard.reporter) + " reports: " + heard.text;
        if (!heard.tensor.empty() && heard.tensor != label.tensor()) {
            message += " (at tensor '" + heard.tensor + "')";
        }
    }
    return make_failure<peer_error>(message, std::move(facts));
}

}  // namespace weightcast::detail
