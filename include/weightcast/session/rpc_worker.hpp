// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/session is host-only: include it from a .cpp file"
#endif
// The lifecycle for requests that come from outside: any thread, any order, every mistake a typed error.

#include <algorithm>
#include <chrono>
#include <concepts>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <weightcast/base/deadline.hpp>
#include <weightcast/base/error.hpp>
#include <weightcast/base/log.hpp>
#include <weightcast/engine/concepts.hpp>
#include <weightcast/session/update_result.hpp>
#include <weightcast/session/weight_worker.hpp>

namespace weightcast {

/// Times of a worker that is driven by requests.
struct rpc_settings {
    /// An open update that has seen no request for so long is rolled back.
    std::chrono::milliseconds open_update{std::chrono::seconds{300}};
    /// How long `init` waits for the request that it interrupts.
    std::chrono::milliseconds interrupt{std::chrono::seconds{10}};
};

/// What a worker is at; a copy, old as soon as it is read.
template <class Target>
struct rpc_status {
    std::string running{};  ///< the request that runs now; empty: none
    bool open = false;      ///< an update is open
    Target target{};        ///< of the open update, else of the last one
    std::string failure{};  ///< why the last update was rolled back; empty: it was not
    std::optional<update_report> last{};  ///< of the last update that finished
};

/// A weight_worker behind requests. Any thread may call any member at any time; requests are served one at a
/// time, and one that comes while another runs is refused with lifecycle_error, not queued: its sender knows
/// best whether it still wants it. `init` is the exception: it interrupts what runs, where the engine can.
/// A request that fails in an open update rolls it back and closes it: then only `start` goes on. An open update
/// without requests is rolled back at its deadline.
template <AnyTransferEngine E>
    requires std::copyable<typename E::target_type> &&
             std::equality_comparable<typename E::target_type> &&
             std::copy_constructible<typename E::update_type>
class rpc_worker {
  public:
    using engine_type = E;
    using init_type = typename E::init_type;
    using target_type = typename E::target_type;
    using update_type = typename E::update_type;
    using status_type = rpc_status<target_type>;

    explicit rpc_worker(E engine, rpc_settings settings = {})
        : worker_{std::move(engine)}, settings_{settings} {
        watcher_ = std::jthread{[this](std::stop_token const& stop) { watch(stop); }};
    }
    rpc_worker(rpc_worker const&) = delete;
    rpc_worker& operator=(rpc_worker const&) = delete;
    /// Rolls back an open update. @pre  no request runs
    ~rpc_worker() = default;

    /// Joins a group anew. An open update is rolled back, which one line tells; remembered metadata is dropped.
    /// @throws lifecycle_error  when what runs cannot be, or was not, interrupted; else what the engine throws
    void init(init_type const& init) {
        request const now{*this, "init", may_interrupt};
        if (update_) close_and_tell("a new init replaced its group");
        remembered_.clear();
        worker_.init(init);
    }

    /// Opens an update of that target.
    /// @throws lifecycle_error  while another is open (that one stays as it is), or another request runs
    /// @throws what the engine's start throws: nothing is open
    void start(target_type const& target = {}) {
        request const now{*this, "start"};
        if (update_) {
            throw lifecycle_error{"start: an update" + of(status().target) +
                                  " is already open; finish it or roll it back first"};
        }
        update_.emplace(worker_.start(target));
        received_.reset();
        note([&](status_type& s) {
            s = {.running = {}, .open = true, .target = target, .failure = {}, .last = s.last};
        });
    }

