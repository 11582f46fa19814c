// SPDX-License-Identifier: Apache-2.0
#pragma once
// After a failure: memory that queued work still reads or writes must not go before that work has ended.

#include <weightcast/base/deadline.hpp>
#include <weightcast/comm/concepts.hpp>
#include <weightcast/runtime/event.hpp>

namespace weightcast::detail {

/// Waits, for all streams together within the group's grace, until the communicator's streams hold nothing
/// that was put there so far. False when that is not proven. An abort comes before it.
template <Communicator C>
bool settle(C& communicator) noexcept {
    using runtime = typename C::runtime;
    auto const until = deadline::after(communicator.grace());
    auto& core = communicator.core();
    try {
        for (auto const stream :
             {core.copy_stream(), core.collective_stream(), core.unpack_stream()}) {
            event<runtime> const done{stream};
            if (!done.wait(until)) return false;
        }
        return true;
    } catch (...) {  // what cannot even be asked is not proven
        return false;
    }
}

}  // namespace weightcast::detail
