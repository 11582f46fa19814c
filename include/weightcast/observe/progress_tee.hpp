// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/observe is host-only: include it from a .cpp file"
#endif
// One transfer, several listeners.

#include <cstdint>
#include <string_view>
#include <tuple>

#include <weightcast/base/phase.hpp>
#include <weightcast/base/sinks.hpp>

namespace weightcast {

/// A ProgressSink that tells all of its sinks, in the order given. They must outlive it.
template <ProgressSink... Sinks>
class progress_tee {
  public:
    explicit progress_tee(Sinks&... sinks) noexcept : sinks_{sinks...} {}

    void begin(phase where, std::uint64_t bytes) {
        std::apply([&](auto&... s) { (s.begin(where, bytes), ...); }, sinks_);
    }
    void advance(std::uint64_t bytes, std::string_view tensor) {
        std::apply([&](auto&... s) { (s.advance(bytes, tensor), ...); }, sinks_);
    }
    void end() {
        std::apply([](auto&... s) { (s.end(), ...); }, sinks_);
    }

  private:
    std::tuple<Sinks&...> sinks_;
};
static_assert(ProgressSink<progress_tee<no_progress, no_progress>>);

}  // namespace weightcast
