// SPDX-License-Identifier: Apache-2.0
#pragma once
// The groups of a rendezvous server: who joined, who is lost, who waits for whom. No sockets here: pure state.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <weightcast/base/deadline.hpp>
#include <weightcast/base/log.hpp>
#include <weightcast/comm/detail/group_failure.hpp>
#include <weightcast/comm/detail/rendezvous_group.hpp>
#include <weightcast/comm/detail/rendezvous_messages.hpp>

namespace weightcast::detail {

/// Takes what the groups have to tell a connection.
using message_outlet = std::function<void(std::uint64_t connection, message_kind,
                                          std::uint32_t request, std::string payload)>;

/// All groups of one server.
class rendezvous_groups {
  public:
    using connection_id = std::uint64_t;

    /// host_rank: the rank whose process runs the server, -1 when it stands alone.
    rendezvous_groups(message_outlet tell, int host_rank)
        : tell_{std::move(tell)}, host_rank_{host_rank} {}

    /// Called with a group's key prefix once nobody of it is connected any more.
    void on_group_end(std::function<void(std::string const&)> ended) { ended_ = std::move(ended); }

    static std::string prefix_of(std::uint64_t generation) {
        return "group/" + std::to_string(generation) + "/";
    }
    std::size_t size() const noexcept { return named_.size(); }

    void join(connection_id from, std::uint32_t request, join_request const& wish) {
        if (auto const why = refusal(from, wish)) return answer_no(from, request, *why);
        auto& group = group_to_join(wish);
        if (auto const why = conflict(*group, wish)) {
            group->last_refusal = *why;
            return answer_no(from, request, *why);
        }
        auto& seat = group->seat(wish.rank);
        seat.connection = from;
        seat.who = wish.who;
        seat.join_request = request;
        seat.join_until = deadline::after(std::chrono::milliseconds{wish.timeout_ms});
        places_[from] = {group, wish.rank};
        auto const vacant = [](auto const& s) { return s.connection == 0; };
        if (std::ranges::none_of(group->seats, vacant)) complete(*group);
    }

    void barrier(connection_id from, std::uint32_t request, std::string const& name,
                 std::int64_t timeout_ms) {
        auto const place = place_of(from);
        if (!place)
            return answer_no(from, request, "a barrier is for ranks that have joined a group");
        auto& group = *place->group;
        if (auto const why = barrier_refusal(group, place->rank, name)) {
            return answer_no(from, request, *why);
        }
        auto& open = group.barriers[name];
        open.entered[place->rank] = {request,
                                     deadline::after(std::chrono::milliseconds{timeout_ms})};
        if (open.entered.size() < group.seats.size()) return;
        auto const finished = std::move(open);
        group.barriers.erase(name);  // nothing of a barrier stays
        for (auto const& [rank, entry] : finished.entered) {
            tell_(group.seat(rank).connection, message_kind::done, entry.request, {});
        }
    }

    /// A rank's own failure becomes the group's, unless there is one already.
    void report(connection_id from, group_failure failure) {
        auto const place = place_of(from);
        if (!place || !place->group->complete) return;
        auto& group = *place->group;
        if (group.failure) return tell_failure(group, place->rank);
        failure.reporter = place->rank;
        auto& seat = group.seat(place->rank);
        seat.status.waiting = false;  // it gave up
        if (failure.kind == failure_kind::timed_out)
            failure.suspect = group.end_of_waits(place->rank, failure.suspect);
        fail(group, std::move(failure));
    }

    void status(connection_id from, status_report report) {
        auto const place = place_of(from);
        if (!place || !place->group->complete || place->group->failure) return;
        auto& group = *place->group;
        auto& seat = group.seat(place->rank);
        seat.status = std::move(report);
        if (seat.status.waiting && seat.status.collective) compare_operations(group, place->rank);
    }

    /// That connection is a rank of a group.
    bool is_member(connection_id id) const { return places_.contains(id); }

    void leave(connection_id from, std::uint32_t request, leave_account account) {
        auto const place = place_of(from);
        if (!place || !place->group->complete) {
            return answer_no(from, request, "only a rank of a complete group can leave it");
        }
        auto& group = *place->group;
        if (account.sent.size() != group.seats.size()) {
            return answer_no(from, request,
                             "the account is not for a group of " + std::to_string(group.size()));
        }
        auto& seat = group.seat(place->rank);
        seat.left = true;
        seat.status = {};
        if (group.failure) return tell_(from, message_kind::done, request, {});
        seat.leave_request = request;
        seat.account = std::move(account);
        seat.unheard = tell_others(group, place->rank, message_kind::leaving);
        for (auto& [name, open] : group.barriers)
            refuse_barrier(group, open, left_text(seat, place->rank));
        group.barriers.clear();
        settle_leave(group, place->rank);
    }

