// SPDX-License-Identifier: Apache-2.0
// An engine that writes down what a worker asks of it, and fails where a test wants it to.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <weightcast/base/deadline.hpp>
#include <weightcast/base/error.hpp>
#include <weightcast/model/target_id.hpp>

namespace weightcast::test {

/// What a recording engine is asked, and where it fails; shared, as the worker takes the engine itself.
class record {
  public:
    /// The calls so far, as one line.
    std::string calls() const {
        std::lock_guard const lock{mutex_};
        std::string line;
        for (auto const& c : calls_) line += (line.empty() ? "" : " ") + c;
        return line;
    }
    void forget() {
        std::lock_guard const lock{mutex_};
        calls_.clear();
    }
    /// The next call of that name throws std::runtime_error{"NAME failed"}.
    void fail_in(std::string name) {
        std::lock_guard const lock{mutex_};
        failing_ = std::move(name);
    }
    /// The same with lifecycle_error, as an engine that is asked out of turn.
    void refuse_in(std::string name) {
        std::lock_guard const lock{mutex_};
        out_of_turn_ = std::move(name);
    }
    /// Calls of that name block until `release`, `interrupt` or 60 s have passed.
    void block_in(std::string name) {
        std::lock_guard const lock{mutex_};
        blocking_ = std::move(name);
    }
    void release() {
        std::lock_guard const lock{mutex_};
        blocking_.reset();
        changed_.notify_all();
    }
    void interrupt() noexcept {
        std::lock_guard const lock{mutex_};
        interrupted_ = blocked_;
        changed_.notify_all();
    }
    /// Returns when a call blocks; false after 60 s.
    bool wait_until_blocked() {
        std::unique_lock lock{mutex_};
        return changed_.wait_for(lock, std::chrono::seconds{60}, [&] { return blocked_; });
    }
    /// Returns when a call of that name was made; false after 60 s.
    bool wait_for_call(std::string const& name) {
        std::unique_lock lock{mutex_};
        return changed_.wait_for(lock, std::chrono::seconds{60}, [&] {
            for (auto const& c : calls_) {
                if (c == name) return true;
            }
            return false;
        });
    }

    /// @throws std::runtime_error  where the test wants it, group_aborted  when interrupted
    void call(std::string const& name, std::string const& detail = {}) {
        std::unique_lock lock{mutex_};
        calls_.push_back(detail.empty() ? name : name + "(" + detail + ")");
        changed_.notify_all();
        if (blocking_ == name) block(lock);
        if (out_of_turn_ == name) {
            out_of_turn_.reset();
            throw lifecycle_error{name + " is out of turn"};
        }
        if (failing_ != name) return;
        failing_.reset();
        throw std::runtime_error{name + " failed"};
    }

  private:
    void block(std::unique_lock<std::mutex>& lock) {
        blocked_ = true;
        changed_.notify_all();
        changed_.wait_for(lock, std::chrono::seconds{60},
                          [&] { return interrupted_ || !blocking_; });
        blocked_ = false;
        if (!std::exchange(interrupted_, false)) return;
        throw group_aborted{"interrupted"};
    }
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<std::string> calls_;
    std::optional<std::string> failing_;
    std::optional<std::string> out_of_turn_;
    std::optional<std::string> blocking_;
    bool blocked_ = false;
    bool interrupted_ = false;
};

/// An update of a recording engine.
struct numbered_update {
    int number = 0;
    target_id for_target{};
    target_id const& target() const noexcept { return for_target; }
};

/// The lifecycle and nothing else.
class bare_recording_engine {
  public:
    using init_type = std::string;
    using update_type = numbered_update;
    using target_type = target_id;

    explicit bare_recording_engine(std::shared_ptr<record> notes) : notes_{std::move(notes)} {}

    void init(std::string const& name) { notes_->call("init", name); }
    void start(target_id const& target) { notes_->call("start", to_string(target)); }
    void receive(numbered_update const& update) {
        notes_->call("receive", std::to_string(update.number));
    }
    void prepare() { notes_->call("prepare"); }
    void commit() noexcept { notes_->call("commit"); }
    void rollback() noexcept { notes_->call("rollback"); }
    void shutdown() { notes_->call("shutdown"); }

  protected:
    std::shared_ptr<record> notes_;
};

/// With announcements, refusals and interruption: its trainers announce 1, 2, 3, ...
class recording_engine : public bare_recording_engine {
  public:
    using bare_recording_engine::bare_recording_engine;
    numbered_update next() {
        notes_->call("next");
        return {.number = ++announced_, .for_target = next_target};
    }
    void refuse(numbered_update const& update, std::string const& reason) {
        notes_->call("refuse", std::to_string(update.number));
        throw refused_update{"refused by rank 0: " + reason,
                             {.where = phase::preflight, .suspect = 0}};
    }
    void interrupt() noexcept { notes_->interrupt(); }
    target_id next_target{};

  private:
    int announced_ = 0;
};

}  // namespace weightcast::test
