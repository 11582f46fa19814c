// SPDX-License-Identifier: Apache-2.0
#pragma once
// A group of processes, on one or many hosts, over Gloo: the communicator for ordinary memory.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <weightcast/base/error.hpp>
#include <weightcast/base/log.hpp>
#include <weightcast/comm/communicator_core.hpp>
#include <weightcast/comm/communicator_operations.hpp>
#include <weightcast/comm/concepts.hpp>
#include <weightcast/comm/detail/gloo_join.hpp>
#include <weightcast/comm/detail/gloo_state.hpp>
#include <weightcast/comm/detail/leaked_state.hpp>
#include <weightcast/comm/gloo_options.hpp>
#include <weightcast/comm/group_registry.hpp>
#include <weightcast/comm/transfer_range.hpp>
#include <weightcast/runtime/host_runtime.hpp>

namespace weightcast {

/// A rank of a group over Gloo. Move-only handle; moved from it can only be destroyed or assigned to.
/// Semantics: as every Communicator. Bytes go straight from and to the tensors' memory, without a copy.
/// What the ranks call is compared before any byte moves: a difference is a peer_error on all of them.
/// A rank whose process ends is told to all others at once; one that is stuck, when a limit of theirs passes.
/// Threads: one caller, and any for abort(). Interoperates with itself only, not with torch's groups.
/// Cost: a broadcast of n bytes over W ranks: 3 ceil(log2 W) short messages, n bytes sent by each rank but
/// the last, in pieces that overlap. Up to 4 KiB go inside the messages.
class gloo_communicator : public communicator_operations<gloo_communicator> {
  public:
    using runtime = host_runtime;
    using options_type = gloo_options;

    /// Joins; returns once all ranks are connected. A group of that name and rank that this process holds
    /// is aborted and replaced.
    /// @throws bad_argument    for options that cannot work, or that differ between ranks: names both
    /// @throws timeout         naming who is missing, or the address that nobody answers at
    /// @throws peer_error      when another rank fails meanwhile; joining again is fine
    /// @throws system_failure  for a port in use, or a host name that does not exist
    static gloo_communicator join(gloo_options const& options) {
        detail::check_options(options);
        auto state = std::make_shared<detail::gloo_state>(options);
        auto entry = group_registry::process().enter(
            {options.name, options.rank,
             "a gloo group of " + std::to_string(options.size) + " ranks at " +
                 (options.at.empty() ? std::string{"this process"} : to_string(options.at))},
            [held = std::weak_ptr{state}](std::string_view why) {
                if (auto const old = held.lock()) old->be_replaced(std::string{why});
            });
        detail::gloo_join{options, *state}.run();
        return gloo_communicator{std::move(state), std::move(entry)};
    }

    gloo_communicator(gloo_communicator&&) noexcept = default;
    gloo_communicator& operator=(gloo_communicator&& other) noexcept {
        if (this == &other) return *this;
        dispose();
        state_ = std::move(other.state_);
        entry_ = std::move(other.entry_);
        issued_ = std::exchange(other.issued_, 0);
        batches_ = std::move(other.batches_);
        return *this;
    }
    /// Enters no collective. With operations outstanding the group is aborted; else waits, for the grace at
    /// most, until no other rank needs anything of this one.
    ~gloo_communicator() { dispose(); }

    int rank() const noexcept { return state_->core.rank(); }
    int size() const noexcept { return state_->core.size(); }
    device where() const noexcept { return state_->core.where(); }
    communicator_core<host_runtime>& core() noexcept { return state_->core; }
    communicator_core<host_runtime> const& core() const noexcept { return state_->core; }
    void const* identity() const noexcept { return state_.get(); }
    std::chrono::milliseconds grace() const noexcept { return state_->grace; }

    /// Ends the group: this rank's operations with group_aborted, those of others with peer_error. Any thread;
    /// returns at once.
    void abort() noexcept {
        state_->stop_from_here(detail::failure_kind::aborted,
                               "rank " + std::to_string(rank()) + " aborted the group");
    }
    /// An operation has failed here, or the group has ended.
    bool failed() const noexcept { return state_->core.failed() || state_->stopped(); }
    /// The last operation has yet to complete.
    bool outstanding() const noexcept {
        return state_->completed.load(std::memory_order_acquire) != issued_;
    }
    /// The rank held responsible for the failure, -1 when unknown.
    int suspect() const noexcept { return state_->suspect(); }
    /// Bytes of the running or last operation that have come, or that the transport has taken.
    std::uint64_t bytes_done() const noexcept { return state_->watch.bytes_done(); }
    /// @throws the first failure
    void rethrow_if_failed() const { rethrow_at({}); }

  private:
    friend class communicator_operations<gloo_communicator>;

    /// Ranges of an operation on several; used again when the operation is over.
    struct batch {
        std::vector<transfer_range> ranges{};
        std::uint64_t number = 0;  ///< of the operation
    };
    /// What the collective stream runs.
    struct task {
        detail::gloo_state* state;
        detail::operation_header header;
        operation op;
        transfer_range single;
        transfer_range const* many;
        std::size_t count;

