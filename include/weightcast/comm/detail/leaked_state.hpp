// SPDX-License-Identifier: Apache-2.0
#pragma once
// Memory that may still be used by an operation that cannot be proven to have ended is kept, and said so.

#include <memory>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include <weightcast/base/log.hpp>

namespace weightcast::detail {

/// Keeps the object until the process ends, and logs why.
inline void leak_state(std::shared_ptr<void> kept, std::string_view why) noexcept {
    struct kept_objects {
        std::mutex mutex;
        std::vector<std::shared_ptr<void>> all;
    };
    static kept_objects* const objects = new kept_objects;  // reachable, never destroyed
    log_line(why);
    std::lock_guard const lock{objects->mutex};
    objects->all.push_back(std::move(kept));
}

}  // namespace weightcast::detail
