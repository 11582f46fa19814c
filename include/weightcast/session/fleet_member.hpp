// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/session is host-only: include it from a .cpp file"
#endif
// A receiver of a fleet: registers, joins the generations it is called to, and serves their updates.

#include <atomic>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <utility>

#include <weightcast/base/deadline.hpp>
#include <weightcast/base/error.hpp>
#include <weightcast/base/log.hpp>
#include <weightcast/engine/concepts.hpp>
#include <weightcast/engine/engine_group.hpp>
#include <weightcast/session/detail/fleet_board.hpp>
#include <weightcast/session/fleet.hpp>
#include <weightcast/session/update_result.hpp>
#include <weightcast/session/weight_worker.hpp>

namespace weightcast {

/// An engine that serves announced updates of a group.
template <class E>
concept FleetEngine = AnyTransferEngine<E> && has_announcements<E> && has_init<E, group_init>;

/// Owns an engine and keeps it in a fleet. Of one thread, but for `interrupt`. Its destructor leaves the group, not
/// the fleet: the trainer learns of it when it forms the next generation. Immovable.
template <FleetEngine E>
class fleet_member {
  public:
    using engine_type = E;

    /// Nothing is contacted before `serve_one`. `id` is stable: a restarted process has the same.
    /// @throws bad_argument  for an id or a place that cannot be
    fleet_member(E engine, fleet_place place, std::string id, fleet_member_limits limits = {})
        : worker_{std::move(engine)},
          place_{std::move(place)},
          id_{std::move(id)},
          limits_{limits},
          board_{place_, limits.answer} {
        detail::check_member_id(id_);
    }
    fleet_member(fleet_member const&) = delete;
    fleet_member& operator=(fleet_member const&) = delete;

    /// Waits for the next update of whatever generation this member is in, and finishes it. When the group fails, or
    /// the trainer forms a new one, the member registers again and waits on: an update that failed comes again.
    /// @throws refused_update  some rank objected: nothing was published; go on with the next
    /// @throws hook_failure    the version is published, but what goes with it failed; go on with the next
    /// @throws timeout         no update was finished by then; the message says what went wrong last
    /// @throws group_aborted   after `interrupt`
    /// @throws what the engine throws else: this member has left its generation
    update_report serve_one() { return serve_one(deadline::after(limits_.update)); }
    update_report serve_one(deadline until) {
        for (;;) {
            require_time(until);
            if (!joined_ && !join_next(until)) continue;
            bound_announcement(until);
            if (auto report = try_update()) return std::move(*report);
        }
    }

    /// Leaves the fleet: the next generation is formed without it at once. `serve_one` comes back.
    void leave() {
        auto const until = deadline::after(limits_.answer);
        stopped_.store(false, std::memory_order_relaxed);
        try {
            board_.post(message(true),
                        until);     // the trainer erases what lies there, once it has read it
        } catch (error const& e) {  // no trainer to tell
            log_line("fleet member '" + id_ + "' could not say that it leaves: " + e.what());
        }
        leave_generation();
    }
    /// Ends the running `serve_one`, or the next, from any thread; it throws group_aborted. `leave` takes it back.
    void interrupt() noexcept
        requires has_interrupt<E>
    {
        stopped_.store(true, std::memory_order_release);
        worker_.engine().interrupt();
    }

    std::string const& id() const noexcept { return id_; }
    /// The last generation that it joined; 0: none yet.
    std::uint64_t generation() const noexcept { return generation_; }
    E& engine() noexcept { return worker_.engine(); }
    E const& engine() const noexcept { return worker_.engine(); }

  private:
    static constexpr std::chrono::milliseconds longest_slice{500};

    void require_time(deadline until) const {
        if (stopped_.load(std::memory_order_acquire))
            throw group_aborted{"fleet member '" + id_ + "' was interrupted"};
        if (!until.expired()) return;
        throw timeout{"fleet member '" + id_ + "': no update of fleet '" + place_.name + "' at " +
                      to_string(place_.at) + " was finished in time" +
                      (last_failure_.empty() ? "" : "; last: " + last_failure_)};
    }

    // --- becoming a rank ---
    /// False: nothing came of it; try again.
    bool join_next(deadline until) {
        try {
            auto const trainer = board_.find(board_.trainer_key(), until);
            board_.post(message(false), until);
            auto const called = await_call(trainer, until);
            return called && enter(*called, until);
        } catch (bad_argument const&) {
            throw;
        } catch (error const& e) {
            last_failure_ = e.what();
            leave_generation();
            return false;
        }
    }
    /// The generation; nothing: register again, as another trainer is there, or none has called for long.
    std::optional<std::uint64_t> await_call(std::optional<std::string> const& trainer,
                                            deadline until) {
        auto const key = board_.call_key(token_);
        auto const again = deadline::after(6 * limits_.answer);  // a trainer may have forgotten us
        while (!again.expired()) {
            require_time(until);
            auto const slice = earlier(until, deadline::after(longest_slice));
            if (auto const called = board_.await(key, slice)) {
                board_.erase(key, until);
                board_.set(board_.here_key(token_), *called, until);
                return std::stoull(*called);
            }
            if (board_.find(board_.trainer_key(), until) != trainer) break;
        }
        return std::nullopt;
    }
    bool enter(std::uint64_t generation, deadline until) {
        // the trainer waits for all that it called, for its answer limit: which may be longer than ours
        auto const limit = earlier(until, deadline::after(4 * limits_.answer));
        auto const list = await_generation(generation, limit);
        if (!list) return false;
        auto const made = detail::fleet_generation::read(*list);
        int const rank = made.rank_of(token_);
        if (rank == 0) return false;
        worker_.init({.name = place_.name + "." + std::to_string(generation),
                      .at = to_string(place_.at),
                      .rank = rank,
                      .size = static_cast<int>(made.members.size()) + 1});
        joined_ = true;
        generation_ = generation;
        trainer_ = made.trainer;
        updates_ = 0;
        return true;
    }
    /// Nothing: none came, or a later call did.
    std::optional<std::string> await_generation(std::uint64_t generation, deadline until) {
        for (;;) {
            auto const slice = earlier(until, deadline::after(longest_slice));
            auto list = board_.await(board_.generation_key(generation), slice);
            if (list || until.expired()) return list;
            if (board_.find(board_.call_key(token_), until)) return std::nullopt;
        }
    }
    void leave_generation() noexcept {
        joined_ = false;
        try {
            worker_.engine().shutdown();
        } catch (std::exception const& e) {
            log_line("fleet member '" + id_ + "': its engine failed to shut down: " + e.what());
        }
    }

