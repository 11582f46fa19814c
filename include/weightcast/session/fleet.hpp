// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/session is host-only: include it from a .cpp file"
#endif
// What a fleet is called, how long it waits, and what an update did to each of its members.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include <weightcast/base/error.hpp>
#include <weightcast/comm/endpoint.hpp>
#include <weightcast/model/target_id.hpp>
#include <weightcast/model/weight_version.hpp>
#include <weightcast/session/update_result.hpp>

namespace weightcast {

/// What a trainer does when a receiver is lost in an update.
enum class failure_policy : std::uint8_t {
    stop,             ///< the update has failed: the result says how
    continue_without  ///< the receiver is dropped, and the rest get the same update again
};

/// Where a fleet meets. All of a fleet have the same name and endpoint.
struct fleet_place {
    std::string name = "weights";  ///< fleets of different names live side by side
    endpoint at{};                 ///< of the rendezvous server
};

/// How long a fleet's trainer waits. Every wait ends.
struct fleet_limits {
    /// A whole update, with all that is formed and sent again in it.
    std::chrono::milliseconds update{std::chrono::minutes{10}};
    /// For members to register again after their generation ended; longer than their communicators take to notice.
    std::chrono::milliseconds regroup{std::chrono::seconds{40}};
    /// For a registered member to answer that it is there, and for a request to the rendezvous.
    std::chrono::milliseconds answer{std::chrono::seconds{5}};
    /// For members to say after an update what they hold.
    std::chrono::milliseconds report{std::chrono::seconds{10}};
    int attempts = 8;  ///< to send one update
};

/// How a fleet's trainer goes about it.
struct fleet_settings {
    failure_policy policy = failure_policy::stop;
    fleet_limits limits{};
};

/// How long a member waits.
struct fleet_member_limits {
    std::chrono::milliseconds update{
        std::chrono::minutes{30}};  ///< for the next update, unless `serve_one` is told otherwise
    std::chrono::milliseconds answer{
        std::chrono::seconds{5}};  ///< for a request to the rendezvous to be answered
};

/// How an update ended for one member.
enum class member_status : std::uint8_t {
    updated,      ///< holds the version
    not_serving,  ///< holds the version, but what goes with it failed: its target is closed to readers
    unchanged,    ///< nothing was written
    refused,      ///< said no
    rolled_back,  ///< has the version it had; under `in_place` its target may be mixed
    dropped,      ///< was lost, and the fleet went on without it
    pending,      ///< registered, and not a member yet: the next full update brings it in
    unknown       ///< did not say: it may hold the version or not
};

constexpr std::string_view to_string(member_status s) noexcept {
    constexpr std::array<std::string_view, 8> names{"updated", "not serving", "unchanged",
                                                    "refused", "rolled back", "dropped",
                                                    "pending", "unknown"};
    auto const i = static_cast<std::size_t>(s);
    return i < names.size() ? names[i] : "unknown status";
}

/// One member in an update's result.
struct member_result {
    std::string id{};
    member_status status = member_status::unknown;
    weight_version version{};  ///< that it holds, as far as the trainer knows
    std::string message{};     ///< why, where there is a reason
};

/// What one update did to a fleet.
struct fleet_result {
    update_status status =
        update_status::failed;  ///< `updated`: every member that was not dropped holds the version
    target_id target{};
    weight_version version{};
    std::uint64_t generation = 0;  ///< of the group that had the last attempt
    int attempts = 0;
    std::size_t tensors = 0;
    std::uint64_t bytes = 0;               ///< of the tensors
    std::uint64_t wire_bytes = 0;          ///< of the last attempt
    std::exception_ptr failure{};          ///< null: the update is done
    std::string message{};                 ///< of the failure
    std::vector<member_result> members{};  ///< in rank order, then the dropped, then the pending

    bool ok() const noexcept { return status == update_status::updated; }
    /// Throws the failure, if there is one; else returns itself.
    fleet_result const& or_throw() const {
        if (failure) std::rethrow_exception(failure);
        return *this;
    }
    /// @throws bad_argument  for an id that the update did not hear of
    member_result const& of(std::string_view id) const {
        auto const found = std::ranges::find(members, id, &member_result::id);
        if (found != members.end()) return *found;
        throw bad_argument{"fleet_result: no member '" + std::string{id} + "' among " +
                           std::to_string(members.size())};
    }
    std::size_t count(member_status status_of_member) const noexcept {
        return static_cast<std::size_t>(
            std::ranges::count(members, status_of_member, &member_result::status));
    }
};

}  // namespace weightcast
