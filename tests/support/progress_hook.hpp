// SPDX-License-Identifier: Apache-2.0
// A progress sink that calls a function, to fail, wait or die at a chosen byte of the payload.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>

#include <support/test_model.hpp>

namespace weightcast::test {

/// Calls `at(step)` at every advance of a payload, counted from 0; the count begins anew with each payload. What the
/// hook throws is what the sink throws.
class progress_hook {
  public:
    progress_hook() = default;
    explicit progress_hook(std::function<void(int step)> at) : at_{std::move(at)} {}
    void begin(phase, std::uint64_t) { step_ = 0; }
    void advance(std::uint64_t, std::string_view) {
        if (at_) at_(step_);
        ++step_;
    }
    void end() {}

  private:
    std::function<void(int step)> at_{};
    int step_ = 0;
};
static_assert(ProgressSink<progress_hook>);

/// A dense engine over that communicator that calls such a hook.
template <class C>
using hooked_engine_over = dense_engine<C, parameter_tables<>, progress_hook>;

}  // namespace weightcast::test
