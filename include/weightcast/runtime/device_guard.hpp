// SPDX-License-Identifier: Apache-2.0
#pragma once
// Makes a device current for a scope and the old one again after it.

#include <thread>

#include <weightcast/base/error.hpp>
#include <weightcast/base/expects.hpp>
#include <weightcast/runtime/concepts.hpp>
#include <weightcast/tensor/device.hpp>

namespace weightcast {

/// While it lives, the calling thread's current device is that one. Does nothing for `cpu`, nor when that
/// device is current already. Belongs to the thread that made it; throws only on entry; restores silently.
template <DeviceRuntime R>
class [[nodiscard]] device_guard {
  public:
    /// @throws bad_argument  for a device that is not R's, has no index or is out of range; nothing changed
    explicit device_guard(device where) : previous_{unchanged} {
        if (!where.is_accelerator()) return;
        if (where.kind != R::kind || !where.is_resolved()) {
            throw bad_argument{"device_guard: expected cpu or " + std::string{to_string(R::kind)} +
                               ":N, got " + to_string(where)};
        }
        auto const current = R::current_device();
        if (current == where.index) return;
        R::set_current_device(where.index);
        previous_ = current;
    }
    device_guard(device_guard&&) = delete;
    /// Ends the process when another thread than the one that made it leaves the scope.
    ~device_guard() {
        if (previous_ == unchanged) return;
        WEIGHTCAST_EXPECTS(std::this_thread::get_id() == owner_,
                           "a device_guard is left on another thread than it was made on");
        restore();
    }

  private:
    void restore() noexcept {
        try {
            R::set_current_device(previous_);
        } catch (...) {  // the device is gone: there is nothing to go back to, and no one to tell
        }
    }
    static constexpr int unchanged = -1;
    int previous_;
    std::thread::id owner_ = std::this_thread::get_id();
};

}  // namespace weightcast
