// SPDX-License-Identifier: Apache-2.0
#pragma once
// Memory must not go before the work that uses it is done, whichever way a scope is left.

#include <chrono>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <weightcast/base/deadline.hpp>
#include <weightcast/base/error.hpp>
#include <weightcast/base/log.hpp>
#include <weightcast/runtime/concepts.hpp>
#include <weightcast/runtime/detail/left_behind.hpp>
#include <weightcast/runtime/event.hpp>

namespace weightcast {

/// Answers for the work on some streams. What is given to `keep` lives until that work is proven done:
/// `wait` proves it and frees it all; so does leaving the scope, also by an exception, but no longer than
/// its grace. What is still unproven then is left behind (never freed, counted and logged), since freeing it
/// would let a stream write into memory that is someone else's by then.
/// Belongs to one thread; streams must outlive it.
template <DeviceRuntime R>
class [[nodiscard]] stream_sync_scope {
  public:
    using runtime = R;
    using stream_ref = typename R::stream_ref;
    static constexpr std::chrono::milliseconds default_grace{5'000};

    /// Answers for one stream; `grace` bounds how long leaving the scope may take.
    explicit stream_sync_scope(stream_ref on, std::chrono::milliseconds grace = default_grace)
        : grace_{grace} {
        add(on);
    }
    stream_sync_scope(stream_sync_scope&&) = delete;
    /// Waits for at most the grace.
    ~stream_sync_scope() {
        if (prove_silently()) kept_.clear();
        if (kept_.size() == 0) return;
        log_line("stream_sync_scope: " + std::to_string(kept_.size()) +
                 " resources are left behind: the streams that use them are not done after " +
                 std::to_string(grace_.count()) + " ms");
        detail::leave_behind(kept_);
    }

    /// Answers for another stream too. Adding one twice changes nothing.
    void add(stream_ref on) {
        for (auto const& known : streams_) {
            if (known.ref == on) return;
        }
        streams_.push_back({on, event<R>{}});
    }

    /// Keeps a resource until the work is proven done, and returns where it is kept. The kept go in the
    /// reverse order of their coming.
    template <class T>
    T& keep(T resource) {
        return kept_.keep(std::move(resource));
    }

    /// Waits until all that was put on the streams so far is done, then frees what is kept.
    /// @throws timeout             when the deadline passes first
    /// @throws contract_violation  when a stream was destroyed; either way all is kept
    void wait(deadline until) {
        if (!prove(until)) {
            throw timeout{"stream_sync_scope: the work on " + std::to_string(streams_.size()) +
                          " streams is not done at the deadline; what the scope keeps is kept"};
        }
        kept_.clear();
    }

    /// Resources of all scopes of this runtime's process that could not be freed.
    static std::size_t left_behind() { return detail::count_left_behind(); }

  private:
    struct answered {
        stream_ref ref;
        event<R> done;
    };
    bool prove(deadline until) {
        for (auto const& each : streams_) each.done.record(each.ref);
        for (auto const& each : streams_) {
            if (!each.done.wait(until)) return false;
        }
        return true;
    }
    bool prove_silently() noexcept {
        try {
            return prove(deadline::after(grace_));
        } catch (...) {  // a stream that cannot even be asked is not proven
            return false;
        }
    }

    std::chrono::milliseconds grace_;
    std::vector<answered> streams_;
    detail::kept_list kept_;
};

}  // namespace weightcast
