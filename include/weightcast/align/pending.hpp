// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a broadcast leaves behind: the source may be overwritten only after this was waited for.

#include <optional>
#include <utility>

#include <weightcast/base/deadline.hpp>
#include <weightcast/base/expects.hpp>
#include <weightcast/base/operation.hpp>
#include <weightcast/comm/concepts.hpp>
#include <weightcast/runtime/event.hpp>

namespace weightcast {

/// A broadcast under way. The source may be overwritten or freed only after `wait`, or on a stream that was
/// given to `then`. One that saw neither aborts the group if its work is outstanding, and is a contract
/// violation in either case. The communicator must outlive it.
template <Communicator C>
class [[nodiscard]] pending {
    using runtime = typename C::runtime;

  public:
    /// Names the work that the communicator's stream holds now.
    pending(C& communicator, operation_label const& label)
        : communicator_{&communicator}, done_{communicator.core().take_event()}, label_{label} {
        runtime::record(done_->ref(), communicator.core().collective_stream());
    }
    /// Moved from: nothing left to wait for.
    pending(pending&& other) noexcept
        : communicator_{std::exchange(other.communicator_, nullptr)},
          done_{std::move(other.done_)},
          label_{other.label_},
          seen_{other.seen_} {}
    pending& operator=(pending&&) = delete;
    ~pending() {
        if (communicator_ == nullptr) return;
        if (!seen_) {
            if (communicator_->outstanding()) communicator_->abort();
            detail::report_violation(
                "a pending broadcast was dropped: call wait(deadline), or then(stream), before its source "
                "may change");
        }
        communicator_->core().give_event(std::move(*done_));
    }

    /// Returns when the bytes have left the source for good. An aborted wait counts as waited for.
    /// @throws timeout, peer_error, group_aborted  the group must be re-formed
    void wait(deadline until) {
        WEIGHTCAST_EXPECTS(communicator_ != nullptr, "this pending was moved from");
        seen_ = true;
        communicator_->wait(done_->ref(), until, label_);
    }
    /// What the stream gets from now on runs after the broadcast.
    void then(typename runtime::stream_ref stream) {
        WEIGHTCAST_EXPECTS(communicator_ != nullptr, "this pending was moved from");
        runtime::stream_wait(stream, done_->ref());
        seen_ = true;
    }
    /// Done already? Does not count as waited for unless it is.
    bool ready() {
        WEIGHTCAST_EXPECTS(communicator_ != nullptr, "this pending was moved from");
        bool const reached = runtime::query(done_->ref());
        if (reached) seen_ = true;
        return reached;
    }

  private:
    C* communicator_;
    std::optional<event<runtime>> done_;
    operation_label label_;
    bool seen_ = false;
};

}  // namespace weightcast