    // --- an update ---
    /// Nothing: the group is over, and this member out of it.
    std::optional<update_report> try_update() {
        require_not_stopped_after_join();
        try {
            auto report = worker_.serve_one();
            conclude(report);
            return report;
        } catch (hook_failure const& e) {
            tell(member_status::not_serving, e.what());
            throw;
        } catch (refused_update const& e) {
            tell(status_of(e), e.what());
            throw;
        } catch (lifecycle_error const&) {
            throw;
        } catch (error const& e) {
            last_failure_ = e.what();
            if (!is_unread()) tell(status_of(e), e.what());
            leave_generation();
            return std::nullopt;
        } catch (...) {
            leave_generation();
            throw;
        }
    }
    void require_not_stopped_after_join() {
        if (stopped_.load(std::memory_order_acquire)) leave_generation();
        require_time(deadline::at(deadline::clock::time_point::max()));
    }
    // What was finished and is not held was left behind by the target.
    void conclude(update_report const& report) {
        last_failure_.clear();
        if (report.status != update_status::updated)
            return tell(member_status::unchanged, "the update brought nothing");
        if constexpr (!has_report<E, update_report>) held_ = report.version;
        auto const held = held_version();
        if (held == report.version) return tell(member_status::updated, "");
        tell(member_status::rolled_back, "finished version " + to_string(report.version) +
                                             ", but the target holds " + to_string(held));
    }
    // The report of an update that was finished here says more than the end of its group after it.
    bool is_unread() noexcept {
        try {
            auto const soon = deadline::after(limits_.answer);
            return board_.find(board_.report_key(token_), soon).has_value();
        } catch (std::exception const&) {  // nobody to report to
            return true;
        }
    }
    static member_status status_of(error const& e) {
        auto const& f = e.facts();
        bool const own = f.suspect >= 0 && f.suspect == f.rank;
        if (own && dynamic_cast<refused_update const*>(&e) != nullptr)
            return member_status::refused;
        bool const wrote = f.where == phase::payload || f.where == phase::vote;
        return wrote ? member_status::rolled_back : member_status::unchanged;
    }
    /// The trainer waits for this. That it does not hear it is no failure of the update.
    void tell(member_status status, std::string const& message) noexcept {
        try {
            if (status == member_status::updated || status == member_status::not_serving)
                held_from_ = trainer_;
            detail::fleet_report const report{.generation = generation_,
                                              .update = updates_++,
                                              .status = status,
                                              .held = held_version(),
                                              .message = message};
            board_.set(board_.report_key(token_), report.bytes(), deadline::after(limits_.answer));
        } catch (std::exception const& e) {
            log_line("fleet member '" + id_ + "' could not report: " + e.what());
        }
    }
    detail::fleet_message message(bool leaves) {
        return {.leaves = leaves,
                .token = token_,
                .id = id_,
                .held = held_version(),
                .held_from = held_from_};
    }
    weight_version held_version() {
        if constexpr (has_report<E, update_report>) {
            try {
                update_report report;
                worker_.engine().describe(report);
                return report.version;
            } catch (error const&) {  // no such target yet
                return {};
            }
        } else {
            return held_;
        }
    }
    // The engine's own limit, where it has one, is no longer than the caller's.
    void bound_announcement(deadline until) {
        if constexpr (requires(E& e) {
                          {
                              e.limits().announcement
                          } -> std::convertible_to<std::chrono::milliseconds>;
                      }) {
            auto& limit = worker_.engine().limits().announcement;
            if (!own_limit_) own_limit_ = limit;
            auto const left = std::chrono::ceil<std::chrono::milliseconds>(until.remaining());
            limit = std::min(*own_limit_, left);
        }
    }

    weight_worker<E> worker_;
    fleet_place place_;
    std::string id_;
    fleet_member_limits limits_;
    detail::fleet_board board_;
    detail::fleet_token token_ = detail::new_fleet_token();
    detail::fleet_token trainer_ = 0;    // of the generation
    detail::fleet_token held_from_ = 0;  // the trainer whose version is held
    weight_version held_{};              // where the engine cannot say
    std::optional<std::chrono::milliseconds> own_limit_{};
    bool joined_ = false;
    std::uint64_t generation_ = 0;
    std::uint64_t updates_ = 0;  // of the generation
    std::string last_failure_{};
    std::atomic<bool> stopped_{false};
};

}  // namespace weightcast
