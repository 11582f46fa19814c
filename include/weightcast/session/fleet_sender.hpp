// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/session is host-only: include it from a .cpp file"
#endif
// A trainer of a fleet: who is in the group changes from update to update, and an update may go on without a receiver.

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <weightcast/base/deadline.hpp>
#include <weightcast/base/error.hpp>
#include <weightcast/engine/concepts.hpp>
#include <weightcast/engine/engine_group.hpp>
#include <weightcast/model/update_coverage.hpp>
#include <weightcast/session/detail/fleet_desk.hpp>
#include <weightcast/session/detail/fleet_outcome.hpp>
#include <weightcast/session/fleet.hpp>
#include <weightcast/session/update_result.hpp>
#include <weightcast/session/weight_sender.hpp>

namespace weightcast {

/// A trainer engine that joins groups by `group_init` and tells how each fared.
template <class E>
concept FleetTrainer = has_init<E, std::vector<group_init>> && has_groups<E> && has_shutdown<E>;

/// Owns a trainer engine and sends to the current generation of a fleet: a group of this trainer (rank 0) and the
/// receivers that registered, named "<fleet>.<generation>". A generation is kept from update to update until a member
/// is lost, leaves or comes in. Of one thread. Receivers register at the rendezvous server, which is somebody's own
/// object: it stands at the trainer, or elsewhere.
/// Cost beyond the engine's: a few small requests to the server an update and member.
template <FleetTrainer E>
class fleet_sender {
  public:
    using engine_type = E;
    using init_type = typename E::init_type;

    /// Nothing is contacted. @throws bad_argument  for a place or limits that cannot be
    fleet_sender(E engine, fleet_place place, fleet_settings settings = {})
        : sender_{std::move(engine)},
          place_{std::move(place)},
          settings_{settings},
          desk_{place_, settings.limits} {
        if (settings.limits.attempts < 1)
            throw bad_argument{"fleet_limits: attempts is " +
                               std::to_string(settings.limits.attempts) + "; expected at least 1"};
    }

    /// Sends the source's tensors to every member. A full update (`parameters`, `everything`) brings in those that have
    /// registered; in a partial one they stay pending, unless they hold the version that the fleet holds.
    /// Under `continue_without` a member that is lost is dropped, and the rest get the same version again. What failed
    /// is told in the result. Takes `settings.limits.update` at most, and what the communicator takes to notice.
    /// @throws what the source throws, and bad_argument for a coverage that the engine cannot promise: nobody has
    ///         published; the next update forms the fleet anew
    /// @throws timeout, peer_error  when the rendezvous is gone: connect failed, or its server ended
    template <class Source>
        requires TrainerEngine<E, init_type, Source>
    fleet_result update(Source& source, update_options const& options = {}) {
        desk_.hear();
        detail::fleet_round round;
        round.seats = desk_.roster().participants(is_full(options), version_, desk_.token());
        auto numbered = options;
        if (!numbered.number) numbered.number = next_version_;
        next_version_ = std::max(next_version_, *numbered.number + 1);
        return send(source, numbered, std::move(round), false);
    }
    template <class Source>
        requires TrainerEngine<E, init_type, Source>
    fleet_result update(Source const&& source, update_options const& options = {}) = delete;

    /// Brings those receivers, and nobody else, to `version()`: `source` holds the weights of that version. They form a
    /// group with the trainer; the others keep their weights and go on serving. Members and pending ones alike; who
    /// was dropped must have registered again. The result lists those ids only.
    /// @throws bad_argument     for an id that is not here, none, or a partial update
    /// @throws lifecycle_error  when no version was published yet
    /// @throws what update throws
    template <class Source>
        requires TrainerEngine<E, init_type, Source>
    fleet_result repair(Source& source, std::vector<std::string> const& ids,
                        update_options const& options = {}) {
        if (!version_.is_set())
            throw lifecycle_error{
                "repair: this trainer's fleet holds no version yet; send an update"};
        if (!is_full(options))
            throw bad_argument{"repair: expected a full update, got coverage '" +
                               std::string{to_string(*options.coverage)} + "'"};
        desk_.hear();
        auto numbered = options;
        numbered.number = version_.number;
        numbered.label = version_.label;
        detail::fleet_round round;
        round.seats = seats_of(ids);
        auto result = send(source, numbered, std::move(round), true);
        dissolve();
        return result;
    }
    template <class Source>
        requires TrainerEngine<E, init_type, Source>
    fleet_result repair(Source const&&, std::vector<std::string> const&,
                        update_options const& = {}) = delete;