        void operator()() const noexcept {
            auto const ranges = many == nullptr ? std::span{&single, 1} : std::span{many, count};
            state->run(header, op.label, op.limits, ranges);
            state->completed.fetch_add(1, std::memory_order_release);  // the last look at the state
        }
    };

    gloo_communicator(std::shared_ptr<detail::gloo_state> state,
                      group_registry::entry entry) noexcept
        : state_{std::move(state)}, entry_{std::move(entry)} {}

    // --- the raw entry ---
    void enqueue_broadcasts(std::span<transfer_range const> ranges, int root, operation const& op) {
        task next{state_.get(), {.kind = detail::operation_kind::broadcast, .root = root},
                  op,           {},
                  nullptr,      0};
        if (ranges.size() == 1) {
            next.single = ranges.front();
        } else {
            auto const& kept = keep(ranges);
            next.many = kept.data();
            next.count = kept.size();
        }
        enqueue(next);
    }
    void enqueue_send(transfer_range const& range, int peer, operation const& op) {
        require_other(peer);
        enqueue({state_.get(),
                 {.kind = detail::operation_kind::send, .root = rank(), .peer = peer},
                 op,
                 range,
                 nullptr,
                 0});
    }
    void enqueue_receive(transfer_range const& range, int peer, operation const& op) {
        require_other(peer);
        enqueue({state_.get(),
                 {.kind = detail::operation_kind::send, .root = peer, .peer = rank()},
                 op,
                 range,
                 nullptr,
                 0});
    }
    void enqueue_all_reduce(transfer_range const& range, dtype type, reduction how,
                            operation const& op) {
        detail::check_reducible(type, range.bytes);
        enqueue({state_.get(),
                 {.kind = detail::operation_kind::all_reduce, .type = type, .how = how},
                 op,
                 range,
                 nullptr,
                 0});
    }

    void rethrow_at(operation_label const& label) const {
        if (state_->stopped() && !state_->core.failed()) state_->note_stop(label);
        state_->core.rethrow_if_failed();
    }
    void require_other(int peer) const {
        if (peer != rank()) return;
        throw bad_argument{"rank " + std::to_string(peer) +
                           " sends to itself or receives from itself"};
    }
    void enqueue(task const& next) {
        rethrow_at(next.op.label);
        host_runtime::enqueue(core().collective_stream(), next);
        ++issued_;
    }
    /// A copy of the ranges that stays until the operation enqueued next is over.
    std::vector<transfer_range> const& keep(std::span<transfer_range const> ranges) {
        auto const over = state_->completed.load(std::memory_order_acquire);
        batch fresh{};
        if (!batches_.empty() && batches_.front().number <= over) {
            fresh = std::move(batches_.front());
            batches_.pop_front();
        }
        fresh.ranges.assign(ranges.begin(), ranges.end());
        fresh.number = issued_ + 1;
        batches_.push_back(std::move(fresh));
        return batches_.back().ranges;
    }

    void dispose() noexcept {
        if (state_ == nullptr) return;
        entry_.leave();
        if (outstanding()) {
            abort();
            wait_grace();
        }
        if (outstanding()) return leak();
        if (failed()) {
            state_->report_what_is_left();
        } else {
            leave();
        }
        state_->expect_end();
        state_.reset();
    }
    void wait_grace() noexcept {
        try {
            static_cast<void>(
                host_runtime::wait(core().collective_stream(), deadline::after(grace())));
        } catch (...) {
            // unproven: the state is kept
        }
    }
    void leak() noexcept {
        // the ranges of what is queued stay with the state
        auto kept =
            std::make_shared<std::pair<std::shared_ptr<detail::gloo_state>, std::deque<batch>>>(
                std::move(state_), std::move(batches_));
        detail::leak_state(
            std::move(kept),
            "a gloo_communicator was destroyed while an operation did not end within its "
            "grace; its memory is kept");
    }
    /// Closing a connection may destroy what is on its way: others say first that they have everything.
    void leave() noexcept {
        auto* const channel = state_->side_channel();
        if (channel == nullptr) return;  // alone
        try {
            channel->leave(state_->account.snapshot(), deadline::after(grace()));
        } catch (timeout const&) {
            log_line("group '" + core().name() + "': rank " + std::to_string(rank()) +
                     " leaves while another rank has operations with it under way");
        } catch (...) {
            // nobody left to ask: rank 0 took the server along once all collectives were over everywhere
            if (state_->account.has_sent())
                std::this_thread::sleep_for(std::chrono::milliseconds{100});
        }
    }

    std::shared_ptr<detail::gloo_state> state_;
    group_registry::entry entry_;
    std::uint64_t issued_ = 0;
    std::deque<batch> batches_;
};

static_assert(Communicator<gloo_communicator>);
static_assert(has_send_receive<gloo_communicator> && has_all_reduce<gloo_communicator>);

}  // namespace weightcast
