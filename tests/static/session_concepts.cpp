// SPDX-License-Identifier: Apache-2.0
// What the types of a session allow, and what they rule out.

#include <concepts>
#include <string>
#include <type_traits>

#include <support/plain_engine.hpp>
#include <weightcast/engine/any_engine.hpp>
#include <weightcast/session.hpp>

namespace {

using namespace weightcast;
using test::plain_engine;
using test::plain_init;
using test::plain_trainer;

static_assert(AnyTransferEngine<plain_engine>);
static_assert(TrainerEngine<plain_trainer, plain_init, int>);

// An update moves from hand to hand and is never copied; nobody but a worker makes one.
using update = weight_update<plain_engine>;
static_assert(std::is_nothrow_move_constructible_v<update> &&
              !std::is_copy_constructible_v<update>);
static_assert(!std::is_move_assignable_v<update> && !std::is_copy_assignable_v<update>);
static_assert(!std::is_default_constructible_v<update>);
static_assert(!std::constructible_from<update, weight_worker<plain_engine>&, target_id>);
static_assert(std::is_nothrow_destructible_v<update>);

// Workers stay where they are: updates refer to them.
using worker = weight_worker<plain_engine>;
static_assert(!std::is_move_constructible_v<worker> && !std::is_copy_constructible_v<worker>);
static_assert(std::constructible_from<worker, plain_engine>);
static_assert(std::constructible_from<worker, plain_engine, plain_init>);
static_assert(!std::convertible_to<plain_engine, worker>);
static_assert(!std::is_move_constructible_v<rpc_worker<plain_engine>>);

template <class W>
concept serves_announcements = requires(W& w) { w.serve_one(); };
static_assert(!serves_announcements<worker> && !serves_announcements<rpc_worker<plain_engine>>);
static_assert(serves_announcements<weight_worker<any_engine>> &&
              serves_announcements<rpc_worker<any_engine>>);

template <class W>
concept can_be_cancelled = requires(W& w) { w.cancel(); };
static_assert(can_be_cancelled<rpc_worker<any_engine>> &&
              !can_be_cancelled<rpc_worker<plain_engine>>);

// What a worker cannot take by its type, it is not made of.
struct commit_may_throw : plain_engine {
    void commit() {}
};
template <class E>
concept makes_a_worker = requires { typename weight_worker<E>; };
template <class E>
concept makes_an_rpc_worker = requires { typename rpc_worker<E>; };
static_assert(makes_a_worker<plain_engine> && !makes_a_worker<commit_may_throw> &&
              !makes_a_worker<int>);
static_assert(makes_an_rpc_worker<plain_engine> && !makes_an_rpc_worker<commit_may_throw>);

struct single_update : plain_engine {
    struct update_type {
        update_type(update_type const&) = delete;
    };
    void receive(update_type const&) {}
};
static_assert(makes_a_worker<single_update> &&
              !makes_an_rpc_worker<single_update>);  // which remembers updates

struct targets_of_its_own : plain_engine {
    enum class target_type { left, right };
    void start(target_type) {}
};
static_assert(makes_a_worker<targets_of_its_own> && makes_an_rpc_worker<targets_of_its_own>);
static_assert(!std::constructible_from<any_engine, targets_of_its_own>);

template <class S, class Source>
concept sends = requires(S& sender, Source& source) { sender.update(source); };
struct no_preflight : plain_trainer {
    void announce() {}
};
static_assert(sends<weight_sender<plain_trainer>, int>);
static_assert(!sends<weight_sender<no_preflight>, int>);

template <class S>
concept announces_failures = requires(S& sender) { sender.announce_failure("why"); };
static_assert(!announces_failures<weight_sender<plain_trainer>>);

}  // namespace
