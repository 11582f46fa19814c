// SPDX-License-Identifier: Apache-2.0
#pragma once
// Every wait of a Gloo operation goes through here: bounded, seen by the side channel, ended by an abort.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include <gloo/common/error.h>
#include <gloo/transport/unbound_buffer.h>

#include <weightcast/base/deadline.hpp>
#include <weightcast/base/operation.hpp>
#include <weightcast/comm/detail/group_failure.hpp>
#include <weightcast/comm/detail/operation_header.hpp>

namespace weightcast::detail {

/// Why an operation ends before its time. Thrown on the stream's thread only, and caught there.
struct operation_stopped {};
struct wait_expired {
    int peer = -1;
    bool stalled = false;  ///< no byte moved; else the operation's own deadline passed
};
struct connection_broken {
    int peer = -1;
    std::string why{};
};

/// What stopped a group from outside its operations.
struct stop_cause {
    bool local = false;  ///< from this side: abort(), or a name that was taken anew
    bool departed =
        false;  ///< a rank left cleanly that this operation needs: nobody else knows yet
    group_failure failure{};
};

/// The operation that runs, as others see it.
struct running_operation {
    operation_label label{};
    op_limits limits{};
    operation_header header{};
};

/// What the side channel tells the server about a wait that makes no progress.
struct stuck_wait {
    operation_header header{};
    int peer = -1;
};

/// Between the stream's thread, which waits, and all others, which look at it or end it.
class gloo_watch {
  public:
    using clock = std::chrono::steady_clock;
    enum class direction : std::uint8_t { send, receive };

    // --- the stream's thread ---

    /// False when the group is stopped already: the operation must not run.
    bool begin(running_operation const& operation) {
        bytes_done_.store(0, std::memory_order_relaxed);
        std::lock_guard const lock{mutex_};
        if (cause_) return false;
        running_ = operation;
        is_running_ = true;
        label_ = operation.label;
        return true;
    }
    void end() noexcept {
        std::lock_guard const lock{mutex_};
        is_running_ = false;
        label_ = {};
        if (deferred_) stop_locked(*std::exchange(deferred_, std::nullopt));
        // `reported_` stays: the side channel takes back what it said
    }
    /// Names the tensor that errors shall name from here on.
    void at_tensor(operation_label const& tensor) {
        if (tensor.tensor().empty() || !running_.label.tensor().empty()) return;
        std::lock_guard const lock{mutex_};
        label_ = operation_label{running_.label.where(), tensor.tensor()};
    }
    void add_bytes(std::uint64_t moved) noexcept {
        bytes_done_.fetch_add(moved, std::memory_order_relaxed);
    }
    /// Waits for one transfer of that peer.
    /// @throws operation_stopped, wait_expired, connection_broken
    void wait(gloo::transport::UnboundBuffer& buffer, direction way, int peer) {
        auto const until = enter(buffer, way, peer);
        bool finished = false;
        try {
            auto const left = std::chrono::ceil<std::chrono::milliseconds>(until.remaining());
            auto const span = std::clamp(left, std::chrono::milliseconds{1}, longest_wait);
            finished = way == direction::send ? buffer.waitSend(nullptr, span)
                                              : buffer.waitRecv(nullptr, span);
        } catch (gloo::Exception const& problem) {
            leave();
            if (until.expired()) throw wait_expired{peer, until < running_.limits.at};
            throw connection_broken{peer, problem.what()};
        }
        leave();
        if (!finished) throw operation_stopped{};
    }
    void throw_if_stopped() {
        std::lock_guard const lock{mutex_};
        if (cause_) throw operation_stopped{};
    }
    /// Gives the side channel that long to say what broke the group.
    std::optional<stop_cause> await_cause(std::chrono::milliseconds span) {
        std::unique_lock lock{mutex_};
        changed_.wait_for(lock, span, [&] { return cause_.has_value() || deferred_.has_value(); });
        if (deferred_) stop_locked(*std::exchange(deferred_, std::nullopt));
        return cause_;
    }

    // --- any thread ---

