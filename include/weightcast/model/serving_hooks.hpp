// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/model is host-only: include it from a .cpp file"
#endif
// What an engine that serves does around an update.

#include <functional>

#include <weightcast/model/target_id.hpp>

namespace weightcast {

/// Called on the thread of the update; each may be empty. Snapshots are the better half of this: what reads through
/// them needs neither `pause` nor `resume`.
struct serving_hooks {
    /// Before an update writes what is served; not under `shadow`. Returns when nothing reads any more. What it throws
    /// refuses the update.
    std::function<void(target_id const&)> pause{};
    /// Once after every commit, and when a target has become mixed; before readers get in again. Prefix and KV caches
    /// that were made with the old weights go here. What it throws fails `finish`: the version is published, and the
    /// target stays closed to snapshots until a later update.
    std::function<void(target_id const&)> invalidate{};
    /// After an update, unless the target is mixed or its caches are stale; called when `pause` was.
    std::function<void(target_id const&)> resume{};
};

}  // namespace weightcast
