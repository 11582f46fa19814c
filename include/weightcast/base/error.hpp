// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the library throws: one root, one type a kind of remedy, and the facts a caller needs to act.

#include <cstdint>
#include <source_location>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include <weightcast/base/phase.hpp>

namespace weightcast {

/// What a failure knows about itself; members that do not apply stay at their defaults.
struct failure_facts {
    phase where = phase::connect;
    std::string tensor{};          ///< checkpoint name, empty when no tensor is concerned
    int rank = -1;                 ///< the rank that reports, -1 outside a group
    int suspect = -1;              ///< the rank held responsible, -1 when unknown
    std::uint64_t bytes_done = 0;  ///< bytes of the transfer that had moved
    std::string expected{};        ///< the rule or the value that was expected
    std::string actual{};          ///< what came instead
    friend bool operator==(failure_facts const&, failure_facts const&) = default;
};

/// Root of everything that weightcast throws.
class error : public std::runtime_error {
  public:
    explicit error(std::string const& message, failure_facts facts = {},
                   std::source_location at = std::source_location::current())
        : std::runtime_error{message}, facts_{std::move(facts)}, at_{at} {}

    /// The facts behind the message.
    failure_facts const& facts() const noexcept { return facts_; }
    /// The line that made the call, where it is known.
    std::source_location const& where() const noexcept { return at_; }

  private:
    failure_facts facts_;
    std::source_location at_;
};

/// What the kinds below inherit their constructor from: nvcc 13 fails on `source_location::current()` in a
/// constructor inherited from a class that is no template.
template <class Kind>
class error_of : public error {
  public:
    explicit error_of(std::string const& message, failure_facts facts = {},
                      std::source_location at = std::source_location::current())
        : error{message, std::move(facts), at} {}
};

/// An argument that can never be right (a caller's mistake). Nothing was changed.
struct bad_argument : error_of<bad_argument> {
    using error_of::error_of;
};
/// A precondition of the library was broken; the object named in the message is still usable.
struct contract_violation : error_of<contract_violation> {
    using error_of::error_of;
};
/// A file or a message from outside that is malformed, cut short or out of range. Nothing was changed.
struct bad_input : error_of<bad_input> {
    using error_of::error_of;
};
/// A tensor is not on the device that its communicator needs. Nothing was sent or written.
struct device_mismatch : error_of<device_mismatch> {
    using error_of::error_of;
};
/// A step of the lifecycle in the wrong order. The worker is as it was before.
struct lifecycle_error : error_of<lifecycle_error> {
    using error_of::error_of;
};
/// A rank refused the update before anything was written. The group is still usable.
struct refused_update : error_of<refused_update> {
    using error_of::error_of;
};
/// A deadline passed. What is still usable depends on the phase: the message says it.
struct timeout : error_of<timeout> {
    using error_of::error_of;
};
/// Another rank died, aborted or broke the protocol. The group must be formed anew.
struct peer_error : error_of<peer_error> {
    using error_of::error_of;
};
/// This group was aborted from this side. It must be formed anew.
struct group_aborted : error_of<group_aborted> {
    using error_of::error_of;
};
/// Memory of a device or of the host is used up.
struct out_of_memory : error_of<out_of_memory> {
    using error_of::error_of;
};
/// A hook of the engine failed after a version was published. The next update repairs what it left undone.
struct hook_failure : error_of<hook_failure> {
    using error_of::error_of;
};
/// A call of the operating system or of a foreign library failed.
struct system_failure : error_of<system_failure> {
    using error_of::error_of;
};

/// "payload: tensor 'w': message (rank 1, suspected rank 0, 12 bytes done)": the one form of messages.
inline std::string describe(std::string_view message, failure_facts const& facts) {
    std::string text{to_string(facts.where)};
    if (!facts.tensor.empty()) text += ": tensor '" + facts.tensor + "'";
    text.append(": ").append(message);
    if (!facts.expected.empty()) text += "; expected " + facts.expected;
    if (!facts.actual.empty()) text += ", got " + facts.actual;
    text += " (rank " + (facts.rank < 0 ? std::string{"none"} : std::to_string(facts.rank));
    text += ", suspected rank " +
            (facts.suspect < 0 ? std::string{"unknown"} : std::to_string(facts.suspect));
    text += ", " + std::to_string(facts.bytes_done) + " bytes done)";
    return text;
}

/// Throws E with the message in that form and the facts attached.
template <class E>
[[noreturn]] void fail(std::string_view message, failure_facts facts,
                       std::source_location at = std::source_location::current()) {
    std::string text = describe(message, facts);
    throw E{text, std::move(facts), at};
}

}  // namespace weightcast
