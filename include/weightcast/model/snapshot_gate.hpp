// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/model is host-only: include it from a .cpp file"
#endif
// Who may read which set of a target's memory, and who may write: readers and one update, on their own threads.

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <string>
#include <utility>

#include <weightcast/base/deadline.hpp>
#include <weightcast/base/error.hpp>
#include <weightcast/model/weight_version.hpp>

namespace weightcast {

/// The memory of one target, in one set (updates write what readers read) or two (readers keep the old version while
/// an update writes the other set). Readers never wait for each other. All members may be called from any thread.
class snapshot_gate {
  public:
    /// @pre  1 or 2 sets. `name` is for messages.
    explicit snapshot_gate(std::size_t sets, std::string name)
        : sets_{sets}, name_{std::move(name)} {}
    snapshot_gate(snapshot_gate const&) = delete;
    snapshot_gate& operator=(snapshot_gate const&) = delete;

    /// What a reader got: it keeps the set until it leaves.
    struct entry {
        std::size_t set = 0;
        weight_version version{};
    };
    /// Waits while an update writes what would be read, or caches are invalidated.
    /// @throws timeout          at the deadline: an update is still open, or the target is still mixed
    /// @throws lifecycle_error  while the weights are not resident
    entry enter(deadline until) {
        std::unique_lock lock{mutex_};
        changed_.wait_until(lock, until.point(), [&] { return asleep_ || is_readable(); });
        if (asleep_) throw lifecycle_error{of() + " is asleep: its weights are not resident"};
        if (!is_readable()) throw timeout{"no snapshot of " + of() + ": " + why_unreadable()};
        entry in{serving_, version_};
        ++readers_[serving_];
        return in;
    }
    void leave(std::size_t set) noexcept {
        std::lock_guard const lock{mutex_};
        if (--readers_[set] == 0) changed_.notify_all();
    }
    std::size_t readers() const noexcept {
        std::lock_guard const lock{mutex_};
        return readers_[0] + readers_[1];
    }

    /// Opens an update: keeps new readers out where it will write what they would read, and waits for those inside.
    /// @throws lifecycle_error  while the weights are not resident, or for a second update
    /// @throws timeout          at the deadline: readers hold the set; nothing has changed
    void open_update(deadline until) {
        std::unique_lock lock{mutex_};
        if (asleep_) {
            throw lifecycle_error{of() + " is asleep: its weights are not resident; wake it first"};
        }
        if (open_) throw lifecycle_error{"an update of " + of() + " is open already"};
        open_ = true;
        auto const written = written_set();
        if (changed_.wait_until(lock, until.point(), [&] { return readers_[written] == 0; }))
            return;
        open_ = false;
        changed_.notify_all();
        throw timeout{"the update of " + of() + " would write what " +
                      std::to_string(readers_[written]) + " snapshots still read"};
    }
    /// The set that the open update writes. @pre  one is open
    std::size_t written_set() const noexcept { return sets_ == 1 ? 0 : 1 - serving_; }
    std::size_t serving_set() const noexcept {
        std::lock_guard const lock{mutex_};
        return serving_;
    }
    /// The update's version is that of the target; readers get in at `end_update`.
    void publish(weight_version version) noexcept {
        std::lock_guard const lock{mutex_};
        if (sets_ == 2 && open_) serving_ = 1 - serving_;
        version_ = std::move(version);
        mixed_ = false;
        published_ = open_;
    }
    /// What is written is worth nothing: with one set, the target is mixed; with two, readers have the old version.
    /// Returns whether it is mixed.
    bool spoil() noexcept {
        std::lock_guard const lock{mutex_};
        mixed_ = mixed_ || sets_ == 1;
        return mixed_;
    }
    /// Ends the open update, and lets readers in again. `stale`: caches could not be invalidated, so readers stay out
    /// until a later update is published; one that was not leaves that as it is. Does nothing when none is open.
    void end_update(bool stale = false) noexcept {
        std::lock_guard const lock{mutex_};
        if (!open_) return;
        open_ = false;
        if (std::exchange(published_, false) || stale) stale_ = stale;
        changed_.notify_all();
    }
    /// A snapshot would be given now.
    bool readable() const noexcept {
        std::lock_guard const lock{mutex_};
        return !asleep_ && is_readable();
    }
    /// Names the version anew; the weights stay.
    void relabel(std::string label) {
        std::lock_guard const lock{mutex_};
        version_.label = std::move(label);
    }

    /// The weights will be unmapped: readers are kept out, an open update is asked to stop, and both are waited for.
    /// @throws timeout  at the deadline; it stays awake
    void fall_asleep(deadline until) {
        std::unique_lock lock{mutex_};
        asleep_ = true;
        stop_.store(true, std::memory_order_relaxed);
        changed_.notify_all();
        bool const quiet = changed_.wait_until(
            lock, until.point(), [&] { return !open_ && readers_[0] + readers_[1] == 0; });
        stop_.store(false, std::memory_order_relaxed);
        if (quiet) return;
        asleep_ = false;
        changed_.notify_all();
        throw timeout{of() + " cannot sleep: " + std::to_string(readers_[0] + readers_[1]) +
                      " snapshots are held" + (open_ ? ", and an update is open" : "")};
    }
    void wake() noexcept {
        std::lock_guard const lock{mutex_};
        asleep_ = false;
        changed_.notify_all();
    }
    bool asleep() const noexcept {
        std::lock_guard const lock{mutex_};
        return asleep_;
    }
    /// The open update has to end without writing on. Cost: one relaxed load.
    bool stop_requested() const noexcept { return stop_.load(std::memory_order_relaxed); }

    weight_version version() const {
        std::lock_guard const lock{mutex_};
        return version_;
    }
    bool mixed() const noexcept {
        std::lock_guard const lock{mutex_};
        return mixed_;
    }

  private:
    std::string of() const { return "target '" + name_ + "'"; }
    bool is_readable() const noexcept {
        return !mixed_ && !stale_ && !published_ && (sets_ == 2 || !open_);
    }
    std::string why_unreadable() const {
        if (mixed_) return "it is mixed: only a full update repairs it";
        if (open_) return "an update is open";
        return "its caches could not be invalidated after the last update";
    }

    std::size_t sets_;
    std::string name_;
    mutable std::mutex mutex_;  // guards what follows
    std::condition_variable changed_;
    std::array<std::size_t, 2> readers_{};
    std::size_t serving_ = 0;
    weight_version version_{};
    bool open_ = false;
    bool published_ = false;  // by the open update
    bool stale_ = false;
    bool mixed_ = false;
    bool asleep_ = false;
    std::atomic<bool> stop_{false};
};

}  // namespace weightcast
