// SPDX-License-Identifier: Apache-2.0
// start, receive..., finish: each step only where it belongs, and an update in one hand.
//
// case 1: finish\(\) consumes the update: write std::move\(update\)\.finish\(\)
// case 2: receive belongs to an open update: auto update = worker\.start\(target\)
// case 3: start takes a target, not a format flag
// case 4: start takes a target, not a format flag
// case 5: start\(\) on a temporary worker, which its update would outlive
// case 6 [gcc]: use of deleted function .*weight_update\(const
// case 6 [clang]: call to deleted constructor of '.*weight_update<
// case 7 [gcc]: use of deleted function .*weight_update<.*operator=
// case 7 [clang]: overload resolution selected deleted operator '='
// case 8 [gcc]: use of deleted function .*weight_worker\(const
// case 8 [clang]: call to deleted constructor of '.*weight_worker<
// case 9 [gcc]: use of deleted function .*weight_worker
// case 9 [clang]: call to deleted constructor of '.*weight_worker<
// case 10: the engine does not take this type of update
// case 11: receive on a temporary update, which would be rolled back at once
// case 12 [gcc]: weight_update\(.* is private within this context
// case 12 [clang]: calling a private constructor of class '.*weight_update<
// case 13 [gcc]: no matching function for call to .*start\(
// case 13 [clang]: no matching member function for call to 'start'
// case 14 [gcc]: use of deleted function .*rpc_worker
// case 14 [clang]: call to deleted constructor of '.*rpc_worker<

#include <utility>

#include <support/plain_engine.hpp>
#include <weightcast/session/rpc_worker.hpp>
#include <weightcast/session/weight_worker.hpp>

using namespace weightcast;
using test::plain_engine;
using test::plain_update;

void positive() {
    weight_worker worker{plain_engine{}};
    auto update = worker.start(target_id::draft());
    update.receive(plain_update{});
    auto handed_on = std::move(update);
    static_cast<void>(std::move(handed_on).finish());
    rpc_worker<plain_engine> served{plain_engine{}};
    served.start();
    served.receive(plain_update{});
    static_cast<void>(served.finish());
}

#if WEIGHTCAST_CASE != 0
void negative(weight_worker<plain_engine>& worker, rpc_worker<plain_engine>& served) {
    auto update = worker.start();
#if WEIGHTCAST_CASE == 1
    update.finish();
#elif WEIGHTCAST_CASE == 2
    worker.receive(plain_update{});
#elif WEIGHTCAST_CASE == 3
    auto checkpoint = worker.start(true);
#elif WEIGHTCAST_CASE == 4
    bool const is_checkpoint_format = false;
    auto kernel = worker.start(is_checkpoint_format);
#elif WEIGHTCAST_CASE == 5
    auto orphan = weight_worker{plain_engine{}}.start();
#elif WEIGHTCAST_CASE == 6
    auto copy = update;
#elif WEIGHTCAST_CASE == 7
    auto other = worker.start();
    other = std::move(update);
#elif WEIGHTCAST_CASE == 8
    auto copy = worker;
#elif WEIGHTCAST_CASE == 9
    auto moved = std::move(worker);
#elif WEIGHTCAST_CASE == 10
    update.receive(3);
#elif WEIGHTCAST_CASE == 11
    worker.start().receive(plain_update{});
#elif WEIGHTCAST_CASE == 12
    weight_update<plain_engine> forged{worker, target_id::main()};
#elif WEIGHTCAST_CASE == 13
    auto flagged = worker.start(target_id::main(), true);
#elif WEIGHTCAST_CASE == 14
    auto moved = std::move(served);
#endif
}
#endif