    /// `from` has nothing of `leaver` under way any more.
    void quiet(connection_id from, int leaver) {
        auto const place = place_of(from);
        if (!place || leaver < 0 || leaver >= place->group->size()) return;
        place->group->seat(leaver).unheard.erase(place->rank);
        settle_leave(*place->group, leaver);
    }

    /// The connection ended, cleanly or not.
    void gone(connection_id from) {
        auto const found = places_.find(from);
        if (found == places_.end()) return;
        auto const [group, rank] = found->second;
        places_.erase(found);
        auto& seat = group->seat(rank);
        seat.connection = 0;
        if (!group->complete) {
            seat = {};
        } else if (!seat.left && !group->failure) {
            group_failure lost{.kind = failure_kind::lost, .suspect = rank};
            lost.text = "contact with rank " + std::to_string(rank) + " (" + seat.who +
                        ") was lost: its process ended or its connection broke";
            fail(*group, std::move(lost));
        }
        depart(*group, rank);
        for (int other = 0; other < group->size(); ++other) {
            group->seat(other).unheard.erase(rank);
            settle_leave(*group, other);
        }
        if (!group->anybody_connected()) end(group);
    }

    /// Ends the waits whose time is over.
    void expire(deadline::clock::time_point now) {
        auto const groups = live_;  // an end takes a group away
        for (auto const& group : groups) {
            if (!group->complete) expire_joins(group, now);
            expire_barriers(*group, now);
        }
    }
    deadline next_deadline() const noexcept {
        auto next = deadline::at(deadline::clock::time_point::max());
        for (auto const& group : live_) {
            if (!group->complete) {
                for (auto const& seat : group->seats) next = earlier(next, seat.join_until);
            }
            for (auto const& [name, open] : group->barriers) {
                for (auto const& [rank, entry] : open.entered) next = earlier(next, entry.until);
            }
        }
        return next;
    }

  private:
    using group_ptr = std::shared_ptr<rendezvous_group>;
    struct membership {
        group_ptr group;
        int rank = 0;
    };
    static constexpr std::size_t most_groups = 4096;
    /// Of all groups together: a seat is memory that a join asks for before the others of its group are there.
    static constexpr std::size_t most_seats = std::size_t{2} * limits_on_messages.ranks;
    static constexpr std::size_t most_barriers = 1024;

    std::optional<membership> place_of(connection_id from) const {
        auto const found = places_.find(from);
        if (found == places_.end()) return std::nullopt;
        return found->second;
    }
    void answer_no(connection_id to, std::uint32_t request, std::string const& why) {
        tell_(to, message_kind::refused, request, why.substr(0, limits_on_messages.text));
    }

