// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/session is host-only: include it from a .cpp file"
#endif
// The lifecycle as a type: start, receive..., finish; what is not finished is rolled back.

#include <concepts>
#include <exception>
#include <string>
#include <utility>

#include <weightcast/base/error.hpp>
#include <weightcast/base/log.hpp>
#include <weightcast/engine/concepts.hpp>
#include <weightcast/model/target_id.hpp>
#include <weightcast/session/update_result.hpp>

namespace weightcast {

template <AnyTransferEngine E>
class weight_worker;

/// An open update of one worker. Moves, does not copy; its worker must outlive it, and stay where it is.
/// Leaving the scope without `finish` rolls back, as the target's commit policy promises.
template <AnyTransferEngine E>
class [[nodiscard]] weight_update {
  public:
    /// Moved from: finished.
    weight_update(weight_update&& other) noexcept
        : worker_{std::exchange(other.worker_, nullptr)},
          target_{std::move(other.target_)},
          broken_{other.broken_},
          received_{other.received_},
          seconds_{other.seconds_} {}
    weight_update(weight_update const&) = delete;
    weight_update& operator=(weight_update const&) = delete;
    ~weight_update() { close(); }

    /// Takes one update's payload.
    /// @throws lifecycle_error  after finish, or after a receive that failed: only rollback is left; the
    ///                          engine's own, e.g. for a second announcement, changes nothing
    /// @throws whatever the engine's receive throws: this update can only be rolled back
    template <class U>
        requires has_receive<E, U>
    void receive(U const& update) & {
        require_usable("receive");
        auto const before = std::exchange(received_, true);
        broken_ = true;
        phase_timer const timer{seconds_, phase::payload};
        try {
            worker_->engine_.receive(update);
        } catch (lifecycle_error const&) {  // out of turn: nothing was done
            received_ = before;
            broken_ = false;
            throw;
        }
        broken_ = false;
    }
    template <class U>
        requires(!has_receive<E, U>)
    void receive(U const&) & {
        static_assert(
            !std::same_as<U, U>,
            "receive: the engine does not take this type of update; it takes E::update_type");
    }
    template <class U>
    void receive(U const&) && {
        static_assert(
            !std::same_as<U, U>,
            "receive on a temporary update, which would be rolled back at once: name the update first");
    }

    template <class Never = void>
    void finish() & {
        static_assert(!std::same_as<Never, Never>,
                      "finish() consumes the update: write std::move(update).finish()");
    }
    /// Asks all ranks and publishes: every rank holds the new version, or this one has rolled back. An update
    /// that received nothing asks nobody, publishes nothing and reports `nothing_updated`.
    /// @throws lifecycle_error  when it is finished already, or a receive failed (it can still be rolled back)
    /// @throws refused_update, timeout, peer_error  it is rolled back and closed; nothing was published here
    /// @throws hook_failure  the version is published, but the engine could not do what goes with it: its caches
    ///                       are stale, and its target gives no snapshots until a later update
    update_report finish() && {
        require_usable("finish");
        try {
            return received_ ? publish() : close_unused();
        } catch (...) {
            close();
            throw;
        }
    }
    /// Rolls back now; nothing is left to finish.
    void roll_back() noexcept { close(); }
    /// Neither finished nor rolled back nor moved from.
    bool open() const noexcept { return worker_ != nullptr; }

  private:
    friend class weight_worker<E>;
    weight_update(weight_worker<E>& worker, typename E::target_type target) noexcept
        : worker_{&worker}, target_{std::move(target)} {}

