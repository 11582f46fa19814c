// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where the ranks of a group of threads meet: they compare what each of them called, copy straight from each
// other's memory, and leave together.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <weightcast/base/deadline.hpp>
#include <weightcast/base/error.hpp>
#include <weightcast/comm/detail/local_end.hpp>
#include <weightcast/comm/detail/local_operation.hpp>
#include <weightcast/comm/detail/local_transfer.hpp>

namespace weightcast::detail {

/// One generation of a group. Threads: any; each rank has one operation at a time.
/// An operation has stages: all ranks arrive (and nothing moved), then each does its part and arrives again.
/// A rank whose operation fails stays until no other rank copies from or to the memory of that operation.
class local_exchange {
    using clock = deadline::clock;

    struct seat {
        local_operation const* posted = nullptr;
        int arrived = 0;   // stages that this rank has come to
        int released = 0;  // stages that all ranks have come to
        bool joined = false;
        bool left = false;
        bool copying = false;
        clock::time_point moved{};  // when bytes last moved, or the operation began
        std::atomic<std::uint64_t> bytes{0};
    };

  public:
    local_exchange(std::string name, int size)
        : name_{std::move(name)}, seats_(static_cast<std::size_t>(size)) {}

    std::string const& name() const noexcept { return name_; }
    int size() const noexcept { return static_cast<int>(seats_.size()); }

    /// @throws bad_argument  for a rank that is none
    void check_rank(int rank) const {
        if (rank >= 0 && rank < size()) return;
        throw bad_argument{"rank " + std::to_string(rank) + " is no rank of group '" + name_ +
                           "' of " + std::to_string(size())};
    }
    /// @throws lifecycle_error  for a rank that has joined already; what ended the group, if it has ended
    void join(int rank) {
        std::lock_guard const lock{mutex_};
        if (ended_) throw_end(rank, {.where = phase::connect, .rank = rank});
        if (std::exchange(at(rank).joined, true)) {
            throw lifecycle_error{"rank " + std::to_string(rank) + " of group '" + name_ +
                                  "' has joined already; a new local_group forms the group anew"};
        }
    }
    /// The rank takes part no more; what waits for it ends.
    void leave(int rank) noexcept {
        std::lock_guard const lock{mutex_};
        at(rank).left = true;
        changed_.notify_all();
    }
    /// Ends the group unless it has ended, and wakes everyone. Returns at once.
    void end(local_end how) noexcept {
        std::lock_guard const lock{mutex_};
        end_locked(std::move(how));
    }
    /// Ends the group on behalf of that rank, which may be in an operation. Returns at once.
    void abort(int rank) noexcept {
        std::lock_guard const lock{mutex_};
        auto const* const op = at(rank).posted;
        end_locked({.why = local_end::reason::aborted,
                    .by = rank,
                    .suspect = op == nullptr ? -1 : absent_rank(*op)});
    }
    bool has_ended() const noexcept { return ended_.load(std::memory_order_acquire); }
    /// Throws what the group's end means to that rank. @pre  has_ended()
    [[noreturn]] void rethrow_end(int rank, failure_facts facts) const {
        std::lock_guard const lock{mutex_};
        throw_end(rank, std::move(facts));
    }

    /// Runs one operation to its end. @throws timeout, peer_error, group_aborted  the group has ended
    void run(local_operation const& op) {
        std::unique_lock lock{mutex_};
        post(op);
        await_stage(lock, op, 1);
        if (op.kind == local_kind::all_reduce) return finish_all_reduce(lock, op);
        if (!op.only_sends()) {
            work(lock, op, [&]() noexcept {
                auto const copied = [&](std::size_t bytes) { add_bytes(op.rank, bytes); };
                copy_ranges(op.ranges, at(op.other).posted->ranges, ended_, copied);
            });
        }
        await_stage(lock, op, 2, last_stage);
    }

    /// Bytes of the rank's running or last operation: those that every receiver has, for one that sends.
    std::uint64_t bytes_done(int rank) const noexcept {
        std::lock_guard const lock{mutex_};
        return bytes_locked(rank);
    }

  private:
    static constexpr bool last_stage = true;

