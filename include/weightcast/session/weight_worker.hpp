// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/session is host-only: include it from a .cpp file"
#endif
// The lifecycle as a type: start, receive..., finish; what is not finished is rolled back.

#include <concepts>
#include <cstdint>
#include <utility>
#include <vector>

#include <weightcast/base/error.hpp>
#include <weightcast/engine/concepts.hpp>
#include <weightcast/session/update_result.hpp>

namespace weightcast {

template <AnyTransferEngine E>
class weight_worker;

/// An engine that can wait for what its trainers announce.
template <class E>
concept has_announcements = requires(E& e) {
    { e.next() } -> std::same_as<typename E::update_type>;
};
/// An engine that describes what its open update brought.
template <class E>
concept has_report = requires(E const& e, update_report& report) { e.describe(report); };

/// An open update of one worker. Moves, does not copy; its worker must outlive it, and stay where it is.
/// Leaving the scope without `finish` rolls back, as the target's commit policy promises.
template <AnyTransferEngine E>
class [[nodiscard]] weight_update {
  public:
    /// Moved from: finished.
    weight_update(weight_update&& other) noexcept
        : worker_{std::exchange(other.worker_, nullptr)}, broken_{other.broken_}, seconds_{other.seconds_} {}
    weight_update& operator=(weight_update&&) = delete;
    ~weight_update() { close(); }

    /// Takes one update's payload.
    /// @throws lifecycle_error  after finish, or after a receive that failed: only rollback is left
    /// @throws whatever the engine's receive throws: this update can only be rolled back
    template <class U>
        requires has_receive<E, U>
    void receive(U const& update) & {
        if (worker_ == nullptr) throw lifecycle_error{"receive: this update is finished"};
        if (broken_) throw lifecycle_error{"receive: an earlier receive failed; only rollback is left"};
        broken_ = true;
        phase_timer const timer{seconds_, phase::payload};
        worker_->engine_.receive(update);
        broken_ = false;
    }

    template <class Never = void>
    void finish() & {
        static_assert(!std::same_as<Never, Never>, "finish() consumes the update: write std::move(update).finish()");
    }
    /// Asks all ranks and publishes: every rank holds the new version, or this one rolls back.
    /// @throws lifecycle_error  when it is finished already, or a receive failed
    /// @throws refused_update, timeout, peer_error  rolled back; nothing was published
    update_report finish() && {
        if (worker_ == nullptr) throw lifecycle_error{"finish: this update is finished already"};
        if (broken_) throw lifecycle_error{"finish: a receive failed; only rollback is left"};
        broken_ = true;
        update_report report;
        {
            phase_timer const timer{seconds_, phase::vote};
            worker_->engine_.prepare();
        }
        if constexpr (has_report<E>) worker_->engine_.describe(report);
        worker_->engine_.commit();
        worker_->open_ = false;
        worker_ = nullptr;
        report.seconds = seconds_;
        return report;
    }
    /// Rolls back now; nothing is left to finish.
    void roll_back() noexcept { close(); }

  private:
    friend class weight_worker<E>;
    explicit weight_update(weight_worker<E>& worker) noexcept : worker_{&worker} {}
    void close() noexcept {
        if (worker_ == nullptr) return;
        worker_->engine_.rollback();
        worker_->open_ = false;
        worker_ = nullptr;
    }
    weight_worker<E>* worker_;
    bool broken_ = false;
    phase_seconds seconds_{};
};

/// Owns an engine and opens its updates, one at a time. Knows no weight format. Immovable: updates refer to it.
template <AnyTransferEngine E>
class weight_worker {
  public:
    using engine_type = E;
    using init_type = typename E::init_type;
    using target_type = typename E::target_type;

    explicit weight_worker(E engine) : engine_{std::move(engine)} {}
    weight_worker(E engine, init_type const& init) : engine_{std::move(engine)} { engine_.init(init); }
    weight_worker(weight_worker const&) = delete;
    weight_worker& operator=(weight_worker const&) = delete;

    /// Joins a group. @throws lifecycle_error  while an update is open; else what the engine throws
    void init(init_type const& init) {
        if (open_) throw lifecycle_error{"init: an update is open; finish it or roll it back first"};
        engine_.init(init);
    }

    /// Opens an update of that target.
    /// @throws lifecycle_error  while another is open; that one stays as it is
    weight_update<E> start(target_type const& target = {}) & {
        if (open_) throw lifecycle_error{"start: an update is already open"};
        engine_.start(target);
        open_ = true;
        return weight_update<E>{*this};
    }
    template <class Never = void>
    weight_update<E> start(target_type const& = {}) && {
        static_assert(!std::same_as<Never, Never>,
                      "start() on a temporary: the update would outlive its worker; name the worker first");
    }
    template <std::same_as<bool> Flag>
    weight_update<E> start(Flag) & {
        static_assert(!std::same_as<Flag, bool>,
                      "start takes a target, not a format flag: engines own their lifecycle and their format");
    }
    template <class U>
    void receive(U const&) {
        static_assert(!std::same_as<U, U>, "receive belongs to an open update: auto update = worker.start(target)");
    }

    /// Waits for what the trainers announce next. @throws what the engine's next throws
    auto next()
        requires has_announcements<E>
    {
        return engine_.next();
    }
    /// Waits for the next announced update, receives and finishes it.
    /// @throws what next, start, receive and finish throw: nothing was published
    update_report serve_one()
        requires has_announcements<E>
    {
        auto announced = engine_.next();
        auto update = start(announced.target());
        update.receive(announced);
        return std::move(update).finish();
    }

    bool open() const noexcept { return open_; }
    E& engine() noexcept { return engine_; }
    E const& engine() const noexcept { return engine_; }

  private:
    friend class weight_update<E>;
    E engine_;
    bool open_ = false;
};

}  // namespace weightcast