    void require_usable(char const* request) const {
        if (worker_ == nullptr) {
            throw lifecycle_error{std::string{request} +
                                  ": this update is finished or rolled back already"};
        }
        if (broken_) {
            throw lifecycle_error{std::string{request} +
                                  ": an earlier receive failed; only rollback is left"};
        }
    }
    // All that may throw comes before or in the vote: after it, every rank publishes.
    update_report publish() {
        auto report = described();
        {
            phase_timer const timer{seconds_, phase::vote};
            worker_->engine_.prepare();
        }
        auto& worker = *worker_;
        worker.engine_.commit();
        release();
        if constexpr (has_commit_failure<E>) {
            if (auto const failure = worker.engine_.commit_failure())
                throw hook_failure{"finish: version " + to_string(report.version) +
                                   " is published, but " + *failure};
        }
        report.seconds = seconds_;
        return report;
    }
    update_report close_unused() {
        auto report = described();
        close();
        report.status = update_status::nothing_updated;
        return report;
    }
    update_report described() const {
        update_report report;
        if constexpr (std::convertible_to<typename E::target_type, target_id>)
            report.target = target_;
        if constexpr (has_report<E, update_report>) {
            std::as_const(worker_->engine_).describe(report);
        } else {
            report.status = update_status::updated;
        }
        return report;
    }
    void close() noexcept {
        if (worker_ == nullptr) return;
        worker_->engine_.rollback();
        release();
    }
    void release() noexcept {
        worker_->open_ = false;
        worker_ = nullptr;
    }
    weight_worker<E>* worker_;
    typename E::target_type target_;
    bool broken_ = false;
    bool received_ = false;
    phase_seconds seconds_{};
};

/// Owns an engine and opens its updates, one at a time. Knows no weight format. Immovable: updates refer to it.
/// Of one thread; rpc_worker is the face for many.
template <AnyTransferEngine E>
class weight_worker {
  public:
    using engine_type = E;
    using init_type = typename E::init_type;
    using target_type = typename E::target_type;

    explicit weight_worker(E engine) : engine_{std::move(engine)} {}
    weight_worker(E engine, init_type const& init) : engine_{std::move(engine)} {
        engine_.init(init);
    }
    weight_worker(weight_worker const&) = delete;
    weight_worker& operator=(weight_worker const&) = delete;
    /// Leaves the group: the engine's shutdown; what that throws is logged.
    ~weight_worker() {
        try {
            engine_.shutdown();
        } catch (std::exception const& e) {
            log_line(std::string{"a worker's engine failed to shut down: "} + e.what());
        } catch (...) {
            log_line("a worker's engine failed to shut down");
        }
    }

    /// Joins a group. @throws lifecycle_error  while an update is open; else what the engine throws
    void init(init_type const& init) {
        require_closed("init");
        engine_.init(init);
    }

    /// Opens an update of that target.
    /// @throws lifecycle_error  while another is open; that one stays as it is
    /// @throws what the engine's start throws: nothing is open
    weight_update<E> start(target_type const& target = {}) & {
        require_closed("start");
        target_type kept = target;  // whatever may throw comes before the engine has started
        engine_.start(kept);
        open_ = true;
        return weight_update<E>{*this, std::move(kept)};
    }
    template <class Never = void>
    weight_update<E> start(target_type const& = {}) && {
        static_assert(
            !std::same_as<Never, Never>,
            "start() on a temporary worker, which its update would outlive: name the worker first");
    }
    template <std::same_as<bool> Flag>
    weight_update<E> start(Flag) & {
        static_assert(
            !std::same_as<Flag, Flag>,
            "start takes a target, not a format flag: engines own their lifecycle and their format");
    }
    template <class U>
    void receive(U const&) {
        static_assert(!std::same_as<U, U>,
                      "receive belongs to an open update: auto update = worker.start(target)");
    }

    /// Waits for what the trainers announce next. @throws what the engine's next throws
    auto next()
        requires has_announcements<E>
    {
        return engine_.next();
    }
    /// Waits for the next announced update, receives and finishes it. What cannot be started is refused, where
    /// the engine can, so that no peer waits for this rank.
    /// @throws lifecycle_error  while an update is open; nothing was taken from the trainers
    /// @throws what next, start, receive and finish throw: nothing was published, and no update is open
    update_report serve_one()
        requires has_announcements<E>
    {
        require_closed("serve_one");
        auto announced = engine_.next();
        auto update = start_or_refuse(announced);
        update.receive(announced);
        return std::move(update).finish();
    }

    bool open() const noexcept { return open_; }
    E& engine() noexcept { return engine_; }
    E const& engine() const noexcept { return engine_; }

  private:
    friend class weight_update<E>;
    void require_closed(char const* request) const {
        if (!open_) return;
        throw lifecycle_error{std::string{request} +
                              ": an update is already open; finish it or roll it back first"};
    }
    template <class U>
    weight_update<E> start_or_refuse(U const& announced) {
        try {
            return start(announced.target());
        } catch (std::exception const& e) {
            if constexpr (has_refusal<E>) engine_.refuse(announced, e.what());
            throw;
        }
    }
    E engine_;
    bool open_ = false;
};

}  // namespace weightcast
