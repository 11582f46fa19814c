// SPDX-License-Identifier: Apache-2.0
#pragma once
// The heap state of a Gloo communicator: what queued operations refer to, and what tells the group of failures.

#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include <weightcast/base/error.hpp>
#include <weightcast/base/log.hpp>
#include <weightcast/comm/communicator_core.hpp>
#include <weightcast/comm/detail/gloo_account.hpp>
#include <weightcast/comm/detail/gloo_links.hpp>
#include <weightcast/comm/detail/gloo_transfer.hpp>
#include <weightcast/comm/detail/gloo_watch.hpp>
#include <weightcast/comm/gloo_options.hpp>
#include <weightcast/comm/rendezvous.hpp>
#include <weightcast/runtime/host_runtime.hpp>

namespace weightcast::detail {

/// One rank of one generation of a group.
class gloo_state {
  public:
    explicit gloo_state(gloo_options const& options)
        : core{options.name, {options.rank, options.size}, options.where},
          account{options.size},
          grace{options.grace} {}
    gloo_state(gloo_state const&) = delete;
    gloo_state& operator=(gloo_state const&) = delete;
    ~gloo_state() {
        transfer.reset();
        links.reset();
        close_side_channel();
        close_server();
    }

    int rank() const noexcept { return core.rank(); }
    bool stopped() const noexcept { return watch.stopped(); }
    int suspect() const noexcept { return suspect_.load(std::memory_order_relaxed); }

    // --- the stream's thread ---

    /// Runs one operation; what goes wrong becomes the group's failure.
    void run(operation_header header, operation_label const& label, op_limits const& limits,
             std::span<transfer_range const> ranges) noexcept {
        if (core.failed()) return;
        block_broken_pipes();
        fill_sizes(header, ranges);
        header.sequence = account.next(header, rank());
        if (!watch.begin({label, limits, header})) return note_stop(label);
        arm();
        try {
            move(header, ranges);
            bool const leaver_waits = account.completed(header, rank());
            watch.end();
            if (leaver_waits) wake_side_channel();
            return;  // a group that was stopped meanwhile says so at the next call
        } catch (operation_stopped const&) {
            end_stopped();
        } catch (wait_expired const& late) {
            end_late(late);
        } catch (connection_broken const& broken) {
            end_broken(broken);
        } catch (ranks_disagree const& different) {
            end_failed<peer_error>(
                {.kind = failure_kind::mismatch, .suspect = -1, .text = different.why});
        } catch (std::exception const& problem) {
            end_failed<peer_error>(
                {.kind = failure_kind::connection,
                 .suspect = rank(),
                 .text = std::string{"the operation failed: "} + problem.what()});
        }
        // Gloo's threads would spin on half a message that nobody takes
        transfer.reset();
        links.reset();
        watch.end();
    }

    // --- any thread ---

    /// Ends the group from this side; returns at once.
    void stop_from_here(failure_kind kind, std::string const& why) noexcept {
        int const awaited = watch.waiting_for();
        stop_cause cause{.local = true,
                         .failure = {.kind = kind, .reporter = rank(), .suspect = rank()}};
        cause.failure.text = why;
        cause.failure.collectives = account.collectives();
        if (!watch.stop(std::move(cause))) return;
        suspect_.store(awaited, std::memory_order_relaxed);
        to_report_.store(true, std::memory_order_release);
        wake_side_channel();
    }
    /// Records what stopped the group, for callers to come. @pre  it is stopped
    void note_stop(operation_label const& label) noexcept {
        auto const cause = watch.cause();
        if (!cause) return;
        if (cause->local) {
            record(make_failure<group_aborted>(cause->failure.text, facts(label, suspect())),
                   suspect());
        } else {
            record(heard_failure(cause->failure, rank(), label, watch.bytes_done()),
                   cause->failure.suspect);
        }
    }
    /// This side's own end of the group goes to the server before anything is closed.
    void report_what_is_left() noexcept {
        with_channel([&](auto& channel) { report_stop(channel); });
    }
    /// Another group takes the name: ends this one, and gives the server's port back.
    void be_replaced(std::string const& why) noexcept {
        stop_from_here(failure_kind::replaced, why);
        report_what_is_left();
        closing_.store(true, std::memory_order_release);
        close_server();
    }

