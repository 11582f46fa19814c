// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a user may choose of a demo.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include <program/weight_change.hpp>

#include <weightcast/base/phase.hpp>
#include <weightcast/engine/transfer_settings.hpp>
#include <weightcast/model/commit_policy.hpp>
#include <weightcast/model/shadow.hpp>
#include <weightcast/model/sliced_layout.hpp>

namespace weightcast::program {

inline constexpr std::array<std::string_view, 2> engine_names{"dense", "packed"};
inline constexpr std::array<std::string_view, 2> transport_names{"local", "gloo"};
inline constexpr std::array<std::string_view, 2> policy_names{in_place::name, shadow::name};

struct demo_options {
    std::string model{};
    int workers = 2;
    int rounds = 3;
    change_options change{};
    std::string engine = "packed";
    std::string transport = "gloo";
    int tensor_parallel = 1;  ///< workers that share a copy of the model
    std::string policy{in_place::name};
    std::string dump{};   ///< a folder; empty: nothing is written
    std::string trace{};  ///< a file; empty: nothing is written
    bool corrupt = false;
    int killed_rank = 0;               ///< that ends itself; 0: none
    phase killed_in = phase::connect;  ///< of the last round; `connect`: as the group forms
    double deadline_s = 20;
    double announce_deadline_s = 1800;
    bool json = false;

    /// What of a copy the worker of that rank holds.
    shard_position shard_of_worker(int rank) const {
        return {(rank - 1) % tensor_parallel, tensor_parallel};
    }
    bool kills(int rank, phase where) const { return rank == killed_rank && where == killed_in; }
    /// Workers read snapshots while updates come.
    bool has_readers() const { return policy == shadow::name; }
    std::chrono::milliseconds stall() const { return in_ms(deadline_s); }
    std::chrono::milliseconds announcement() const { return in_ms(announce_deadline_s); }
    /// How long the group may take to form: everybody is there and waits.
    std::chrono::milliseconds connect() const {
        using std::chrono::seconds;
        return std::clamp<std::chrono::milliseconds>(stall(), seconds{5}, seconds{30});
    }
    /// Time for what reads or writes a whole model once, at 100 MB/s at least.
    std::chrono::milliseconds pass_over(std::uint64_t bytes) const {
        return stall() + std::chrono::milliseconds{bytes / 100'000};
    }
    transfer_limits limits(std::uint64_t bytes) const {
        using std::chrono::seconds;
        auto const update = std::max<std::chrono::milliseconds>(seconds{300}, pass_over(bytes));
        return {.announcement = announcement(), .stall = stall(), .update = update};
    }

  private:
    static std::chrono::milliseconds in_ms(double seconds) {
        return std::chrono::ceil<std::chrono::milliseconds>(std::chrono::duration<double>{seconds});
    }
};

}  // namespace weightcast::program