    /// Takes one update's payload.
    /// @throws lifecycle_error  without an open update, while another request runs, or the engine's own for a
    ///                          second announcement in one update: an open update stays open
    /// @throws whatever else the engine's receive throws: the update is rolled back and closed
    void receive(update_type const& update) {
        request const now{*this, "receive"};
        receive_now("receive", update);
    }
    /// The same with the metadata of the last update of this target that finished since init.
    /// @throws lifecycle_error  when there is none: the update stays open; else as above
    void receive() {
        request const now{*this, "receive"};
        require_open("receive");
        auto const target = status().target;
        auto const found = std::ranges::find(remembered_, target, &remembered::target);
        if (found == remembered_.end()) {
            throw lifecycle_error{"receive: 'as last time', but no update" + of(target) +
                                  " has finished since init: send its metadata"};
        }
        receive_now("receive", update_type{found->update});
    }
    /// Waits for what the trainers announce, and takes it. @throws as receive, and what the engine's next throws
    void receive_next()
        requires has_announcements<E>
    {
        request const now{*this, "receive_next"};
        require_open("receive_next");
        receive_now("receive_next", guarded([&] { return worker_.next(); }));
    }

    /// Asks all ranks and publishes. @throws lifecycle_error  without an open update, or while another request runs
    /// @throws refused_update, timeout, peer_error  the update is rolled back and closed; nothing was published
    update_report finish() {
        request const now{*this, "finish"};
        require_open("finish");
        auto report = guarded([&] { return std::move(*update_).finish(); });
        update_.reset();
        if (received_) remember(status().target, *std::move(received_));
        received_.reset();
        note([&](status_type& s) {
            s.open = false;
            s.last = report;
        });
        return report;
    }

    /// Rolls back the open update; does nothing when none is open. @throws lifecycle_error  while a request runs
    void roll_back() {
        request const now{*this, "roll_back"};
        if (update_) close("its rollback was asked for");
    }

    /// Waits for the next announced update, receives and finishes it, as one request.
    /// @throws lifecycle_error  while an update is open or a request runs; else as weight_worker::serve_one
    update_report serve_one()
        requires has_announcements<E>
    {
        request const now{*this, "serve_one"};
        auto report = worker_.serve_one();
        note([&](status_type& s) {
            s.failure.clear();
            s.last = report;
        });
        return report;
    }

    /// Ends the request that runs: it throws, and the group has to be formed anew. Nothing runs: does nothing.
    /// An `init` that is still joining is in no group yet: it ends at its own connect deadline.
    void cancel() noexcept
        requires has_interrupt<E>
    {
        std::lock_guard const lock{mutex_};
        if (running_ != nullptr) worker_.engine().interrupt();
    }
    /// Rolls back an open update and leaves the group. @throws lifecycle_error  while a request runs
    void shutdown() {
        request const now{*this, "shutdown"};
        if (update_) close_and_tell("the worker left its group");
        worker_.engine().shutdown();
    }

    /// Never waits for a request.
    status_type status() const {
        std::lock_guard const lock{mutex_};
        auto copy = status_;
        if (running_ != nullptr) copy.running = running_;
        return copy;
    }
    /// The engine. Only while no request runs.
    E& engine() noexcept { return worker_.engine(); }

  private:
    struct remembered {
        target_type target;
        update_type update;
    };
    static constexpr bool may_interrupt = true;
    static constexpr char const* expiry = "rollback at the deadline";

    /// The right to touch the worker: of one request at a time.
    class request {
      public:
        request(rpc_worker& worker, char const* name, bool interrupts = false) : worker_{worker} {
            std::unique_lock lock{worker.mutex_};
            // the watcher's rollback is local and short
            worker.changed_.wait(lock, [&] { return worker.running_ != expiry; });
            if (worker.running_ != nullptr && interrupts) worker.interrupt_running(lock, name);
            if (worker.running_ != nullptr) {
                throw lifecycle_error{std::string{name} + ": another request (" + worker.running_ +
                                      ") is running; requests are served one at a time"};
            }
            worker.running_ = name;
        }
        request(request const&) = delete;
        request& operator=(request const&) = delete;
        ~request() {
            std::lock_guard const lock{worker_.mutex_};
            worker_.running_ = nullptr;
            worker_.touched_ = std::chrono::steady_clock::now();
            worker_.changed_.notify_all();
        }

      private:
        rpc_worker& worker_;
    };

