// SPDX-License-Identifier: Apache-2.0
#pragma once
// A drill: a worker that ends itself at a chosen moment of an update, as one that crashes does.

#include <signal.h>

#include <cstdint>
#include <optional>
#include <string_view>

#include <weightcast/base/phase.hpp>
#include <weightcast/base/sinks.hpp>

namespace weightcast::program {

/// Where this process is to end; nothing: nowhere.
using death_phase = std::optional<phase>;

/// Ends this process by SIGKILL when it is its phase.
inline void die_in(phase where, death_phase const& chosen) noexcept {
    if (chosen == where) ::raise(SIGKILL);
}

/// A ProgressSink that ends the process when its payload begins: the others have bytes to send and receive.
class death_in_payload {
  public:
    explicit death_in_payload(death_phase const& chosen) noexcept : chosen_{&chosen} {}
    void begin(phase where, std::uint64_t) noexcept { die_in(where, *chosen_); }
    void advance(std::uint64_t, std::string_view) noexcept {}
    void end() noexcept {}

  private:
    death_phase const* chosen_;
};
static_assert(ProgressSink<death_in_payload>);

}  // namespace weightcast::program