    /// Of the thread that joins.
    void keep_server(std::shared_ptr<rendezvous_server> server) noexcept {
        std::lock_guard const lock{channel_mutex_};
        server_ = std::move(server);
    }
    /// @throws timeout, system_failure, bad_input  as rendezvous_client
    rendezvous_client& open_side_channel(endpoint const& server, deadline until) {
        auto opened = std::make_unique<rendezvous_client>(server, until, listener());
        std::lock_guard const lock{channel_mutex_};
        channel_ = std::move(opened);
        return *channel_;
    }
    void close_side_channel() noexcept {
        std::unique_ptr<rendezvous_client> closed;
        {
            std::lock_guard const lock{channel_mutex_};
            closed = std::move(channel_);
        }
        closed.reset();  // joins its thread, which may be waiting for the lock
    }
    void close_server() noexcept {
        std::shared_ptr<rendezvous_server> closed;
        std::lock_guard const lock{channel_mutex_};
        closed = std::move(server_);
    }
    /// Of the owner's thread: nobody else ends the channel.
    rendezvous_client* side_channel() const noexcept { return channel_.get(); }
    void joined(int host_rank) noexcept { host_rank_.store(host_rank, std::memory_order_release); }
    /// From now on the end of the server is no news.
    void expect_end() noexcept { closing_.store(true, std::memory_order_release); }

    communicator_core<host_runtime> core;
    gloo_watch watch;
    gloo_account account;
    std::chrono::milliseconds grace;
    std::unique_ptr<gloo_links> links;        ///< of the stream's thread once the group is formed
    std::unique_ptr<gloo_transfer> transfer;  ///< likewise
    std::atomic<std::uint64_t> completed{0};

  private:
    /// How long a failing rank waits for word of an earlier failure before it names anyone.
    static constexpr std::chrono::milliseconds answer_time{200};
    static constexpr int not_joined = -2;

    /// Threads of streams are ours: a peer that is gone must not end the process by SIGPIPE.
    static void block_broken_pipes() noexcept {
        thread_local bool const blocked = [] {
            sigset_t pipe;
            sigemptyset(&pipe);
            sigaddset(&pipe, SIGPIPE);
            return pthread_sigmask(SIG_BLOCK, &pipe, nullptr) == 0;
        }();
        static_cast<void>(blocked);
    }
    void move(operation_header const& header, std::span<transfer_range const> ranges) {
        if (core.size() == 1) return watch.add_bytes(header.bytes);
        if (auto const gone = account.missing(header, rank())) throw_departed(*gone);
        switch (header.kind) {
            case operation_kind::broadcast: return transfer->broadcast(header, ranges);
            case operation_kind::all_reduce: return transfer->all_reduce(header, ranges.front());
            case operation_kind::send: break;
        }
        if (header.root == rank()) return transfer->send(header, ranges);
        return transfer->receive(header, ranges);
    }
    [[noreturn]] void throw_departed(int gone) {
        watch.stop(departed_cause(gone));
        throw operation_stopped{};
    }
    static stop_cause departed_cause(int gone) {
        stop_cause cause{.departed = true,
                         .failure = {.kind = failure_kind::lost, .suspect = gone}};
        cause.failure.text = "rank " + std::to_string(gone) + " has left the group";
        return cause;
    }

    // --- ends of an operation ---
    failure_facts facts(operation_label const& label, int suspected) const {
        return {.where = label.where(),
                .tensor = std::string{label.tensor()},
                .rank = rank(),
                .suspect = suspected,
                .bytes_done = watch.bytes_done()};
    }
    void record(std::exception_ptr failure, int suspected) noexcept {
        if (!core.failed()) suspect_.store(suspected, std::memory_order_relaxed);
        core.record_failure(std::move(failure));
    }
    void end_stopped() noexcept {
        auto const cause = watch.cause();
        if (cause && cause->departed) tell(cause->failure);
        note_stop(watch.label());
    }
    void end_late(wait_expired const& late) noexcept {
        auto const limits = watch.running()->limits;
        std::string const span =
            late.stalled ? "no byte moved for " + std::to_string(limits.stall.count()) + " ms"
                         : std::string{"the operation's deadline passed"};
        end_failed<timeout>({.kind = failure_kind::timed_out,
                             .suspect = late.peer,
                             .text = span + ", waiting for rank " + std::to_string(late.peer)});
    }
    /// A closed connection has a reason that somebody else may be about to tell.
    void end_broken(connection_broken const& broken) noexcept {
        if (watch.await_cause(answer_time)) return end_stopped();
        end_failed<peer_error>({.kind = failure_kind::connection,
                                .suspect = broken.peer,
                                .text = "the connection to rank " + std::to_string(broken.peer) +
                                        " broke: " + broken.why});
    }
    /// Tells the group, and takes from the answer whom to suspect.
    template <class Error>
    void end_failed(group_failure failure) noexcept {
        auto const label = watch.label();
        int suspected = failure.suspect;
        tell(failure);
        if (auto const cause = watch.await_cause(answer_time); cause && !cause->local) {
            bool const about_us = cause->failure.reporter == rank();
            if (!about_us && failure.kind != failure_kind::timed_out) return note_stop(label);
            suspected = cause->failure.suspect;
        }
        watch.stop({.failure = failure});  // later operations are skipped, whatever the server says
        record(make_failure<Error>(failure.text, facts(label, suspected)), suspected);
    }
    void tell(group_failure failure) noexcept {
        auto const label = watch.label();
        failure.reporter = rank();
        failure.where = label.where();
        failure.tensor = label.tensor();
        failure.bytes_done = watch.bytes_done();
        failure.collectives = account.collectives();
        with_channel([&](auto& channel) { channel.report(failure, deadline::after(answer_time)); });
    }
    /// The side channel looks at waits while operations run, and sleeps otherwise.
    void arm() noexcept {
        if (!armed_.exchange(true, std::memory_order_acq_rel)) wake_side_channel();
    }

