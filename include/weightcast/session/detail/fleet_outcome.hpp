// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/session is host-only: include it from a .cpp file"
#endif
// What is known of a fleet's update while it runs, and the result that becomes of it.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <exception>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <weightcast/base/deadline.hpp>
#include <weightcast/base/error.hpp>
#include <weightcast/session/detail/fleet_desk.hpp>
#include <weightcast/session/fleet.hpp>
#include <weightcast/session/update_result.hpp>

namespace weightcast::detail {

/// One update, over its attempts.
struct fleet_round {
    std::vector<fleet_seat> seats{};  ///< who takes part, in rank order from rank 1
    deadline until = deadline::after(std::chrono::milliseconds{0});
    weight_version version{};
    int attempts = 0;
    bool over = false;                    ///< no further attempt
    std::optional<update_result> last{};  ///< of the last attempt, where it was sent
    bool sent = false;                    ///< some attempt was sent
    std::map<fleet_token, fleet_report> reports{};
    std::vector<std::pair<fleet_token, member_result>> lost{};
    std::exception_ptr failure{};  ///< of the last attempt
    std::string message{};
    int suspect = -1;  ///< the rank held responsible for it

    void fail(std::exception_ptr why) {
        failure = std::move(why);
        message.clear();
        suspect = -1;
        try {
            if (failure) std::rethrow_exception(failure);
        } catch (error const& e) {
            message = e.what();
            suspect = e.facts().suspect;
        } catch (std::exception const& e) {
            message = e.what();
        }
    }
    /// The receiver held responsible for the last failure; 0: none.
    fleet_token suspected() const {
        auto const rank = static_cast<std::size_t>(std::max(suspect, 0));
        return rank == 0 || rank > seats.size() ? 0 : seats[rank - 1].first;
    }
};

/// What a receiver said, else what follows from how the attempt ended.
inline member_result member_of(fleet_round const& round, fleet_seat const& seat, std::size_t rank,
                               weight_version const& held) {
    member_result one{.id = seat.second, .version = held};
    if (auto const said = round.reports.find(seat.first); said != round.reports.end()) {
        one.status = said->second.status;
        one.version = said->second.held;
        one.message = said->second.message;
        return one;
    }
    if (!round.last || round.last->groups.empty()) {
        if (!round.sent) one.status = member_status::unchanged;
        one.message =
            round.sent ? "its group failed, and was not formed again" : "nothing was sent to it";
        return one;
    }
    one.message = "it did not say what it holds";
    auto const& ranks = round.last->groups.front().ranks;
    auto const status = rank < ranks.size() ? ranks[rank] : rank_status::unknown;
    if (status == rank_status::unchanged) one.status = member_status::unchanged;
    if (status == rank_status::refused) one.status = member_status::refused;
    if (status == rank_status::rolled_back) one.status = member_status::rolled_back;
    if (status == rank_status::lost) one.message = "it was lost: " + round.message;
    return one;
}

inline void add_members(fleet_result& result, fleet_round const& round, fleet_desk const& desk,
                        bool with_pending) {
    auto const& roster = desk.roster();
    for (std::size_t i = 0; i < round.seats.size(); ++i) {
        auto const* known = roster.find(round.seats[i].second);
        result.members.push_back(member_of(round, round.seats[i], i + 1,
                                           known == nullptr ? weight_version{} : known->held));
    }
    // who came back meanwhile is pending, whatever became of the process before
    for (auto const& [token, one] : round.lost) {
        auto const* known = roster.find(one.id);
        bool const back = known != nullptr && (known->token != token || known->waiting);
        if (!with_pending || !back) result.members.push_back(one);
    }
    if (!with_pending) return;
    for (auto const& e : roster.entries()) {
        if (std::ranges::find(result.members, e.id, &member_result::id) == result.members.end())
            result.members.push_back(
                {.id = e.id, .status = member_status::pending, .version = e.held});
    }
}

/// An update is done when all that were in its last generation say so.
inline void judge(fleet_result& result, fleet_round const& round) {
    bool const sent = !round.failure && round.last;
    result.status = sent ? round.last->status : update_status::failed;
    if (result.status != update_status::updated) return;
    for (auto const& seat : round.seats) {
        auto const& one = result.of(seat.second);
        if (one.status == member_status::updated) continue;
        result.status = update_status::failed;
        std::string const what = "version " + to_string(result.version) + ": member '" + one.id +
                                 "' is " + std::string{to_string(one.status)} + " at version " +
                                 to_string(one.version) + ": " + one.message;
        result.message += (result.message.empty() ? "" : "; ") + what;
    }
    if (result.status == update_status::failed)
        result.failure =
            std::make_exception_ptr(peer_error{result.message, {.where = phase::commit}});
}

inline fleet_result outcome_of(fleet_round const& round, fleet_desk const& desk,
                               target_id const& target, bool with_pending) {
    fleet_result result;
    result.target = target;
    result.version = round.version;
    result.generation = desk.generation();
    result.attempts = round.attempts;
    if (round.last) {
        result.tensors = round.last->tensors;
        result.bytes = round.last->bytes;
        result.wire_bytes = round.last->wire_bytes;
    }
    result.failure = round.failure;
    result.message = round.message;
    add_members(result, round, desk, with_pending);
    judge(result, round);
    return result;
}

}  // namespace weightcast::detail
