// SPDX-License-Identifier: Apache-2.0
#pragma once
// A group whose ranks are threads of one process: receivers copy straight from the root's memory.

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <weightcast/base/deadline.hpp>
#include <weightcast/base/error.hpp>
#include <weightcast/base/operation.hpp>
#include <weightcast/comm/communicator_core.hpp>
#include <weightcast/comm/communicator_operations.hpp>
#include <weightcast/comm/concepts.hpp>
#include <weightcast/comm/detail/leaked_state.hpp>
#include <weightcast/comm/detail/local_exchange.hpp>
#include <weightcast/comm/local_group.hpp>
#include <weightcast/runtime/host_runtime.hpp>
#include <weightcast/tensor/device.hpp>

namespace weightcast {

/// One rank of a local_group. Move-only; moved from, it may only be destroyed or assigned to.
/// Semantics: an operation ends on all its ranks together. Ranks that called different operations get
/// peer_error, which names both. A receiver copies each tensor in one call from the root's memory, from any
/// device of host_runtime. A copy that has begun is waited for before any rank leaves a failed operation.
/// Threads: one caller; `abort` from any.
/// Cost: broadcast: two meetings; each receiver copies n bytes once. All-reduce: three meetings; each rank
/// reads n bytes and copies n. No allocation for an operation on one tensor once the stream's queue has grown.
class local_communicator : public communicator_operations<local_communicator> {
  public:
    using runtime = host_runtime;

    local_communicator(local_communicator&&) noexcept = default;
    local_communicator& operator=(local_communicator&& other) noexcept {
        if (this == &other) return *this;
        dispose();
        state_ = std::move(other.state_);
        return *this;
    }
    /// Enters no collective: with operations outstanding the group is aborted.
    ~local_communicator() { dispose(); }

    int rank() const noexcept { return state_->core.rank(); }
    int size() const noexcept { return state_->core.size(); }
    device where() const noexcept { return state_->core.where(); }
    communicator_core<host_runtime>& core() noexcept { return state_->core; }
    communicator_core<host_runtime> const& core() const noexcept { return state_->core; }
    void const* identity() const noexcept { return state_.get(); }
    std::chrono::milliseconds grace() const noexcept { return state_->options().grace; }

    /// Ends the group: this rank's operations with group_aborted, those of others with peer_error. Any thread.
    void abort() noexcept {
        state_->exchange().abort(rank());
        state_->note_end({.where = phase::payload, .rank = rank()});
    }
    /// This rank has failed, or the group has ended.
    bool failed() const noexcept { return state_->core.failed() || state_->exchange().has_ended(); }
    /// The last operation has yet to complete.
    bool outstanding() const noexcept { return state_->outstanding(); }
    /// The rank held responsible for the failure, -1 when unknown.
    int suspect() const noexcept { return state_->suspect.load(std::memory_order_relaxed); }
    /// Bytes of the running or last operation: those that every receiver has, for one that sends.
    std::uint64_t bytes_done() const noexcept { return state_->exchange().bytes_done(rank()); }
    /// @throws the first failure
    void rethrow_if_failed() const {
        if (failed() && !state_->core.failed()) state_->note_end({.rank = rank()});
        state_->core.rethrow_if_failed();
    }

  private:
    friend class local_group;
    friend class communicator_operations<local_communicator>;

    // Ranges of an operation on several; owned by the caller's side, used again when the operation is over.
    struct batch {
        std::vector<transfer_range> ranges{};
        std::uint64_t number = 0;  // of the operation
    };
    struct state {
        state(std::shared_ptr<local_group::shared> g, int rank, device where)
            : group{std::move(g)},
              core{group->exchange.name(), {rank, group->exchange.size()}, where} {}

        detail::local_exchange& exchange() const noexcept { return group->exchange; }
        local_group_options const& options() const noexcept { return group->options; }
        bool outstanding() const noexcept {
            return completed.load(std::memory_order_acquire) !=
                   issued.load(std::memory_order_relaxed);
        }
        /// Records what the group's end means to this rank. @pre  the group has ended
        void note_end(failure_facts facts) noexcept {
            try {
                exchange().rethrow_end(core.rank(), std::move(facts));
            } catch (error const& failure) {
                note_failure(failure.facts().suspect);
            } catch (...) {
                note_failure(-1);
            }
        }
        /// Records the exception in flight.
        void note_failure(int responsible) noexcept {
            if (!core.failed()) suspect.store(responsible, std::memory_order_relaxed);
            core.record_failure(std::current_exception());
        }
        void run(detail::local_operation const& op) noexcept {
            if (core.failed()) return;  // skipped: the exchange would throw again, each time
            try {
                exchange().run(op);
            } catch (error const& failure) {
                note_failure(failure.facts().suspect);
            } catch (std::exception const& failure) {
                note_failure(core.rank());
                exchange().end({.why = detail::local_end::reason::failed,
                                .by = core.rank(),
                                .suspect = core.rank(),
                                .text = failure.what()});
            }
        }

