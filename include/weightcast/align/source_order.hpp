// SPDX-License-Identifier: Apache-2.0
#pragma once
// How a sender says when its tensors are ready, and how a receiver says who still reads its buffer.

#include <array>
#include <chrono>
#include <string>

#include <weightcast/base/deadline.hpp>
#include <weightcast/base/error.hpp>
#include <weightcast/runtime/concepts.hpp>
#include <weightcast/tensor/device.hpp>

namespace weightcast {

/// The tensors may have been written by any stream: each unique source device is waited for once a call,
/// on the calling thread. The default. Never waits for device `cpu`, nor for communicators' own streams.
struct produced_anywhere {
    deadline until = deadline::after(std::chrono::seconds{20});
};

/// The tensors were written by what this stream holds at the call: an event orders the send behind it,
/// and nobody waits. For asynchronous copies to host memory too.
template <class StreamRef>
struct produced_on {
    StreamRef stream;
};
template <class StreamRef>
produced_on(StreamRef) -> produced_on<StreamRef>;

/// The tensors are ready: the caller has waited.
struct already_ready {};

/// The receiver's buffer is still read by what this stream holds at the call.
template <class StreamRef>
struct readers_on {
    StreamRef stream;
};
/// `scope.require(t, after(stream))`: the bytes arrive after those earlier readers.
template <class StreamRef>
readers_on<StreamRef> after(StreamRef stream) noexcept {
    return {stream};
}

/// The devices that one call has to wait for, each once.
class source_devices {
  public:
    static constexpr int max_devices = 64;
    /// Notes an accelerator; `cpu` is never waited for.
    void add(device where) {
        if (!where.is_accelerator()) return;
        if (where.index < 0 || where.index >= max_devices) {
            throw bad_argument{"device " + to_string(where) + " has no index from 0 to 63"};
        }
        set_[static_cast<std::size_t>(where.index)] = true;
    }
    /// Waits for each. @throws timeout  naming the device; nothing was sent
    template <DeviceRuntime R>
    void wait(deadline until) const {
        for (int i = 0; i < max_devices; ++i) {
            if (!set_[static_cast<std::size_t>(i)] || R::wait_device(i, until)) continue;
            throw timeout{
                "source device " + to_string(device{R::kind, i}) +
                " was still busy at the deadline; produced_on{stream} waits for one stream only"};
        }
    }

  private:
    std::array<bool, max_devices> set_{};
};

}  // namespace weightcast