    // An init that is under way is not interrupted by another one.
    void interrupt_running(std::unique_lock<std::mutex>& lock, char const* name) {
        if constexpr (has_interrupt<E>) {
            if (std::string_view{running_} == name) return;
            worker_.engine().interrupt();
            changed_.wait_until(lock, deadline::after(settings_.interrupt).point(),
                                [&] { return running_ == nullptr; });
        }
    }

    void require_open(char const* what) const {
        if (update_) return;
        auto const s = status();
        if (!s.failure.empty()) {
            throw lifecycle_error{std::string{what} + ": the update" + of(s.target) +
                                  " was rolled back: " + s.failure + "; start a new one"};
        }
        throw lifecycle_error{std::string{what} +
                              (s.last ? ": the update is finished already; start a new one"
                                      : ": no update is open; start one first")};
    }
    void receive_now(char const* what, update_type const& update) {
        require_open(what);
        std::optional<update_type> kept{update};
        std::exception_ptr out_of_turn;  // the update is as it was
        guarded([&] {
            try {
                update_->receive(update);
            } catch (lifecycle_error const&) {
                out_of_turn = std::current_exception();
            }
        });
        if (out_of_turn) std::rethrow_exception(out_of_turn);
        received_.swap(kept);
    }
    /// Runs a step of the open update; what it throws rolls the update back and closes it.
    template <class F>
    auto guarded(F const& step) {
        try {
            return step();
        } catch (std::exception const& e) {
            close(e.what());
            throw;
        } catch (...) {
            close("an exception of an unknown type");
            throw;
        }
    }
    void close(std::string const& why) {
        update_.reset();
        received_.reset();
        note([&](status_type& s) {
            s.open = false;
            s.failure = why;
        });
    }
    // For rollbacks that whoever opened the update does not hear of.
    void close_and_tell(std::string const& why) {
        close(why);
        log_line("the open update" + of(status().target) + " was rolled back: " + why);
    }
    void remember(target_type const& target, update_type update) {
        auto const found = std::ranges::find(remembered_, target, &remembered::target);
        if (found != remembered_.end()) remembered_.erase(found);
        remembered_.push_back({target, std::move(update)});
    }
    template <class F>
    void note(F const& change) {
        std::lock_guard const lock{mutex_};
        change(status_);
    }
    static std::string of(target_type const& target) {
        if constexpr (requires {
                          { to_string(target) } -> std::convertible_to<std::string>;
                      }) {
            return " of '" + std::string{to_string(target)} + "'";
        } else {
            return {};
        }
    }

    // --- the watcher: rolls back an update that nobody asks about ---
    void watch(std::stop_token const& stop) {
        std::unique_lock lock{mutex_};
        while (!stop.stop_requested()) {
            auto const idle = [&] { return status_.open && running_ == nullptr; };
            if (!changed_.wait(lock, stop, idle)) return;
            auto const seen = touched_;
            auto const due = deadline::after(settings_.open_update);
            auto const touched = [&] { return !idle() || touched_ != seen; };
            if (!changed_.wait_until(lock, stop, due.point(), touched) && due.expired())
                expire(lock);
        }
    }
    void expire(std::unique_lock<std::mutex>& lock) {
        running_ = expiry;
        lock.unlock();
        try {
            close_and_tell("no request came within " +
                           std::to_string(settings_.open_update.count()) + " ms");
        } catch (...) {  // out of memory for the words: it is rolled back all the same
        }
        lock.lock();
        running_ = nullptr;
        changed_.notify_all();
    }

    weight_worker<E> worker_;
    rpc_settings settings_;
    std::optional<weight_update<E>> update_;  // of the request that runs
    std::optional<update_type> received_;     // of the open update
    std::vector<remembered> remembered_;
    mutable std::mutex mutex_;  // guards what follows
    std::condition_variable_any changed_;
    char const* running_ = nullptr;
    std::chrono::steady_clock::time_point touched_{};
    status_type status_{};
    std::jthread watcher_;  // last: ends before what it uses
};

}  // namespace weightcast