    // --- the side channel ---
    /// Runs it on the channel, if there is one. It must not wait for an answer: the channel's thread, which
    /// takes answers, may be waiting for this lock.
    template <class Use>
    void with_channel(Use use) noexcept {
        std::lock_guard const lock{channel_mutex_};
        if (channel_ != nullptr) use(*channel_);
    }
    void wake_side_channel() noexcept {
        with_channel([](auto& channel) { channel.wake(); });
    }
    channel_listener listener() {
        return {.failed = [this](group_failure const& failure) { hear(failure); },
                .leaving = [this](peer_leaving const& one) { account.leaves(one); },
                .departed = [this](peer_leaving const& one) { hear_departed(one.rank); },
                .lost = [this] { hear_nothing_more(); },
                .tick = [this] { return tick(); }};
    }

    // --- the side channel's thread ---
    void hear(group_failure const& failure) noexcept {
        watch.stop_behind({.failure = failure}, failure.collectives, answer_time);
    }
    void hear_departed(int gone) noexcept {
        if (!account.has_gone(gone)) return;
        auto const operation = watch.running();
        if (operation && account.missing(operation->header, rank()))
            watch.stop(departed_cause(gone));
    }
    void hear_nothing_more() noexcept {
        int const host = host_rank_.load(std::memory_order_acquire);
        if (closing_.load(std::memory_order_acquire) || host == not_joined) return;
        if (host >= 0 && account.has_gone(host))
            return hear_departed(host);  // with the server, cleanly
        group_failure lost{.kind = failure_kind::lost, .suspect = host};
        lost.text = host >= 0 ? "contact with rank " + std::to_string(host) +
                                    ", which runs the rendezvous server, was lost"
                              : std::string{"contact with the rendezvous server was lost"};
        watch.stop({.failure = std::move(lost)});
    }
    deadline tick() noexcept {
        auto next = deadline::at(deadline::clock::time_point::max());
        auto const quiet = account.take_quiet();
        auto const look = watch.examine();
        with_channel([&](auto& channel) {
            report_stop(channel);
            for (int const leaver : quiet)
                channel.report_quiet(leaver, deadline::after(answer_time));
            if (look.stuck) report_stuck(channel, *look.stuck);
            if (look.moves_again) channel.report_status({}, deadline::after(answer_time));
        });
        auto const now = deadline::clock::now();
        if (look.next != deadline::clock::time_point::max()) {
            last_busy_ = now;
            next = deadline::at(look.next);
        } else if (now - last_busy_ < std::chrono::seconds{1}) {
            next = deadline::at(now + std::chrono::milliseconds{50});
        } else {
            armed_.store(false, std::memory_order_release);
            if (watch.is_running())
                next = deadline::at(now);  // it began just now, and saw us armed
        }
        return next;
    }
    void report_stop(rendezvous_client& channel) noexcept {
        if (!to_report_.exchange(false, std::memory_order_acq_rel)) return;
        if (auto const cause = watch.cause())
            channel.report(cause->failure, deadline::after(answer_time));
    }
    static void report_stuck(rendezvous_client& channel, stuck_wait const& wait) noexcept {
        status_report report{.waiting = true,
                             .collective = wait.header.collective(),
                             .sequence = wait.header.sequence,
                             .waiting_for = wait.peer};
        report.doing = describe(wait.header);
        channel.report_status(report, deadline::after(answer_time));
    }

    mutable std::mutex channel_mutex_;
    std::unique_ptr<rendezvous_client> channel_;
    std::shared_ptr<rendezvous_server> server_;
    std::atomic<int> host_rank_{not_joined};
    std::atomic<bool> closing_{false};
    std::atomic<bool> to_report_{false};
    std::atomic<bool> armed_{false};
    std::atomic<int> suspect_{-1};
    deadline::clock::time_point last_busy_{};  // of the side channel's thread
};

}  // namespace weightcast::detail
