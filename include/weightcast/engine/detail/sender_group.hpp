// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/engine is host-only: include it from a .cpp file"
#endif
// One of a sender's groups during an update: its agreed announcement, and why it left the update if it did.

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <weightcast/base/error.hpp>
#include <weightcast/engine/detail/tensor_digests.hpp>
#include <weightcast/engine/engine_group.hpp>
#include <weightcast/engine/transfer_settings.hpp>
#include <weightcast/model/concepts.hpp>
#include <weightcast/plan/announcement.hpp>

namespace weightcast::detail {

/// Calls step(0) .. step(count - 1), each on a thread of its own when there are several; returns when all have.
/// Where a thread cannot be started, `missed(i)` is called instead for it and those after it, with the error in
/// flight: steps may wait for each other, so none is dropped in silence.
template <class F, class Missed>
void run_side_by_side(std::size_t count, F const& step, Missed const& missed) {
    if (count == 1) return step(0);
    std::vector<std::jthread> threads;
    threads.reserve(count);
    try {
        while (threads.size() < count) {
            threads.emplace_back([&step, i = threads.size()] { step(i); });
        }
    } catch (...) {
        for (auto i = threads.size(); i < count; ++i) missed(i);
    }
}

/// Where the preflights of several groups meet, so that what one of them has to pack is packed for all: then
/// every group gets the same chunks. A group that fails leaves; nobody waits for it.
class packed_meeting {
  public:
    explicit packed_meeting(std::size_t groups) : expected_{groups} {}

    /// One group's place: leaves at its end, unless it has come.
    class seat {
      public:
        explicit seat(packed_meeting& meeting) noexcept : meeting_{meeting} {}
        seat(seat const&) = delete;
        seat& operator=(seat const&) = delete;
        ~seat() {
            if (!come_) meeting_.count_one();
        }
        /// Adds this group's flags without waiting for the others'.
        void contribute(std::vector<std::uint8_t> const& flags) {
            if (std::exchange(come_, true)) return;
            meeting_.add(flags);
            meeting_.count_one();
        }
        /// Blocks until every group has come or left; then the flags are those of all.
        /// @throws timeout  at the deadline
        void merge(std::vector<std::uint8_t>& flags, deadline until) {
            contribute(flags);
            meeting_.wait_for_all(flags, until);
        }

      private:
        packed_meeting& meeting_;
        bool come_ = false;
    };

    /// A group leaves that has no seat.
    void leave() noexcept { count_one(); }

  private:
    void add(std::vector<std::uint8_t> const& flags) {
        std::lock_guard const lock{mutex_};
        merged_.resize(std::max(merged_.size(), flags.size()), 0);
        for (std::size_t i = 0; i < flags.size(); ++i) merged_[i] |= flags[i];
    }
    void count_one() noexcept {
        std::lock_guard const lock{mutex_};
        --expected_;
        all_here_.notify_all();
    }
    void wait_for_all(std::vector<std::uint8_t>& flags, deadline until) {
        std::unique_lock lock{mutex_};
        if (!all_here_.wait_until(lock, until.point(), [&] { return expected_ == 0; })) {
            fail<timeout>("another group of this sender did not agree in time",
                          {.where = phase::preflight});
        }
        flags.assign(merged_.begin(), merged_.begin() + static_cast<std::ptrdiff_t>(flags.size()));
    }

    std::mutex mutex_;
    std::condition_variable all_here_;
    std::size_t expected_;
    std::vector<std::uint8_t> merged_;
};

template <class C>
class sender_group {
  public:
    sender_group(communicator_factory<C> const& factory, group_init const& init)
        : member_{factory, init} {}

    std::string const& name() const noexcept { return member_.init().name; }
    int size() noexcept { return member_.communicator().size(); }
    C& communicator() noexcept { return member_.communicator(); }
    std::exception_ptr failure() const noexcept { return failure_; }
    /// Parameters of all trainers of this group, as all its ranks agreed.
    announcement const& agreed() const noexcept { return agreed_; }
    int rank() noexcept { return member_.communicator().rank(); }

