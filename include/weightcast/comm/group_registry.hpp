// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which groups this process is in: joining a name anew ends the group that held it, never in silence.

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <weightcast/base/log.hpp>

namespace weightcast {

/// A place in a group as messages name it.
struct group_member {
    std::string name{};         ///< of the group
    int rank = 0;               ///< ranks on threads of one process hold one name side by side
    std::string description{};  ///< who this is, for the log line: transport, size, address
};

/// The groups that this process is a member of, by name and rank. Groups of different names live side by
/// side; a second member of the same name and rank replaces the first.
/// Threads: any. `replaced` runs on the thread that joins, once at most, and never after the entry's end.
class group_registry {
    struct place {
        std::mutex mutex;  // held while `replaced` runs, so that an entry's end waits for it
        group_member member;
        std::function<void(std::string_view)> replaced;
    };

  public:
    /// Holds the name for as long as it lives. Moved from: holds nothing.
    class [[nodiscard]] entry {
      public:
        entry() noexcept = default;
        entry(entry&& other) noexcept
            : registry_{std::exchange(other.registry_, nullptr)}, place_{std::move(other.place_)} {}
        entry& operator=(entry&& other) noexcept {
            if (this == &other) return *this;
            leave();
            registry_ = std::exchange(other.registry_, nullptr);
            place_ = std::move(other.place_);
            return *this;
        }
        ~entry() { leave(); }

        /// Gives the name up; when it returns, `replaced` does not run and will not.
        void leave() noexcept {
            auto const left = std::move(place_);
            if (left == nullptr) return;
            std::exchange(registry_, nullptr)->forget(left);
            std::lock_guard const lock{left->mutex};
            left->replaced = nullptr;
        }
        bool holds() const noexcept { return place_ != nullptr; }

      private:
        friend class group_registry;
        entry(group_registry& registry, std::shared_ptr<place> held) noexcept
            : registry_{&registry}, place_{std::move(held)} {}
        group_registry* registry_ = nullptr;
        std::shared_ptr<place> place_;
    };

    /// That of this process.
    static group_registry& process() {
        static group_registry* const registry = new group_registry;  // outlives every communicator
        return *registry;
    }

    /// Takes the name. A member that holds it is told to abort: its `replaced(why)` runs before this
    /// returns (and must not end its own entry), and one log line names both.
    entry enter(group_member member, std::function<void(std::string_view why)> replaced) {
        auto fresh = std::make_shared<place>();
        fresh->member = std::move(member);
        fresh->replaced = std::move(replaced);
        std::shared_ptr<place> old;
        {
            std::lock_guard const lock{mutex_};
            old = std::exchange(place_of(fresh->member), fresh);
        }
        if (old != nullptr) replace(*old, fresh->member);
        return entry{*this, std::move(fresh)};
    }

    /// Number of names held.
    std::size_t size() const {
        std::lock_guard const lock{mutex_};
        return places_.size();
    }

  private:
    static void replace(place& old, group_member const& by) {
        std::string const why = "group '" + by.name + "', rank " + std::to_string(by.rank) + ": " +
                                old.member.description + " is aborted and replaced by " +
                                by.description;
        std::lock_guard const lock{old.mutex};
        if (!old.replaced) return;  // it left on its own meanwhile
        log_line(why);
        old.replaced(why);
        old.replaced = nullptr;
    }
    // Under the lock. Null: the name is new.
    std::shared_ptr<place>& place_of(group_member const& member) {
        for (auto& one : places_) {
            if (one->member.rank == member.rank && one->member.name == member.name) return one;
        }
        return places_.emplace_back();
    }
    void forget(std::shared_ptr<place> const& held) noexcept {
        std::lock_guard const lock{mutex_};
        for (auto& one : places_) {
            if (one != held) continue;
            one = std::move(places_.back());
            places_.pop_back();
            return;
        }
    }

    mutable std::mutex mutex_;
    std::vector<std::shared_ptr<place>> places_;  // a process is in a handful of groups
};

}  // namespace weightcast
