// SPDX-License-Identifier: Apache-2.0
#pragma once
// How a group of threads ended before its time, and what each of its ranks throws because of it.

#include <cstdint>
#include <string>
#include <utility>

#include <weightcast/base/error.hpp>

namespace weightcast::detail {

/// How a group came to its end, as every rank learns it.
struct local_end {
    enum class reason : std::uint8_t { aborted, replaced, mismatched, timed_out, left, failed };
    reason why = reason::aborted;
    int by = -1;       ///< the rank that ended the group
    int suspect = -1;  ///< the rank held responsible
    std::string text{};
    std::string expected{};
    std::string actual{};
};

/// @throws group_aborted  on the rank that aborted, and on all of a group that was replaced
/// @throws timeout        on the rank whose time was up
/// @throws peer_error     on all others
[[noreturn]] inline void throw_as_seen_by(int rank, local_end const& end, std::string const& group,
                                          failure_facts facts) {
    using reason = local_end::reason;
    auto const text = "group '" + group + "': ";
    auto const by = "rank " + std::to_string(end.by);
    facts.suspect = end.suspect;
    facts.expected = end.expected;
    facts.actual = end.actual;
    switch (end.why) {
        case reason::replaced: fail<group_aborted>(text + end.text, std::move(facts));
        case reason::aborted:
            if (end.by == rank)
                fail<group_aborted>(text + "aborted on this rank", std::move(facts));
            if (end.suspect < 0 || end.suspect == rank) facts.suspect = end.by;
            fail<peer_error>(text + by + " aborted the group", std::move(facts));
        case reason::timed_out:
            if (end.by == rank) fail<timeout>(text + end.text, std::move(facts));
            fail<peer_error>(text + by + " gave up: " + end.text, std::move(facts));
        case reason::mismatched:
        case reason::left:
        case reason::failed: break;
    }
    fail<peer_error>(text + end.text, std::move(facts));
}

}  // namespace weightcast::detail
