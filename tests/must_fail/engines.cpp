// SPDX-License-Identifier: Apache-2.0
// An engine that lacks a part of the lifecycle is no engine, and the compiler names the part.
//
// case 1: has_start
// case 2: has_prepare
// case 3: has_commit
// case 4: has_commit
// case 5: has_rollback
// case 6: has_rollback
// case 7: has_no_format_flag
// case 8: has_no_format_flag
// case 9: has_shutdown
// case 10: has_receive
// case 11: has_init
// case 12: has_engine_types
// case 13: the engine needs start\(target\)
// case 14: the engine needs prepare\(\), which ends in the vote of all ranks
// case 15: the engine needs commit\(\) noexcept: it must not fail after the vote
// case 16: the engine needs rollback\(\) noexcept
// case 17: start takes a target and no format flag: engines own their lifecycle and format
// case 18: the engine needs `using init_type`, `using update_type` and `using target_type`
// case 19: the engine needs commit\(\) noexcept: it must not fail after the vote
// case 20: has_announce
// case 21: has_vote
// case 22: the engine needs announce\(source, version, target\): the preflight
// case 23: the engine needs next\(\), returning update_type, whose target\(\) names the target
// case 24: has_commit
// case 25 [gcc]: no matching function for call to .*any_engine::any_engine
// case 25 [clang]: no matching (constructor for initialization of|conversion for functional-style cast from .* to) '.*any_engine'

#include <support/plain_engine.hpp>
#include <weightcast/engine/any_engine.hpp>
#include <weightcast/engine/engine_registry.hpp>
#include <weightcast/model/table_source.hpp>
#include <weightcast/session/rpc_worker.hpp>
#include <weightcast/session/weight_sender.hpp>
#include <weightcast/session/weight_worker.hpp>

using namespace weightcast;
using test::plain_engine;
using test::plain_init;
using test::plain_trainer;
using test::plain_update;

static_assert(explain_transfer_engine<plain_engine>());
static_assert(explain_transfer_engine<plain_engine, plain_init, plain_update>());
static_assert(explain_trainer_engine<plain_trainer, plain_init, table_source<>>());

// A user's engine that keeps all that its base has, as those below do with one exception each.
struct own_engine : plain_engine {
    void commit() noexcept {}
    plain_update next() { return {}; }
};

void positive(table_source<>& source, engine_registry& registry) {
    weight_worker<own_engine> worker{own_engine{}};
    rpc_worker<own_engine> served{own_engine{}};
    any_engine erased{own_engine{}};
    registry.add("own", [] { return own_engine{}; });
    weight_sender sender{plain_trainer{}, plain_init{}};
    static_cast<void>(sender.update(source));
}

#if WEIGHTCAST_CASE == 1
struct engine : plain_engine {
    void start() = delete;
};
weight_worker<engine> worker{engine{}};
#elif WEIGHTCAST_CASE == 2
struct engine : plain_engine {
    void prepare() = delete;
};
weight_worker<engine> worker{engine{}};
#elif WEIGHTCAST_CASE == 3
struct engine : plain_engine {
    void commit() noexcept = delete;
};
weight_worker<engine> worker{engine{}};
#elif WEIGHTCAST_CASE == 4
struct engine : plain_engine {
    void commit() {}
};
weight_worker<engine> worker{engine{}};
#elif WEIGHTCAST_CASE == 5
struct engine : plain_engine {
    void rollback() noexcept = delete;
};
weight_worker<engine> worker{engine{}};
#elif WEIGHTCAST_CASE == 6
struct engine : plain_engine {
    void rollback() {}
};
weight_worker<engine> worker{engine{}};
#elif WEIGHTCAST_CASE == 7
struct engine : plain_engine {
    void start(target_id const&, bool is_checkpoint_format = true) {
        static_cast<void>(is_checkpoint_format);
    }
};
weight_worker<engine> worker{engine{}};
#elif WEIGHTCAST_CASE == 8
struct engine : plain_engine {
    using target_type = bool;
    void start(bool is_checkpoint_format) { static_cast<void>(is_checkpoint_format); }
};
weight_worker<engine> worker{engine{}};
#elif WEIGHTCAST_CASE == 9
struct engine : plain_engine {
    void shutdown() = delete;
};
weight_worker<engine> worker{engine{}};
#elif WEIGHTCAST_CASE == 10
struct engine : plain_engine {
    void receive() {}
};
weight_worker<engine> worker{engine{}};
#elif WEIGHTCAST_CASE == 11
struct engine : plain_engine {
    void init(int) {}
};
weight_worker<engine> worker{engine{}};
#elif WEIGHTCAST_CASE == 12
struct engine : plain_engine {
  private:
    using target_type = target_id;
};
weight_worker<engine> worker{engine{}};
#elif WEIGHTCAST_CASE == 13
struct engine : plain_engine {
    void start() {}
};
static_assert(explain_transfer_engine<engine>());
#elif WEIGHTCAST_CASE == 14
struct engine : plain_engine {
    void prepare() = delete;
};
static_assert(explain_transfer_engine<engine>());
#elif WEIGHTCAST_CASE == 15
struct engine : plain_engine {
    void commit() {}
};
static_assert(explain_transfer_engine<engine>());
#elif WEIGHTCAST_CASE == 16
struct engine : plain_engine {
    void rollback() {}
};
static_assert(explain_transfer_engine<engine>());
#elif WEIGHTCAST_CASE == 17
struct engine : plain_engine {
    void start(target_id const&) {}
    void start(target_id const&, bool is_checkpoint_format) {
        static_cast<void>(is_checkpoint_format);
    }
};
static_assert(explain_transfer_engine<engine>());
#elif WEIGHTCAST_CASE == 18
struct engine : plain_engine {
  private:
    using update_type = plain_update;
};
static_assert(explain_transfer_engine<engine>());
#elif WEIGHTCAST_CASE == 19
struct engine : plain_engine {
    void commit() {}
};
any_engine erased{engine{}};
#elif WEIGHTCAST_CASE == 20
struct trainer : plain_trainer {
    void announce() {}
};
void negative(weight_sender<trainer>& sender, table_source<>& source) {
    static_cast<void>(sender.update(source));
}
#elif WEIGHTCAST_CASE == 21
struct trainer : plain_trainer {
    void vote(int) {}
};
void negative(weight_sender<trainer>& sender, table_source<>& source) {
    static_cast<void>(sender.update(source));
}
#elif WEIGHTCAST_CASE == 22
struct trainer : plain_trainer {
    void announce() {}
};
static_assert(explain_trainer_engine<trainer, plain_init, table_source<>>());
#elif WEIGHTCAST_CASE == 23
static_assert(explain_announcements<plain_engine>());
#elif WEIGHTCAST_CASE == 24
struct engine : plain_engine {
    void commit() {}
};
rpc_worker<engine> served{engine{}};
#elif WEIGHTCAST_CASE == 25
struct engine : plain_engine {
    using target_type = int;
    void start(int) {}
};
any_engine erased{engine{}};
#endif