        std::shared_ptr<local_group::shared> group;
        communicator_core<host_runtime> core;
        std::atomic<std::uint64_t> issued{0};
        std::atomic<std::uint64_t> completed{0};
        std::atomic<int> suspect{-1};
        std::vector<batch> batches;  // in the order of their operations, from the oldest around
        std::size_t oldest_batch = 0;
    };
    /// What the collective stream runs: an operation with its one range inside, or its ranges in a batch.
    struct task {
        state* owner;
        detail::local_kind kind;
        int other;
        dtype type;
        reduction how;
        operation op;
        transfer_range single;
        transfer_range const* many;
        std::size_t count;

        void operator()() const noexcept {
            auto const ranges = many == nullptr ? std::span{&single, 1} : std::span{many, count};
            owner->run({.kind = kind,
                        .rank = owner->core.rank(),
                        .other = other,
                        .ranges = ranges,
                        .type = type,
                        .how = how,
                        .label = op.label,
                        .limits = op.limits});
            owner->completed.fetch_add(1, std::memory_order_release);  // the last look at the state
        }
    };

    explicit local_communicator(std::shared_ptr<state> made) noexcept : state_{std::move(made)} {}

    // --- the raw entry ---
    void enqueue_broadcasts(std::span<transfer_range const> ranges, int root, operation const& op) {
        auto next = task_of(detail::local_kind::broadcast, root, op);
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
        enqueue_pairwise(detail::local_kind::send, range, peer, op);
    }
    void enqueue_receive(transfer_range const& range, int peer, operation const& op) {
        enqueue_pairwise(detail::local_kind::receive, range, peer, op);
    }
    void enqueue_all_reduce(transfer_range const& range, dtype type, reduction how,
                            operation const& op) {
        detail::check_reducible(type, range.bytes);
        auto next = task_of(detail::local_kind::all_reduce, 0, op);
        next.type = type;
        next.how = how;
        next.single = range;
        enqueue(next);
    }

    void enqueue_pairwise(detail::local_kind kind, transfer_range const& range, int peer,
                          operation const& op) {
        if (peer == rank()) {
            throw bad_argument{"rank " + std::to_string(peer) +
                               " sends to itself or receives from itself"};
        }
        auto next = task_of(kind, peer, op);
        next.single = range;
        enqueue(next);
    }
    task task_of(detail::local_kind kind, int other, operation const& op) const noexcept {
        return {state_.get(), kind, other, dtype::uint8, reduction::sum, op, {}, nullptr, 0};
    }
    void enqueue(task const& next) {
        if (state_->exchange().has_ended()) {
            state_->note_end({.where = next.op.label.where(),
                              .tensor = std::string{next.op.label.tensor()},
                              .rank = rank()});
            rethrow_if_failed();
        }
        host_runtime::enqueue(core().collective_stream(), next);
        state_->issued.fetch_add(1, std::memory_order_relaxed);
    }
    /// A copy of the ranges that stays until the operation enqueued next is over.
    std::vector<transfer_range> const& keep(std::span<transfer_range const> ranges) {
        auto& batches = state_->batches;
        auto& oldest = state_->oldest_batch;
        auto const over = state_->completed.load(std::memory_order_acquire);
        if (batches.empty() || batches[oldest].number > over) {
            batches.insert(batches.begin() + static_cast<std::ptrdiff_t>(oldest), batch{});
        }
        auto& used = batches[oldest];
        oldest = (oldest + 1) % batches.size();
        used.ranges.assign(ranges.begin(), ranges.end());
        used.number = state_->issued.load(std::memory_order_relaxed) + 1;
        return used.ranges;
    }

    void dispose() noexcept {
        if (state_ == nullptr) return;
        if (outstanding()) {
            abort();
            wait_grace();
        }
        state_->exchange().leave(rank());
        if (outstanding()) {
            detail::leak_state(
                std::move(state_),
                "a local_communicator was destroyed while an operation did not end within "
                "its grace; its memory is kept");
        }
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

    std::shared_ptr<state> state_;
};

inline local_communicator local_group::join(int rank) const {
    shared_->exchange.check_rank(rank);
    auto made = std::make_shared<local_communicator::state>(shared_, rank, device_of(rank));
    shared_->exchange.join(rank);
    return local_communicator{std::move(made)};
}

static_assert(Communicator<local_communicator>);
static_assert(has_send_receive<local_communicator> && has_all_reduce<local_communicator>);

}  // namespace weightcast