    /// Waits until so many receivers are registered. @throws timeout  naming how many are
    void wait_for(std::size_t receivers, deadline until) {
        auto const here = [&] { return desk_.roster().entries().size(); };
        if (desk_.hear_until([&] { return here() >= receivers; }, until)) return;
        throw timeout{"fleet '" + place_.name + "': " + std::to_string(here()) + " of " +
                      std::to_string(receivers) + " receivers have registered in time"};
    }
    /// Takes a receiver off the list, as if it had left: under `stop`, what a member that will not come back needs.
    /// False: it is not here.
    bool forget(std::string const& id) {
        desk_.hear();
        auto const* known = desk_.roster().find(id);
        if (known == nullptr) return false;
        desk_.drop({known->token, known->id});
        return true;
    }
    /// Ids of members and of those that wait, as they are known now.
    std::vector<std::string> ids() {
        desk_.hear();
        std::vector<std::string> all;
        for (auto const& e : desk_.roster().entries()) all.push_back(e.id);
        return all;
    }
    /// Ends the current generation: members wait for the next one.
    void dissolve() {
        sender_.engine().shutdown();
        desk_.close();
    }

    /// The last version that an update has published on some member.
    weight_version const& version() const noexcept { return version_; }
    /// The number of the current or last generation; 0: none was formed.
    std::uint64_t generation() const noexcept { return desk_.generation(); }
    fleet_settings const& settings() const noexcept { return settings_; }
    E& engine() noexcept { return sender_.engine(); }

  private:
    using round_type = detail::fleet_round;

    bool is_full(update_options const& options) {
        auto coverage = options.coverage.value_or(update_coverage::parameters);
        if constexpr (requires(E& e) {
                          { e.settings().coverage } -> std::convertible_to<update_coverage>;
                      })
            coverage = options.coverage.value_or(sender_.engine().settings().coverage);
        return coverage == update_coverage::parameters || coverage == update_coverage::everything;
    }
    std::vector<detail::fleet_seat> seats_of(std::vector<std::string> const& ids) const {
        if (ids.empty()) throw bad_argument{"repair: no id is given"};
        std::vector<detail::fleet_seat> seats;
        for (auto const& id : ids) {
            auto const* known = desk_.roster().find(id);
            if (known == nullptr)
                throw bad_argument{"repair: '" + id + "' is not in fleet '" + place_.name + "'"};
            detail::fleet_seat const seat{known->token, known->id};
            if (std::ranges::find(seats, seat) == seats.end()) seats.push_back(seat);
        }
        return seats;
    }

    template <class Source>
    fleet_result send(Source& source, update_options const& options, round_type round,
                      bool repairs) {
        round.until = deadline::after(settings_.limits.update);
        round.version = {*options.number, options.label};
        try {
            while (!round.over && round.attempts < settings_.limits.attempts &&
                   !round.until.expired()) {
                ++round.attempts;
                attempt(source, options, round);
            }
        } catch (...) {
            dissolve();
            throw;
        }
        if (!round.failure && !round.last) late(round);
        desk_.hear();  // who came meanwhile is pending
        auto result = detail::outcome_of(round, desk_, options.target, !repairs);
        bool const published = result.count(member_status::updated) != 0 ||
                               result.count(member_status::not_serving) != 0;
        if (published) version_ = round.version;
        return result;
    }
    template <class Source>
    void attempt(Source& source, update_options const& options, round_type& round) {
        round.last.reset();
        if (!is_formed(round) && !form(round)) return;
        bound_update(round.until);
        round.fail(nullptr);
        round.sent = true;
        round.last = sender_.update(source, options);
        auto const& group = round.last->groups.at(0);
        bool const usable = group.ok() || is_refusal(group.failure);
        bool const again = !usable && settings_.policy == failure_policy::continue_without;
        round.fail(group.failure);
        if (!again) {
            round.reports = desk_.collect(usable ? 0 : round.suspect);  // who refuses is here
            round.over = true;
        }
        desk_.count_update();
        if (!usable) dissolve();
    }