    // --- joining ---
    std::optional<std::string> refusal(connection_id from, join_request const& wish) const {
        if (places_.contains(from)) return "this connection is a rank of a group already";
        if (wish.group.empty()) return "a group needs a name";
        if (wish.size < 1 || wish.size > static_cast<int>(limits_on_messages.ranks)) {
            return "a group of " + std::to_string(wish.size) + " ranks: expected from 1 to " +
                   std::to_string(limits_on_messages.ranks);
        }
        if (wish.rank < 0 || wish.rank >= wish.size) {
            return wish.who + " asks for rank " + std::to_string(wish.rank) + " of a group of " +
                   std::to_string(wish.size);
        }
        if (named_.size() >= most_groups && !named_.contains(wish.group)) {
            return "this server holds " + std::to_string(most_groups) + " groups already";
        }
        auto const same_name = named_.find(wish.group);
        bool const makes_one = same_name == named_.end() || same_name->second->complete;
        if (makes_one && seats() + static_cast<std::size_t>(wish.size) > most_seats)
            return "the groups of this server have " + std::to_string(seats()) + " ranks already";
        return std::nullopt;
    }
    std::size_t seats() const {
        std::size_t all = 0;
        for (auto const& group : live_) all += group->seats.size();
        return all;
    }
    group_ptr& group_to_join(join_request const& wish) {
        auto& slot = named_[wish.group];
        if (slot != nullptr && slot->complete) retire(*slot, wish);
        if (slot == nullptr || slot->complete) {
            slot = std::make_shared<rendezvous_group>();
            slot->name = wish.group;
            slot->generation = ++generations_;
            slot->settings = wish.settings;
            slot->seats.resize(static_cast<std::size_t>(wish.size));
            live_.push_back(slot);
        }
        return slot;
    }
    /// Forming a name anew ends the group that held it.
    void retire(rendezvous_group& old, join_request const& wish) {
        auto const still_in = [](auto const& s) { return s.connection != 0 && !s.left; };
        if (old.failure || std::ranges::none_of(old.seats, still_in)) return;
        auto const& former = old.seat(std::min(wish.rank, old.size() - 1));
        group_failure replaced{.kind = failure_kind::replaced, .suspect = -1};
        replaced.text = "group '" + old.name + "' of " + former.who +
                        " is aborted and replaced: it is formed anew by " + wish.who + " as rank " +
                        std::to_string(wish.rank) + " of " + std::to_string(wish.size);
        log_line(replaced.text);
        fail(old, std::move(replaced));
    }
    static std::optional<std::string> conflict(rendezvous_group const& group,
                                               join_request const& wish) {
        for (int rank = 0; rank < group.size(); ++rank) {
            auto const& seat = group.seats[static_cast<std::size_t>(rank)];
            if (seat.connection == 0) continue;
            std::string const other = "rank " + std::to_string(rank) + " (" + seat.who + ")";
            std::string const mine = "rank " + std::to_string(wish.rank) + " (" + wish.who + ")";
            if (wish.size != group.size()) {
                return "group '" + group.name + "': " + mine + " says that it has " +
                       std::to_string(wish.size) + " ranks, " + other + " says " +
                       std::to_string(group.size());
            }
            if (wish.settings != group.settings) {
                return "group '" + group.name + "': " + mine + " has the settings '" +
                       wish.settings + "', " + other + " has '" + group.settings + "'";
            }
            if (wish.rank == rank) {
                return "group '" + group.name + "': rank " + std::to_string(rank) +
                       " is taken by " + seat.who + "; " + wish.who + " asks for it too";
            }
        }
        return std::nullopt;
    }
    void complete(rendezvous_group& group) {
        group.complete = true;
        for (auto& seat : group.seats) {
            message_writer answer;
            answer.number(group.generation).number(host_rank_);
            tell_(seat.connection, message_kind::done, seat.join_request,
                  std::move(answer).bytes());
        }
    }
    void expire_joins(group_ptr const& group, deadline::clock::time_point now) {
        std::vector<int> missing;
        for (int rank = 0; rank < group->size(); ++rank) {
            if (group->seat(rank).connection == 0) missing.push_back(rank);
        }
        for (auto& seat : group->seats) {
            if (seat.connection == 0 || seat.join_until.point() > now) continue;
            std::string why =
                group->names_of(missing) + " of group '" + group->name + "' did not join";
            if (!group->last_refusal.empty()) why += " (refused: " + group->last_refusal + ")";
            tell_(seat.connection, message_kind::late, seat.join_request, why);
            places_.erase(seat.connection);
            seat = {};
        }
        if (!group->anybody_connected()) end(group);
    }

    // --- barriers ---
    static std::string left_text(group_seat const& seat, int rank) {
        return "rank " + std::to_string(rank) + " (" + seat.who + ") has left the group";
    }
    static std::optional<std::string> barrier_refusal(rendezvous_group& group, int rank,
                                                      std::string const& name) {
        if (!group.complete) return "the group is not complete";
        if (group.failure) return group.failure->text;
        for (int other = 0; other < group.size(); ++other) {
            if (group.seat(other).left) return left_text(group.seat(other), other);
        }
        auto const found = group.barriers.find(name);
        if (found != group.barriers.end() && found->second.entered.contains(rank)) {
            return "rank " + std::to_string(rank) + " is in barrier '" + name + "' already";
        }
        if (found == group.barriers.end() && group.barriers.size() >= most_barriers) {
            return "the group has " + std::to_string(most_barriers) + " open barriers";
        }
        return std::nullopt;
    }
    void refuse_barrier(rendezvous_group& group, open_barrier const& open, std::string const& why) {
        for (auto const& [rank, entry] : open.entered) {
            if (group.seat(rank).connection != 0)
                answer_no(group.seat(rank).connection, entry.request, why);
        }
    }
    void expire_barriers(rendezvous_group& group, deadline::clock::time_point now) {
        for (auto& [name, open] : group.barriers) {
            std::vector<int> missing;
            for (int rank = 0; rank < group.size(); ++rank) {
                if (!open.entered.contains(rank)) missing.push_back(rank);
            }
            for (auto entry = open.entered.begin(); entry != open.entered.end();) {
                if (entry->second.until.point() > now) {
                    ++entry;
                    continue;
                }
                tell_(group.seat(entry->first).connection, message_kind::late,
                      entry->second.request,
                      group.names_of(missing) + " did not enter barrier '" + name + "'");
                entry = open.entered.erase(entry);
            }
        }
        std::erase_if(group.barriers, [](auto const& one) { return one.second.entered.empty(); });
    }

