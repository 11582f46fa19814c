// SPDX-License-Identifier: Apache-2.0
#pragma once
// TransferEngine (receiving) and TrainerEngine (sending): one expression an atom, and their explanations.

#include <concepts>

namespace weightcast {

template <class E>
concept has_engine_types = requires {
    typename E::init_type;
    typename E::update_type;
    typename E::target_type;
};
template <class E, class Init>
concept has_init = std::same_as<typename E::init_type, Init> && requires(E& e, Init const& init) { e.init(init); };
template <class E>
concept has_start = requires(E& e, typename E::target_type const& target) { e.start(target); };
template <class E>
concept has_no_format_flag = !std::same_as<typename E::target_type, bool> &&
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
concept TransferEngine = has_init<E, Init> && has_start<E> && has_no_format_flag<E> && has_receive<E, Update> &&
                         has_prepare<E> && has_commit<E> && has_rollback<E> && has_shutdown<E>;

/// A TransferEngine for the init and update types that it names itself.
template <class E>
concept AnyTransferEngine =
    has_engine_types<E> && TransferEngine<E, typename E::init_type, typename E::update_type>;

template <class E, class Source>
concept has_announce = requires(E& e, Source& source, typename E::version_type const& version,
                                typename E::target_type const& target) {
    e.announce(source, version, target);
};
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
concept TrainerEngine = has_init<E, Init> && has_announce<E, Source> && has_send<E, Source> && has_vote<E> &&
                        has_acknowledged<E> && has_shutdown<E>;

/// Says in full sentences why E is no TransferEngine<Init, Update>; true when it is one.
template <class E, class Init, class Update>
consteval bool explain_transfer_engine() {
    static_assert(requires { typename E::init_type; }, "TransferEngine: the engine needs `using init_type`");
    static_assert(has_init<E, Init>, "TransferEngine: the engine needs init(Init const&), and init_type = Init");
    static_assert(requires { typename E::target_type; }, "TransferEngine: the engine needs `using target_type`");
    static_assert(has_start<E>, "TransferEngine: the engine needs start(target)");
    static_assert(has_no_format_flag<E>,
                  "TransferEngine: start takes a target and no format flag: engines own their lifecycle and format");
    static_assert(has_receive<E, Update>, "TransferEngine: the engine needs receive(Update const&)");
    static_assert(has_prepare<E>, "TransferEngine: the engine needs prepare(), which ends in the vote of all ranks");
    static_assert(has_commit<E>, "TransferEngine: the engine needs commit() noexcept: it must not fail after the vote");
    static_assert(has_rollback<E>, "TransferEngine: the engine needs rollback() noexcept");
    static_assert(has_shutdown<E>, "TransferEngine: the engine needs shutdown()");
    return TransferEngine<E, Init, Update>;
}

/// The same for the init and update types that E names itself: why it is no AnyTransferEngine.
template <class E>
consteval bool explain_transfer_engine() {
    static_assert(has_engine_types<E>,
                  "TransferEngine: the engine needs `using init_type`, `using update_type` and `using target_type`");
    if constexpr (has_engine_types<E>) {
        return explain_transfer_engine<E, typename E::init_type, typename E::update_type>();
    }
    return false;
}

/// Says in full sentences why E is no TrainerEngine<Init, Source>; true when it is one.
template <class E, class Init, class Source>
consteval bool explain_trainer_engine() {
    static_assert(requires { typename E::init_type; }, "TrainerEngine: the engine needs `using init_type`");
    static_assert(has_init<E, Init>, "TrainerEngine: the engine needs init(Init const&), and init_type = Init");
    static_assert(requires { typename E::target_type; }, "TrainerEngine: the engine needs `using target_type`");
    static_assert(requires { typename E::version_type; }, "TrainerEngine: the engine needs `using version_type`");
    static_assert(has_announce<E, Source>,
                  "TrainerEngine: the engine needs announce(source, version, target): the preflight");
    static_assert(has_send<E, Source>, "TrainerEngine: the engine needs send(source): the payload");
    static_assert(has_vote<E>, "TrainerEngine: the engine needs vote()");
    static_assert(has_acknowledged<E>,
                  "TrainerEngine: the engine needs acknowledged() const, returning version_type");
    static_assert(has_shutdown<E>, "TrainerEngine: the engine needs shutdown()");
    return TrainerEngine<E, Init, Source>;
}

}  // namespace weightcast
