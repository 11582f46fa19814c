// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/session is host-only: include it from a .cpp file"
#endif
// The trainer's side of the rendezvous: hears who comes and goes, calls a generation together, collects reports.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <weightcast/base/deadline.hpp>
#include <weightcast/base/error.hpp>
#include <weightcast/base/log.hpp>
#include <weightcast/session/detail/fleet_board.hpp>
#include <weightcast/session/detail/fleet_roster.hpp>
#include <weightcast/session/fleet.hpp>

namespace weightcast::detail {

/// Of one thread. Requests wait for `limits.answer` at most. @throws timeout, peer_error  without a rendezvous
class fleet_desk {
  public:
    fleet_desk(fleet_place const& place, fleet_limits const& limits)
        : board_{place, limits.answer}, limits_{limits} {}

    fleet_roster& roster() noexcept { return roster_; }
    fleet_roster const& roster() const noexcept { return roster_; }
    fleet_token token() const noexcept { return token_; }
    std::uint64_t generation() const noexcept { return generation_; }
    /// Who is in the current generation, from rank 1; empty: there is none.
    std::vector<fleet_seat> const& seats() const noexcept { return seats_; }
    endpoint const& at() const noexcept { return board_.at(); }

    /// Takes what has been said so far.
    void hear() {
        open();
        auto const last = board_.number(board_.queue_key(), soon());
        auto const first = taken_ + 1;
        for (auto n = first; n <= last; ++n) missing_.emplace(n, deadline::after(limits_.answer));
        taken_ = std::max(taken_, last);
        for (auto one = missing_.begin(); one != missing_.end();) {
            bool const done = take(one->first) || one->second.expired();
            one = done ? missing_.erase(one) : std::next(one);
        }
        if (first <= last) board_.set(board_.taken_key(), std::to_string(last), soon());
    }
    /// Hears until that holds. False: it does not by then.
    template <class Holds>
    bool hear_until(Holds const& holds, deadline until) {
        for (;;) {
            hear();
            if (holds()) return true;
            if (until.expired()) return false;
            auto const slice = earlier(until, deadline::after(longest_slice));
            static_cast<void>(board_.await(board_.message_key(taken_ + 1), slice));
        }
    }

    /// Calls those seats, and makes a generation of those that answer.
    /// @return who answered; nobody: there is no generation
    std::vector<fleet_seat> call(std::vector<fleet_seat> const& seats) {
        close();
        auto const number = board_.add(board_.counter_key(), 1, soon());
        generation_ = static_cast<std::uint64_t>(number);
        auto const text = std::to_string(generation_);
        for (auto const& [token, _] : seats) {
            board_.forget(token, soon());
            board_.set(board_.call_key(token), text, soon());
        }
        auto const until = deadline::after(limits_.answer);
        fleet_generation made{.trainer = token_};
        for (auto const& seat : seats) {
            if (answers(seat.first, text, until)) made.members.push_back(seat);
            board_.erase(board_.call_key(seat.first), soon());
        }
        if (made.members.empty()) return {};
        board_.set(board_.generation_key(generation_), made.bytes(), soon());
        seats_ = made.members;
        updates_ = 0;
        roster_.seat(seats_);
        return seats_;
    }
    /// The current generation is over.
    void close() {
        if (seats_.empty()) return;
        seats_.clear();
        roster_.seat({});
        board_.erase(board_.generation_key(generation_), soon());
    }
    /// Takes a receiver off the list; when it registers again it is new.
    void drop(fleet_seat const& seat) {
        roster_.remove(seat.first);
        board_.forget(seat.first, soon());
    }

    /// An update of the current generation ended here: what its members say of it. `suspect` is not waited for.
    std::map<fleet_token, fleet_report> collect(int suspect) {
        std::map<fleet_token, fleet_report> all;
        auto const until = deadline::after(limits_.report);
        for (std::size_t i = 0; i < seats_.size(); ++i) {
            auto const token = seats_[i].first;
            bool const lost = static_cast<int>(i) + 1 == suspect;
            auto const found =
                report_of(token, lost ? deadline::after(std::chrono::seconds{0}) : until);
            if (found) all.emplace(token, *found);
            if (auto* const known = roster_.find(token); found && known != nullptr) {
                known->held = found->held;
                bool const fresh = found->status == member_status::updated ||
                                   found->status == member_status::not_serving;
                if (fresh) known->held_from = token_;
            }
        }
        return all;
    }
    /// The next report is of the next update.
    void count_update() noexcept { ++updates_; }

  private:
    static constexpr std::chrono::milliseconds longest_slice{250};

    deadline soon() const noexcept { return deadline::after(limits_.answer); }
    // Members that registered with the trainer before hear that there is another one.
    void open() {
        if (opened_) return;
        taken_ = board_.number(board_.taken_key(), soon());
        auto const last = board_.number(board_.counter_key(), soon());
        board_.erase(board_.generation_key(static_cast<std::uint64_t>(last)), soon());
        board_.set(board_.trainer_key(), std::to_string(token_), soon());
        opened_ = true;
    }
    bool take(std::int64_t n) {
        auto const bytes = board_.find(board_.message_key(n), soon());
        if (!bytes) return false;  // counted, and not written yet
        board_.erase(board_.message_key(n), soon());
        try {
            auto const message = fleet_message::read(*bytes);
            roster_.hear(message);
            if (message.leaves) board_.forget(message.token, soon());
        } catch (bad_input const& e) {
            log_line(std::string{"fleet: a registration was passed over: "} + e.what());
        }
        return true;
    }
    bool answers(fleet_token member, std::string const& generation, deadline until) {
        for (;;) {
            auto const said = board_.await(board_.here_key(member), until);
            if (said) board_.erase(board_.here_key(member), soon());
            if (said == generation) return true;  // else the answer to an earlier call
            if (until.expired()) return false;
        }
    }
    std::optional<fleet_report> report_of(fleet_token member, deadline until) {
        for (;;) {
            auto const bytes = board_.await(board_.report_key(member), until);
            if (!bytes && until.expired()) return std::nullopt;
            if (!bytes) continue;
            board_.erase(board_.report_key(member), soon());
            try {
                auto report = fleet_report::read(*bytes);
                if (report.generation == generation_ && report.update == updates_) return report;
            } catch (bad_input const& e) {
                log_line(std::string{"fleet: a report was passed over: "} + e.what());
            }
        }
    }

    fleet_board board_;
    fleet_limits limits_;
    fleet_roster roster_;
    fleet_token token_ = new_fleet_token();
    bool opened_ = false;
    std::int64_t taken_ = 0;
    std::map<std::int64_t, deadline>
        missing_;  // messages that are counted, and how long to look for them
    std::uint64_t generation_ = 0;
    std::uint64_t updates_ = 0;  // of the generation
    std::vector<fleet_seat> seats_;
};

}  // namespace weightcast::detail