    /// A new update begins: a group whose communicator still works takes part again.
    void begin() noexcept {
        failure_ = nullptr;
        attempt([&] { member_.require_alive(); });
    }
    /// Runs a step that all ranks of the group take; what it throws takes this group out of the update. A
    /// refusal, which all ranks hear alike, leaves the group usable; else it is aborted, as its peers wait for
    /// what does not come.
    template <class F>
    void attempt(F const& step) noexcept {
        try {
            step();
        } catch (refused_update const&) {
            fail_with(std::current_exception(), false);
        } catch (...) {
            fail_with(std::current_exception(), true);
        }
    }
    /// Takes this group out of the update; with `abort` its peers, which wait for payload, hear of it.
    void fail_with(std::exception_ptr why, bool abort) noexcept {
        if (!failure_) failure_ = std::move(why);
        if (abort) member_.communicator().abort();
    }

    void preflight(announcement const& announced, std::vector<tensor_placement> const& placements,
                   packed_meeting& meeting, op_limits const& op) {
        packed_meeting::seat seat{meeting};  // first: what throws from here on leaves the meeting
        auto mine = announced;
        complete(mine, placements);
        if (several_trainers()) seat.contribute(mine.packed);  // its flags are settled: all are set
        auto all = member_.exchange(mine, op, [&] { return op; });
        refuse_if(member_.mailbox().agree(all.objection, op, phase::preflight), phase::preflight);
        agreed_ = std::move(all.merged);
        member_.agree_on_packed(
            agreed_, op, [&](std::vector<std::uint8_t>& flags) { seat.merge(flags, op.at); });
        own_begin_ = static_cast<std::size_t>(std::ranges::find(agreed_.roots, rank()) -
                                              agreed_.roots.begin());
    }
    /// Where this sender's parameters begin in the agreed list.
    std::size_t own_begin() const noexcept { return own_begin_; }
    void vote(std::vector<std::uint64_t> const& digests, op_limits const& op) {
        std::optional<std::string> objection;
        try {
            if (agreed_.verify)
                static_cast<void>(exchange_digests(member_, std::optional{digests}, agreed_, op));
        } catch (bad_input const& e) {
            objection = e.what();
        }
        refuse_if(member_.mailbox().agree(objection, vote_limits(op, agreed_), phase::vote),
                  phase::vote);
    }
    void announce_failure(announcement failed, op_limits const& op) noexcept {
        attempt([&] {
            failed.epoch = member_.next_epoch();
            static_cast<void>(member_.exchange(failed, op, [&] { return op; }));
        });
    }

  private:
    // What only this group knows: its rank here, its count of updates, its device, whether others send too.
    void complete(announcement& mine, std::vector<tensor_placement> const& placements) {
        mine.roots.assign(mine.parameters.size(), rank());
        auto const here = member_.communicator().where();
        // Several trainers receive each other's bytes and drop them: through the ring, not tensor by tensor.
        bool const several = several_trainers();
        std::ranges::transform(placements, mine.packed.begin(), [&](tensor_placement const& p) {
            bool const direct = !several && p.contiguous && p.where == here;
            return static_cast<std::uint8_t>(!direct);
        });
        mine.plan_digest = packing_plan{planned_tensors(mine), mine.options}.digest();
        mine.epoch = member_.next_epoch();  // last: what cannot be announced is not counted
    }
    bool several_trainers() const noexcept { return member_.init().trainers.size() > 1; }
    void refuse_if(std::optional<refusal> const& refused, phase where) {
        if (!refused) return;
        fail<refused_update>(
            "refused by rank " + std::to_string(refused->rank) + ": " + refused->reason,
            {.where = where, .rank = rank(), .suspect = refused->rank});
    }

    engine_group<C> member_;
    announcement agreed_;
    std::size_t own_begin_ = 0;
    std::exception_ptr failure_;
};

}  // namespace weightcast::detail
