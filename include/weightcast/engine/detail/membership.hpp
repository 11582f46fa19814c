// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/engine is host-only: include it from a .cpp file"
#endif
// The one group that an engine is in, which another thread may interrupt.

#include <memory>
#include <mutex>
#include <utility>

#include <weightcast/base/error.hpp>
#include <weightcast/engine/engine_group.hpp>

namespace weightcast::detail {

/// Of the engine's thread, but for `interrupt`.
template <Communicator C>
class membership {
  public:
    /// Leaves the group that it is in, then joins. @throws what the factory throws: no group is joined
    void join(communicator_factory<C> const& factory, group_init const& init) {
        leave();
        replace(std::make_unique<engine_group<C>>(factory, init));
    }
    void leave() { replace(nullptr); }
    bool joined() const noexcept { return state_->group != nullptr; }
    /// @throws lifecycle_error  when no group is joined
    engine_group<C>& get() const {
        if (!joined()) throw lifecycle_error{"the engine has joined no group: call init first"};
        return *state_->group;
    }
    /// Ends what runs in the group, by aborting it. Any thread; returns at once.
    void interrupt() noexcept {
        std::lock_guard const lock{state_->mutex};
        if (state_->group) state_->group->communicator().abort();
    }

  private:
    struct state {
        std::mutex mutex;  // held where the pointer changes, and by other threads that read it
        std::unique_ptr<engine_group<C>> group;
    };
    void replace(std::unique_ptr<engine_group<C>> next) {
        std::unique_lock lock{state_->mutex};
        state_->group.swap(next);
        lock.unlock();  // the old group ends outside
    }
    std::unique_ptr<state> state_ = std::make_unique<state>();
};

}  // namespace weightcast::detail
