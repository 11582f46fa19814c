// SPDX-License-Identifier: Apache-2.0
#pragma once
// TransferEngine (receiving) and TrainerEngine (sending): one expression an atom, and their explanations.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>

#include <weightcast/model/update_coverage.hpp>

namespace weightcast {

template <class E>
concept has_engine_types = requires {
    typename E::init_type;
    typename E::update_type;
    typename E::target_type;
};
template <class E, class Init>
concept has_init =
    std::same_as<typename E::init_type, Init> && requires(E& e, Init const& init) { e.init(init); };
template <class E>
concept has_start = requires(E& e, typename E::target_type const& target) { e.start(target); };
template <class E>
concept has_no_format_flag =
    !std::same_as<typename E::target_type, bool> &&
    !requires(E& e, typename E::target_type const& target) { e.start(target, true); };
template <class E, class Update>
concept has_receive = requires(E& e, Update const& update) { e.receive(update); };
template <class E>
concept has_prepare = requires(E& e) { e.prepare(); };
template <class E>
concept has_commit = requires(E& e) {
    { e.commit() } noexcept;
};
template <class E>
concept has_rollback = requires(E& e) {
    { e.rollback() } noexcept;
};
template <class E>
concept has_shutdown = requires(E& e) { e.shutdown(); };

/// The receiving side of one way to transfer weights. The worker forwards to it and knows no weight format.
/// Semantics: `init` joins the group; `start` opens an update of one target and may prepare the layers that
/// it reloads; `receive` takes one update's payload; `prepare` may throw and ends in the vote of all ranks;
/// `commit` and `rollback` are local and do not communicate; `shutdown` leaves the group.
/// Laws: tests/laws/engine_laws.hpp. Models: dense_engine; near-misses: an engine whose commit may throw; one
/// whose start takes a format flag.
/// Cost: receive is the payload; prepare is one small all-reduce.
template <class E, class Init, class Update>
concept TransferEngine =
    has_init<E, Init> && has_start<E> && has_no_format_flag<E> && has_receive<E, Update> &&
    has_prepare<E> && has_commit<E> && has_rollback<E> && has_shutdown<E>;

/// A TransferEngine for the init and update types that it names itself.
template <class E>
concept AnyTransferEngine =
    has_engine_types<E> && TransferEngine<E, typename E::init_type, typename E::update_type>;

// What a receiving engine may have beyond its lifecycle; each is used where an engine has it.

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
concept has_refusal = requires(E& e, typename E::update_type const& update,
                               std::string const& reason) { e.refuse(update, reason); };

/// An engine that describes what its open update brought.
template <class E, class Report>
concept has_report = requires(E const& e, Report& report) { e.describe(report); };

/// An engine whose commit does what may fail after the version is published: caches that cannot be invalidated.
template <class E>
concept has_commit_failure = requires(E const& e) {
    { e.commit_failure() } -> std::same_as<std::optional<std::string>>;
};

/// An engine whose running call can be ended from another thread.
/// Semantics: any thread; the running call throws soon; the group has to be formed anew.
template <class E>
concept has_interrupt = requires(E& e) {
    { e.interrupt() } noexcept;
};

template <class E, class Source>
concept has_announce =
    requires(E& e, Source& source, typename E::version_type const& version,
             typename E::target_type const& target) { e.announce(source, version, target); };
template <class E, class Source>
concept has_send = requires(E& e, Source& source) { e.send(source); };
template <class E>
concept has_vote = requires(E& e) { e.vote(); };
template <class E>
concept has_acknowledged = requires(E const& e) {
    { e.acknowledged() } -> std::same_as<typename E::version_type>;
};

/// The sending side. Semantics: `announce` is the preflight (metadata, agreed by all ranks), `send` the
/// payload, `vote` the agreement after it; `acknowledged` is the last version that every receiver holds.
/// Models: dense_trainer; near-miss: a sender without a preflight.
template <class E, class Init, class Source>
concept TrainerEngine = has_init<E, Init> && has_announce<E, Source> && has_send<E, Source> &&
                        has_vote<E> && has_acknowledged<E> && has_shutdown<E>;

// What a sending engine may have beyond that.

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
/// A trainer engine that can promise for its next update how much of the target it brings.
template <class E>
concept has_promise = requires(E& e, update_coverage coverage) { e.promise(coverage); };
/// A trainer engine that can tell its groups that the announced step will not come.
template <class E>
concept has_failure_announcement = requires(E& e, std::string const& reason) {
    { e.announce_failure(reason) } noexcept;
};

/// Says in full sentences why E is no TransferEngine<Init, Update>; true when it is one.
template <class E, class Init, class Update>
consteval bool explain_transfer_engine() {
    static_assert(
        requires { typename E::init_type; }, "TransferEngine: the engine needs `using init_type`");
    static_assert(has_init<E, Init>,
                  "TransferEngine: the engine needs init(Init const&), and init_type = Init");
    static_assert(
        requires { typename E::target_type; },
        "TransferEngine: the engine needs `using target_type`");
    static_assert(has_start<E>, "TransferEngine: the engine needs start(target)");
    static_assert(
        has_no_format_flag<E>,
        "TransferEngine: start takes a target and no format flag: engines own their lifecycle and format");
    static_assert(has_receive<E, Update>,
                  "TransferEngine: the engine needs receive(Update const&)");
    static_assert(
        has_prepare<E>,
        "TransferEngine: the engine needs prepare(), which ends in the vote of all ranks");
    static_assert(
        has_commit<E>,
        "TransferEngine: the engine needs commit() noexcept: it must not fail after the vote");
    static_assert(has_rollback<E>, "TransferEngine: the engine needs rollback() noexcept");
    static_assert(has_shutdown<E>, "TransferEngine: the engine needs shutdown()");
    return TransferEngine<E, Init, Update>;
}

/// The same for the init and update types that E names itself: why it is no AnyTransferEngine.
template <class E>
consteval bool explain_transfer_engine() {
    static_assert(
        has_engine_types<E>,
        "TransferEngine: the engine needs `using init_type`, `using update_type` and `using target_type`");
    if constexpr (has_engine_types<E>) {
        return explain_transfer_engine<E, typename E::init_type, typename E::update_type>();
    }
    return false;
}

/// Says in full sentences why E is no TrainerEngine<Init, Source>; true when it is one.
template <class E, class Init, class Source>
consteval bool explain_trainer_engine() {
    static_assert(
        requires { typename E::init_type; }, "TrainerEngine: the engine needs `using init_type`");
    static_assert(has_init<E, Init>,
                  "TrainerEngine: the engine needs init(Init const&), and init_type = Init");
    static_assert(
        requires { typename E::target_type; },
        "TrainerEngine: the engine needs `using target_type`");
    static_assert(
        requires { typename E::version_type; },
        "TrainerEngine: the engine needs `using version_type`");
    static_assert(
        has_announce<E, Source>,
        "TrainerEngine: the engine needs announce(source, version, target): the preflight");
    static_assert(has_send<E, Source>, "TrainerEngine: the engine needs send(source): the payload");
    static_assert(has_vote<E>, "TrainerEngine: the engine needs vote()");
    static_assert(has_acknowledged<E>,
                  "TrainerEngine: the engine needs acknowledged() const, returning version_type");
    static_assert(has_shutdown<E>, "TrainerEngine: the engine needs shutdown()");
    return TrainerEngine<E, Init, Source>;
}

/// Says in full sentences why E cannot serve what its trainers announce; true when it can.
template <class E>
consteval bool explain_announcements() {
    static_assert(
        requires { typename E::update_type; }, "serving: the engine needs `using update_type`");
    static_assert(
        AnyTransferEngine<E>,
        "serving: the engine is no TransferEngine; see explain_transfer_engine<E, Init, Update>()");
    static_assert(
        has_announcements<E>,
        "serving: the engine needs next(), returning update_type, whose target() names the target");
    return has_announcements<E>;
}

}  // namespace weightcast
