// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/session is host-only: include it from a .cpp file"
#endif
// Whom a fleet's trainer knows: who is in the generation, who waits, and what each holds. No connections here: pure state.

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <weightcast/model/weight_version.hpp>
#include <weightcast/session/detail/fleet_board.hpp>

namespace weightcast::detail {

/// One receiver.
struct fleet_entry {
    std::string id{};
    fleet_token token = 0;
    weight_version held{};
    fleet_token held_from = 0;
    bool waiting = false;  ///< registered, and in no generation
    int rank = 0;          ///< in the current generation, 0: in none
};

/// One process of a receiver, as an update knows it.
using fleet_seat = std::pair<fleet_token, std::string>;

/// In the order in which they came.
class fleet_roster {
  public:
    /// A receiver registers, or leaves. An id with another token is another process: the one before is gone.
    void hear(fleet_message const& heard) {
        if (heard.leaves) return remove(heard.token);
        auto* known = find(heard.token);
        if (known == nullptr) {
            if (auto const* before = find(heard.id)) remove(before->token);
            known = &entries_.emplace_back(fleet_entry{.id = heard.id, .token = heard.token});
        }
        known->waiting = true;
        known->held = heard.held;
        known->held_from = heard.held_from;
    }
    void remove(fleet_token token) {
        std::erase_if(entries_, [&](fleet_entry const& e) { return e.token == token; });
    }
    fleet_entry* find(fleet_token token) noexcept {
        for (auto& e : entries_) {
            if (e.token == token) return &e;
        }
        return nullptr;
    }
    fleet_entry const* find(std::string const& id) const noexcept {
        for (auto const& e : entries_) {
            if (e.id == id) return &e;
        }
        return nullptr;
    }
    std::vector<fleet_entry> const& entries() const noexcept { return entries_; }

    /// Who takes part in an update: in a full one everybody, in a partial one those that hold what this trainer's
    /// fleet holds.
    std::vector<fleet_seat> participants(bool full, weight_version const& version,
                                         fleet_token trainer) const {
        std::vector<fleet_seat> all;
        for (auto const& e : entries_) {
            bool const same =
                version.is_set() && e.held_from == trainer && e.held.number == version.number;
            if (full || same) all.emplace_back(e.token, e.id);
        }
        return all;
    }
    /// Those of the seats that wait for a generation, or do not.
    std::vector<fleet_seat> waiting(std::vector<fleet_seat> const& seats,
                                    bool wanted = true) const {
        std::vector<fleet_seat> all;
        for (auto const& seat : seats) {
            auto const* known = const_cast<fleet_roster*>(this)->find(seat.first);
            if ((known != nullptr && known->waiting) == wanted) all.push_back(seat);
        }
        return all;
    }
    /// Those of the seats that have neither left nor been replaced.
    std::vector<fleet_seat> known(std::vector<fleet_seat> const& seats) const {
        std::vector<fleet_seat> all;
        for (auto const& seat : seats) {
            if (const_cast<fleet_roster*>(this)->find(seat.first) != nullptr) all.push_back(seat);
        }
        return all;
    }
    /// The seats are a generation now: ranks from 1.
    void seat(std::vector<fleet_seat> const& seats) {
        for (auto& e : entries_) e.rank = 0;
        int rank = 0;
        for (auto const& [token, _] : seats) {
            ++rank;
            auto* const one = find(token);
            if (one == nullptr) continue;
            one->waiting = false;
            one->rank = rank;
        }
    }

  private:
    std::vector<fleet_entry> entries_;
};

}  // namespace weightcast::detail