    // --- a generation ---
    bool is_formed(round_type const& round) const {
        return !round.seats.empty() && desk_.seats() == round.seats;
    }
    bool form(round_type& round) {
        dissolve();
        if (!gather(round)) return false;
        auto const called = round.seats;
        round.seats = desk_.call(called);
        for (auto const& seat : called) {
            if (std::ranges::find(round.seats, seat) == round.seats.end())
                lose(round, seat, "it registered, but did not answer when it was called");
        }
        if (!round.over && round.seats.empty()) nobody(round);
        if (!round.over && join(round)) return true;
        dissolve();
        return false;
    }
    bool join(round_type& round) {
        try {
            sender_.init({{.name = place_.name + "." + std::to_string(desk_.generation()),
                           .at = to_string(place_.at),
                           .rank = 0,
                           .size = static_cast<int>(round.seats.size()) + 1}});
            return true;
        } catch (bad_argument const&) {
            throw;
        } catch (error const&) {
            round.fail(std::current_exception());
            round.over = settings_.policy == failure_policy::stop;
            return false;
        }
    }
    /// Waits for those that take part; who does not come is lost.
    bool gather(round_type& round) {
        auto& roster = desk_.roster();
        auto const until = earlier(round.until, deadline::after(settings_.limits.regroup));
        auto const suspect = round.suspected();
        auto const here = [&] {
            auto const absent = roster.waiting(roster.known(round.seats), false);
            return std::ranges::all_of(absent, [&](auto const& s) { return s.first == suspect; });
        };
        static_cast<void>(desk_.hear_until(here, until));
        auto const before = round.seats;
        round.seats = roster.waiting(before);
        for (auto const& seat : roster.waiting(roster.known(before), false))
            lose(round, seat, seat.first == suspect ? round.message : absence(round));
        if (!round.over && round.seats.empty()) nobody(round);
        return !round.over;
    }
    std::string absence(round_type const& round) const {
        auto const text = "it did not register again within " +
                          std::to_string(settings_.limits.regroup.count()) + " ms";
        return round.message.empty() ? text : text + ", after: " + round.message;
    }
    /// Under `stop` the update is over, and the receiver stays on the list: it may come back.
    void lose(round_type& round, detail::fleet_seat const& seat, std::string const& why) {
        auto const* known = desk_.roster().find(seat.first);
        auto const held = known == nullptr ? weight_version{} : known->held;
        bool const stop = settings_.policy == failure_policy::stop;
        round.lost.emplace_back(seat.first, member_result{.id = seat.second,
                                                          .status = stop ? member_status::unknown
                                                                         : member_status::dropped,
                                                          .version = held,
                                                          .message = why});
        if (!stop) return desk_.drop(seat);
        round.over = true;
        round.fail(std::make_exception_ptr(
            timeout{"fleet '" + place_.name + "': member '" + seat.second + "': " + why}));
    }
    void nobody(round_type& round) {
        round.over = true;
        if (round.failure) return;  // which says more
        round.fail(std::make_exception_ptr(
            peer_error{"fleet '" + place_.name + "': no receiver is left to send to"}));
    }
    void late(round_type& round) const {
        round.fail(std::make_exception_ptr(
            timeout{"fleet '" + place_.name + "': the update was not begun within " +
                    std::to_string(settings_.limits.update.count()) + " ms"}));
    }
    static bool is_refusal(std::exception_ptr const& failure) {
        try {
            if (failure) std::rethrow_exception(failure);
        } catch (refused_update const&) {
            return true;
        } catch (...) {
            return false;
        }
        return false;
    }
    // One attempt takes no longer than the whole may, where the engine has a limit.
    void bound_update(deadline until) {
        if constexpr (requires(E& e) {
                          { e.limits().update } -> std::convertible_to<std::chrono::milliseconds>;
                      }) {
            auto& limit = sender_.engine().limits().update;
            if (!own_limit_) own_limit_ = limit;
            auto const left = std::chrono::ceil<std::chrono::milliseconds>(until.remaining());
            limit = std::min(*own_limit_, left);
        }
    }

    weight_sender<E> sender_;
    fleet_place place_;
    fleet_settings settings_;
    detail::fleet_desk desk_;
    weight_version version_{};
    std::uint64_t next_version_ = 1;
    std::optional<std::chrono::milliseconds> own_limit_{};
};

}  // namespace weightcast