    // --- failing and leaving ---
    void fail(rendezvous_group& group, group_failure failure) {
        group.failure = std::move(failure);
        for (int rank = 0; rank < group.size(); ++rank) tell_failure(group, rank);
        for (auto& [name, open] : group.barriers) refuse_barrier(group, open, group.failure->text);
        group.barriers.clear();
        for (int rank = 0; rank < group.size(); ++rank) {
            group.seat(rank).unheard.clear();
            settle_leave(group, rank);
        }
    }
    void tell_failure(rendezvous_group& group, int rank) {
        if (group.seat(rank).connection == 0) return;
        message_writer payload;
        group.failure->write(payload);
        tell_(group.seat(rank).connection, message_kind::failed, 0, std::move(payload).bytes());
    }
    void settle_leave(rendezvous_group& group, int rank) {
        auto& seat = group.seat(rank);
        if (!seat.leave_request || !seat.unheard.empty()) return;
        depart(group, rank);
        auto const request = *std::exchange(seat.leave_request, std::nullopt);
        if (seat.connection != 0) tell_(seat.connection, message_kind::done, request, {});
    }
    /// From here on, what others still want of that rank will not come.
    void depart(rendezvous_group& group, int rank) {
        auto& seat = group.seat(rank);
        if (group.failure || !seat.left || std::exchange(seat.departed, true)) return;
        tell_others(group, rank, message_kind::departed);
    }
    /// A leaving rank's account, to each other rank its own part; returns those who are there.
    std::set<int> tell_others(rendezvous_group& group, int rank, message_kind kind) {
        auto const& account = group.seat(rank).account;
        std::set<int> told;
        for (int other = 0; other < group.size(); ++other) {
            auto const index = static_cast<std::size_t>(other);
            if (other == rank || group.seats[index].connection == 0) continue;
            told.insert(other);
            peer_leaving const part{rank, account.collectives, account.sent[index],
                                    account.received[index]};
            tell_(group.seats[index].connection, kind, 0, part.bytes());
        }
        return told;
    }
    /// Two ranks that are stuck in different operations at one position will never meet.
    void compare_operations(rendezvous_group& group, int rank) {
        auto const& mine = group.seat(rank).status;
        for (int other = 0; other < group.size(); ++other) {
            auto const& theirs = group.seat(other).status;
            if (other == rank || !theirs.waiting || !theirs.collective) continue;
            if (theirs.sequence != mine.sequence || theirs.doing == mine.doing) continue;
            group_failure mismatch{.kind = failure_kind::mismatch, .suspect = -1};
            mismatch.text = "the ranks do different things as collective operation " +
                            std::to_string(mine.sequence) + ": rank " + std::to_string(other) +
                            " " + theirs.doing + ", rank " + std::to_string(rank) + " " +
                            mine.doing;
            return fail(group, std::move(mismatch));
        }
    }
    void end(group_ptr const& ended) {
        // It is taken out of where the caller may have it from.
        auto const group = ended;  // NOLINT(performance-unnecessary-copy-initialization)
        auto const found = named_.find(group->name);
        if (found != named_.end() && found->second == group) named_.erase(found);
        std::erase(live_, group);
        if (ended_) ended_(prefix_of(group->generation));
    }

    message_outlet tell_;
    int host_rank_;
    std::function<void(std::string const&)> ended_;
    std::uint64_t generations_ = 0;
    std::map<std::string, group_ptr> named_;
    std::vector<group_ptr> live_;  ///< with those that were replaced and are still connected
    std::map<connection_id, membership> places_;
};

}  // namespace weightcast::detail
