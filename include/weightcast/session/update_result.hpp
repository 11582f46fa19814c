// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/session is host-only: include it from a .cpp file"
#endif
// What an update did: on a worker, and as the sender saw it on every group and rank.

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include <weightcast/base/phase.hpp>
#include <weightcast/model/target_id.hpp>
#include <weightcast/model/weight_version.hpp>

namespace weightcast {

/// How an update ended. `nothing_updated` is no success: the version has not changed.
enum class update_status : std::uint8_t { updated, nothing_updated, failed };

constexpr std::string_view to_string(update_status s) noexcept {
    switch (s) {
        case update_status::updated: return "updated";
        case update_status::nothing_updated: return "nothing updated";
        case update_status::failed: break;
    }
    return "failed";
}

/// Seconds spent in each phase.
class phase_seconds {
  public:
    void add(phase where, std::chrono::duration<double> span) noexcept {
        seconds_[static_cast<std::size_t>(where)] += span.count();
    }
    double of(phase where) const noexcept { return seconds_[static_cast<std::size_t>(where)]; }
    double total() const noexcept {
        double sum = 0;
        for (double const s : seconds_) sum += s;
        return sum;
    }

  private:
    std::array<double, 5> seconds_{};
};

/// Adds the time from its making to its end to a phase.
class [[nodiscard]] phase_timer {
  public:
    phase_timer(phase_seconds& seconds, phase where) : seconds_{seconds}, where_{where} {}
    phase_timer(phase_timer const&) = delete;
    ~phase_timer() { seconds_.add(where_, std::chrono::steady_clock::now() - begin_); }

  private:
    phase_seconds& seconds_;
    phase where_;
    std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

/// What one update did on a worker.
struct update_report {
    update_status status = update_status::nothing_updated;
    target_id target{};
    weight_version version{};  ///< that the target holds now
    std::size_t tensors = 0;
    std::uint64_t bytes = 0;
    phase_seconds seconds{};
    std::vector<std::string>
        not_covered{};  ///< parameters and buffers of the target that the update did not bring
    std::vector<std::string> unknown{};  ///< names that were dropped, where the target accepts that
    std::uint64_t held_bytes = 0;        ///< the most that was held at a time for layers' steps
};

/// How an update ended on one rank, trainers included, as far as the sender knows.
enum class rank_status : std::uint8_t {
    updated,      ///< holds the version
    unchanged,    ///< nothing was written
    refused,      ///< said no
    rolled_back,  ///< has the version it had; under `in_place` its target is mixed
    lost,         ///< held responsible for the failure
    unknown       ///< the failure came at the vote: it may hold the version or not
};

constexpr std::string_view to_string(rank_status s) noexcept {
    constexpr std::array<std::string_view, 6> names{"updated",     "unchanged", "refused",
                                                    "rolled back", "lost",      "version unknown"};
    auto const i = static_cast<std::size_t>(s);
    return i < names.size() ? names[i] : "unknown status";
}

/// How an update ended in one group.
struct group_result {
    std::string name{};
    std::exception_ptr failure{};    ///< null: every rank holds the version
    phase where = phase::preflight;  ///< of the failure
    std::string message{};           ///< of the failure
    std::vector<rank_status> ranks{};
    bool ok() const noexcept { return failure == nullptr; }
};

/// What one update did, as the sender saw it.
struct update_result {
    update_status status = update_status::failed;
    target_id target{};
    weight_version version{};
    std::size_t tensors = 0;
    std::uint64_t bytes = 0;       ///< of the tensors
    std::uint64_t wire_bytes = 0;  ///< that entered transfers of one group, padding included
    phase_seconds seconds{};
    std::vector<group_result> groups{};

    bool ok() const noexcept { return status == update_status::updated; }
    /// Throws the first group's failure, if any group failed; else returns itself.
    update_result const& or_throw() const {
        for (auto const& g : groups) {
            if (g.failure) std::rethrow_exception(g.failure);
        }
        return *this;
    }
};

}  // namespace weightcast