    seat& at(int rank) noexcept { return seats_[static_cast<std::size_t>(rank)]; }
    seat const& at(int rank) const noexcept { return seats_[static_cast<std::size_t>(rank)]; }

    // --- meeting ---

    void post(local_operation const& op) {
        auto& mine = at(op.rank);
        mine.arrived = mine.released = 0;
        mine.bytes.store(0, std::memory_order_relaxed);
        mine.moved = clock::now();
        mine.posted = &op;
        if (!ended_) refuse_mismatch(op);
    }
    /// The rank's operation is another side of this one.
    bool is_met(local_operation const& op, int rank) const noexcept {
        auto const* const theirs = at(rank).posted;
        return theirs != nullptr && theirs->involves(op.rank);
    }
    /// Two operations that wait for each other and do not match would wait for ever.
    void refuse_mismatch(local_operation const& op) {
        for (int r = 0; r < size(); ++r) {
            if (r == op.rank || !op.involves(r) || !is_met(op, r)) continue;
            auto const& theirs = *at(r).posted;
            if (match(theirs, op)) continue;
            return end_locked({.why = local_end::reason::mismatched,
                               .by = op.rank,
                               .text = "the ranks disagree about an operation",
                               .expected = describe_against(theirs, op),
                               .actual = describe_against(op, theirs)});
        }
    }
    bool has_arrived(local_operation const& op, int rank, int stage) const noexcept {
        return is_met(op, rank) && at(rank).arrived >= stage;
    }
    /// The first rank that this one waits for, -1 when it waits for none.
    int absent_rank(local_operation const& op) const noexcept {
        for (int r = 0; r < size(); ++r) {
            if (op.involves(r) && !has_arrived(op, r, at(op.rank).arrived)) return r;
        }
        return -1;
    }
    bool all_arrived(local_operation const& op, int stage) const noexcept {
        for (int r = 0; r < size(); ++r) {
            if (op.involves(r) && !has_arrived(op, r, stage)) return false;
        }
        return true;
    }
    void release_all(local_operation const& op, int stage, bool is_last) noexcept {
        // A rank's bytes are counted while all are still here.
        for (int r = 0; is_last && r < size(); ++r) {
            if (op.involves(r)) at(r).bytes.store(bytes_locked(r), std::memory_order_relaxed);
        }
        for (int r = 0; r < size(); ++r) {
            if (!op.involves(r)) continue;
            at(r).released = stage;
            if (is_last) at(r).posted = nullptr;
        }
        changed_.notify_all();
    }
    /// Waits until all ranks of the operation have come to the stage. @throws what ended the group
    void await_stage(std::unique_lock<std::mutex>& lock, local_operation const& op, int stage,
                     bool is_last = false) {
        auto& mine = at(op.rank);
        mine.arrived = stage;
        if (!ended_ && all_arrived(op, stage)) release_all(op, stage, is_last);
        while (mine.released < stage) {
            if (!ended_) end_for_absent(op);
            if (ended_) give_up(lock, op);
            wait_until(lock, next_look(op));
        }
    }
    /// Runs one rank's part without the lock. Others stay while it runs.
    template <class Part>
    void work(std::unique_lock<std::mutex>& lock, local_operation const& op, Part part) {
        auto& mine = at(op.rank);
        if (ended_) give_up(lock, op);
        mine.copying = true;
        lock.unlock();
        part();
        lock.lock();
        mine.copying = false;
        mine.moved = clock::now();
        if (ended_) changed_.notify_all();
    }

    void finish_all_reduce(std::unique_lock<std::mutex>& lock, local_operation const& op) {
        auto const data = [&](int rank) { return data_of(rank); };
        auto const moved = [&](std::size_t bytes) { add_bytes(op.rank, bytes); };
        local_share const share{op.rank, size(), op.ranges.front().bytes, op.type};
        work(lock, op, [&]() noexcept { share.reduce(data, op.how, moved); });
        await_stage(lock, op, 2);
        work(lock, op, [&]() noexcept { share.gather(data, ended_, moved); });
        await_stage(lock, op, 3, last_stage);
    }

    // --- time ---