    /// Ends the waits; the first cause stays. Returns false when there was one already.
    bool stop(stop_cause cause) noexcept {
        std::lock_guard const lock{mutex_};
        return stop_locked(std::move(cause));
    }
    /// Lets a collective that the reporter had completed before it failed end first, for that long.
    void stop_behind(stop_cause cause, std::uint64_t completed, clock::duration patience) noexcept {
        std::lock_guard const lock{mutex_};
        bool const earlier_one =
            is_running_ && running_.header.collective() && running_.header.sequence < completed;
        if (!earlier_one) {
            stop_locked(std::move(cause));
        } else if (!deferred_) {
            deferred_ = std::move(cause);
            deferred_until_ = clock::now() + patience;
        }
    }
    bool stopped() const noexcept {
        std::lock_guard const lock{mutex_};
        return cause_.has_value();
    }
    std::optional<stop_cause> cause() const {
        std::lock_guard const lock{mutex_};
        return cause_;
    }
    bool is_running() const noexcept {
        std::lock_guard const lock{mutex_};
        return is_running_;
    }
    std::optional<running_operation> running() const {
        std::lock_guard const lock{mutex_};
        if (!is_running_) return std::nullopt;
        return running_;
    }
    operation_label label() const {
        std::lock_guard const lock{mutex_};
        return label_;
    }
    std::uint64_t bytes_done() const noexcept {
        return bytes_done_.load(std::memory_order_relaxed);
    }
    /// The rank that is waited for now, -1 when none.
    int waiting_for() const noexcept {
        std::lock_guard const lock{mutex_};
        return waiting_ == nullptr ? -1 : peer_;
    }

    /// What a look at the wait found.
    struct look {
        std::optional<stuck_wait> stuck{};                  ///< to be reported now
        bool moves_again = false;                           ///< what was reported is over
        clock::time_point next = clock::time_point::max();  ///< when to look again
    };
    /// Called by the side channel's thread.
    look examine() noexcept {
        std::lock_guard const lock{mutex_};
        look found;
        if (cause_) return found;
        if (deferred_ && clock::now() >= deferred_until_) {
            stop_locked(*std::exchange(deferred_, std::nullopt));
            return found;
        }
        found.moves_again = reported_ && !is_running_;
        reported_ = reported_ && is_running_;
        if (!is_running_) return found;
        auto const now = clock::now();
        auto const left = running_.limits.at.point() - began_wait_;
        auto const stall =
            deadline::after(running_.limits.stall).remaining();  // may be without end
        auto const patience =
            std::min<clock::duration>(longest_silence, std::min<clock::duration>(stall, left) / 3);
        if (waiting_ != nullptr && !reported_ && now - began_wait_ >= patience) {
            reported_ = true;
            found.stuck = stuck_wait{running_.header, peer_};
        } else if (reported_ && now - began_wait_ < patience) {
            reported_ = false;
            found.moves_again = true;
        }
        found.next = now + std::clamp<clock::duration>(patience / 2, std::chrono::milliseconds{5},
                                                       std::chrono::milliseconds{50});
        return found;
    }

  private:
    static constexpr std::chrono::milliseconds longest_wait{1'000'000'000};
    static constexpr std::chrono::milliseconds longest_silence{250};

    bool stop_locked(stop_cause cause) noexcept {
        if (cause_) return false;
        cause_ = std::move(cause);
        changed_.notify_all();
        if (waiting_ == nullptr) return true;
        if (way_ == direction::send) {
            waiting_->abortWaitSend();
        } else {
            waiting_->abortWaitRecv();
        }
        return true;
    }
    deadline enter(gloo::transport::UnboundBuffer& buffer, direction way, int peer) {
        std::lock_guard const lock{mutex_};
        if (cause_) throw operation_stopped{};
        waiting_ = &buffer;
        way_ = way;
        peer_ = peer;
        began_wait_ = clock::now();
        return earlier(running_.limits.at, deadline::after(running_.limits.stall));
    }
    void leave() {
        std::lock_guard const lock{mutex_};
        waiting_ = nullptr;
        if (cause_) throw operation_stopped{};
    }

    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::optional<stop_cause> cause_;
    std::optional<stop_cause> deferred_;
    clock::time_point deferred_until_{};
    bool is_running_ = false;
    running_operation running_{};
    operation_label label_{};
    gloo::transport::UnboundBuffer* waiting_ = nullptr;
    direction way_ = direction::send;
    int peer_ = -1;
    clock::time_point began_wait_{};
    bool reported_ = false;
    std::atomic<std::uint64_t> bytes_done_{0};
};

}  // namespace weightcast::detail
