// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a worker or a sender asks of an engine beyond its lifecycle: each is used where an engine has it.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>

#include <weightcast/engine/concepts.hpp>

namespace weightcast {

/// An engine that can wait for what its trainers announce.
/// Semantics: `next` is bounded by the engine's own limit; the update's `target()` names what it is for.
template <class E>
concept has_announcements = requires(E& e, typename E::update_type const& update) {
    { e.next() } -> std::same_as<typename E::update_type>;
    { update.target() } -> std::convertible_to<typename E::target_type>;
};

/// An engine that can answer an announcement with a refusal, so that no peer waits for this rank.
/// Semantics: takes part in the preflight with that objection, then throws `refused_update`; nothing is
/// written, and the group stays usable.
template <class E>
concept has_refusal = requires(E& e, typename E::update_type const& update, std::string const& reason) {
    e.refuse(update, reason);
};

/// An engine that describes what its open update brought.
template <class E, class Report>
concept has_report = requires(E const& e, Report& report) { e.describe(report); };

/// An engine whose running call can be ended from another thread.
/// Semantics: any thread; the running call throws soon; the group has to be formed anew.
template <class E>
concept has_interrupt = requires(E& e) {
    { e.interrupt() } noexcept;
};

/// A trainer engine that feeds groups, each of which may fail alone.
template <class E>
concept has_groups = requires(E const& e, std::size_t group) {
    { e.group_count() } -> std::convertible_to<std::size_t>;
    { e.group_name(group) } -> std::convertible_to<std::string>;
    { e.group_size(group) } -> std::convertible_to<int>;
    { e.failure(group) } -> std::same_as<std::exception_ptr>;
};
/// A trainer engine that knows how many bytes the announced update moves to one group.
template <class E>
concept has_wire_bytes = requires(E const& e) {
    { e.wire_bytes() } -> std::convertible_to<std::uint64_t>;
};
/// A trainer engine that can tell its groups that the announced step will not come.
template <class E>
concept has_failure_announcement = requires(E& e, std::string const& reason) {
    { e.announce_failure(reason) } noexcept;
};

/// Says in full sentences why E cannot serve what its trainers announce; true when it can.
template <class E>
consteval bool explain_announcements() {
    static_assert(requires { typename E::update_type; }, "serving: the engine needs `using update_type`");
    static_assert(AnyTransferEngine<E>,
                  "serving: the engine is no TransferEngine; see explain_transfer_engine<E, Init, Update>()");
    static_assert(has_announcements<E>,
                  "serving: the engine needs next(), returning update_type, whose target() names the target");
    return has_announcements<E>;
}

}  // namespace weightcast
