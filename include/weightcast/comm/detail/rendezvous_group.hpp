// SPDX-License-Identifier: Apache-2.0
#pragma once
// One generation of a named group as the rendezvous server sees it: its seats, barriers and first failure.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <weightcast/base/deadline.hpp>
#include <weightcast/comm/detail/group_failure.hpp>
#include <weightcast/comm/detail/rendezvous_messages.hpp>

namespace weightcast::detail {

/// One rank's place in a group.
struct group_seat {
    std::uint64_t connection = 0;  ///< 0: nobody sits here, or not any more
    std::string who{};
    std::uint32_t join_request = 0;
    deadline join_until = deadline::at(deadline::clock::time_point::max());
    status_report status{};
    bool left = false;
    std::optional<std::uint32_t> leave_request{};
    leave_account account{};  ///< of one that left
    bool departed = false;    ///< and the others know
    std::set<int> unheard{};  ///< ranks that have yet to say that nothing of this one is under way
};

/// A barrier that some ranks have entered.
struct open_barrier {
    struct entry {
        std::uint32_t request = 0;
        deadline until = deadline::at(deadline::clock::time_point::max());
    };
    std::map<int, entry> entered{};
};

/// One generation of a named group.
struct rendezvous_group {
    std::string name{};
    std::uint64_t generation = 0;
    std::string settings{};
    std::vector<group_seat> seats{};
    bool complete = false;
    std::optional<group_failure> failure{};
    std::map<std::string, open_barrier> barriers{};
    std::string last_refusal{};

    int size() const noexcept { return static_cast<int>(seats.size()); }
    group_seat& seat(int rank) { return seats[static_cast<std::size_t>(rank)]; }
    bool anybody_connected() const noexcept {
        return std::ranges::any_of(seats, [](auto const& s) { return s.connection != 0; });
    }
    /// "ranks 1, 3 of 4"
    std::string names_of(std::vector<int> const& ranks) const {
        std::string text = ranks.size() == 1 ? "rank " : "ranks ";
        std::size_t const shown = std::min<std::size_t>(ranks.size(), 16);
        for (std::size_t i = 0; i < shown; ++i)
            text += (i == 0 ? "" : ", ") + std::to_string(ranks[i]);
        if (shown < ranks.size()) text += " and " + std::to_string(ranks.size() - shown) + " more";
        return text + " of " + std::to_string(size());
    }
    /// Whom a rank that waits is really waiting for: the end of the chain of waits, -1 where it is a circle.
    int end_of_waits(int reporter, int suspect) const noexcept {
        std::set<int> seen{reporter};  // it waits too, or has until now
        while (suspect >= 0 && suspect < size()) {
            if (!seen.insert(suspect).second) return -1;
            auto const& seat = seats[static_cast<std::size_t>(suspect)];
            if (seat.connection == 0 || !seat.status.waiting || seat.status.waiting_for < 0) break;
            suspect = seat.status.waiting_for;
        }
        return suspect;
    }
};

}  // namespace weightcast::detail