    bool is_copying(local_operation const& op) const noexcept {
        for (int r = 0; r < size(); ++r) {
            if (op.involves(r) && is_met(op, r) && at(r).copying) return true;
        }
        return false;
    }
    /// When the operation is over time, or has to be looked at anew: a copy that runs is bytes that move.
    clock::time_point next_look(local_operation const& op) const noexcept {
        auto moved = is_copying(op) ? clock::now() : at(op.rank).moved;
        for (int r = 0; r < size(); ++r) {
            if (op.involves(r) && is_met(op, r)) moved = std::max(moved, at(r).moved);
        }
        auto const left = clock::time_point::max() - moved;
        auto const stall =
            op.limits.stall >= left ? clock::time_point::max() : moved + op.limits.stall;
        return std::min(stall, op.limits.at.point());
    }
    void wait_until(std::unique_lock<std::mutex>& lock, clock::time_point point) {
        if (point == clock::time_point::max()) return changed_.wait(lock);
        changed_.wait_until(lock, point);
    }

    // --- the end ---

    void end_locked(local_end how) noexcept {
        if (!ended_) end_ = std::move(how);
        ended_.store(true, std::memory_order_release);
        changed_.notify_all();
    }
    /// Ends the group when a rank that the operation needs has left, or when its time is up.
    void end_for_absent(local_operation const& op) {
        int const absent = absent_rank(op);
        for (int r = 0; r < size(); ++r) {
            if (!op.involves(r) || !at(r).left) continue;
            return end_locked({.why = local_end::reason::left,
                               .by = r,
                               .suspect = r,
                               .text = "rank " + std::to_string(r) + " left the group"});
        }
        auto const now = clock::now();
        if (now < next_look(op)) return;
        char const* const limit = now >= op.limits.at.point()
                                      ? "the deadline passed"
                                      : "no byte moved within the stall limit";
        end_locked({.why = local_end::reason::timed_out,
                    .by = op.rank,
                    .suspect = absent,
                    .text = limit + std::string{" in "} + describe(op) + ": rank " +
                            std::to_string(absent) + " " + whereabouts(op, absent)});
    }
    std::string whereabouts(local_operation const& op, int rank) const {
        auto const& theirs = at(rank);
        if (!theirs.joined) return "has not joined the group";
        if (theirs.posted == nullptr) return "has not called it";
        if (!theirs.posted->involves(op.rank)) return "is in " + describe(*theirs.posted);
        return "has not finished its part";
    }
    /// Leaves a failed operation as soon as no rank copies from or to its memory; a copy always ends.
    [[noreturn]] void give_up(std::unique_lock<std::mutex>& lock, local_operation const& op) {
        changed_.wait(lock, [&] { return !is_copying(op); });
        auto& mine = at(op.rank);
        mine.bytes.store(bytes_locked(op.rank), std::memory_order_relaxed);
        mine.posted = nullptr;
        throw_end(op.rank, {.where = op.label.where(),
                            .tensor = op.tensor(),
                            .rank = op.rank,
                            .bytes_done = mine.bytes.load(std::memory_order_relaxed)});
    }
    [[noreturn]] void throw_end(int rank, failure_facts facts) const {
        throw_as_seen_by(rank, end_, name_, std::move(facts));
    }

    // --- bytes ---

    std::uint64_t bytes_locked(int rank) const noexcept {
        auto const& mine = at(rank);
        auto const own = mine.bytes.load(std::memory_order_relaxed);
        if (mine.posted == nullptr || !mine.posted->only_sends()) return own;
        if (mine.released == 0) return 0;
        std::uint64_t least = mine.posted->bytes();
        for (int r = 0; r < size(); ++r) {
            if (r == rank || !mine.posted->involves(r) || !is_met(*mine.posted, r)) continue;
            least = std::min(least, at(r).bytes.load(std::memory_order_relaxed));
        }
        return least;
    }
    std::byte* data_of(int rank) const noexcept {
        return static_cast<std::byte*>(at(rank).posted->ranges.front().data);
    }
    void add_bytes(int rank, std::size_t bytes) noexcept {
        at(rank).bytes.fetch_add(bytes, std::memory_order_relaxed);
    }

    std::string name_;
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<seat> seats_;
    local_end end_{};  // once it has ended
    std::atomic<bool> ended_{false};
};

}  // namespace weightcast::detail
