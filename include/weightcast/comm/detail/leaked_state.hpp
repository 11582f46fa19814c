// SPDX-License-Identifier: Apache-2.0
#pragma once
// Memory that may still be used by an operation that cannot be proven to have ended is kept, and said so.

#include <memory>
#include <string_view>
#include <utility>

#include <weightcast/base/log.hpp>
#include <weightcast/runtime/detail/left_behind.hpp>

namespace weightcast::detail {

/// Keeps the object until the process ends, and logs why.
inline void leak_state(std::shared_ptr<void> kept, std::string_view why) noexcept {
    log_line(why);
    kept_list only;
    only.keep(std::move(kept));
    leave_behind(only);
}

}  // namespace weightcast::detail
