// SPDX-License-Identifier: Apache-2.0
#pragma once
// The part of a communicator's state that every model has: place in the group, streams, events, first failure.

#include <atomic>
#include <exception>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <weightcast/base/error.hpp>
#include <weightcast/runtime/concepts.hpp>
#include <weightcast/runtime/event.hpp>
#include <weightcast/runtime/stream.hpp>
#include <weightcast/tensor/device.hpp>

namespace weightcast {

/// Place in the group.
struct group_position {
    int rank = 0;
    int size = 1;
};

/// Streams, events and failure of one communicator. Lives in the heap state that queued operations refer to.
/// Threads: one caller; the stream's thread touches the failure record only.
template <DeviceRuntime R>
class communicator_core {
  public:
    using stream_ref = typename R::stream_ref;
    using event_ref = typename R::event_ref;

    communicator_core(std::string name, group_position position, device where)
        : name_{std::move(name)},
          position_{position},
          where_{where.is_accelerator() ? where.resolved_to(R::current_device()) : where},
          collective_{where_},
          copy_{where_},
          unpack_{where_} {
        R::mark_communicator_stream(collective_.ref());
        R::mark_communicator_stream(copy_.ref());
        R::mark_communicator_stream(unpack_.ref());
    }

    std::string const& name() const noexcept { return name_; }
    int rank() const noexcept { return position_.rank; }
    int size() const noexcept { return position_.size; }
    device where() const noexcept { return where_; }

    /// S: collectives only.
    stream_ref collective_stream() const noexcept { return collective_.ref(); }
    /// P: packing and staging.
    stream_ref copy_stream() const noexcept { return copy_.ref(); }
    /// U: unpacking at a receiver.
    stream_ref unpack_stream() const noexcept { return unpack_.ref(); }

    /// An event from the cache: no allocation once as many were out at a time. Give it back with `give_event`.
    event<R> take_event() {
        if (events_.empty()) {
            events_.reserve(++events_out_);
            return event<R>{};
        }
        event<R> taken = std::move(events_.back());
        events_.pop_back();
        return taken;
    }
    void give_event(event<R> returned) noexcept {
        if (events_.size() < events_.capacity()) events_.push_back(std::move(returned));
    }

    /// Keeps the first failure; later ones are dropped. Any thread.
    void record_failure(std::exception_ptr failure) noexcept {
        std::lock_guard const lock{mutex_};
        if (!failure_) failure_ = std::move(failure);
        failed_.store(true, std::memory_order_release);
    }
    bool failed() const noexcept { return failed_.load(std::memory_order_acquire); }
    /// Throws the first failure again, if there is one.
    void rethrow_if_failed() const {
        if (!failed()) return;
        std::exception_ptr first;
        {
            std::lock_guard const lock{mutex_};
            first = failure_;
        }
        std::rethrow_exception(first);
    }

  private:
    std::string name_;
    group_position position_;
    device where_;
    stream<R> collective_;
    stream<R> copy_;
    stream<R> unpack_;
    std::vector<event<R>> events_;
    std::size_t events_out_ = 0;
    mutable std::mutex mutex_;
    std::exception_ptr failure_;
    std::atomic<bool> failed_{false};
};

}  // namespace weightcast
