// SPDX-License-Identifier: Apache-2.0
#pragma once
// The keys and values of a rendezvous server, bounded in number and bytes. No sockets here: one thread, pure state.

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <weightcast/base/deadline.hpp>
#include <weightcast/base/error.hpp>

namespace weightcast::detail {

/// Bounds of a store.
struct store_limits {
    std::size_t keys = 1U << 20U;
    std::size_t bytes = 256U << 20U;  ///< keys and values together
};

/// Keys, values and those who wait for keys.
class key_store {
  public:
    /// Somebody who waits until keys exist.
    struct waiter {
        std::uint64_t connection = 0;
        std::uint32_t request = 0;
        std::vector<std::string> missing{};
        deadline until = deadline::at(deadline::clock::time_point::max());
    };

    explicit key_store(store_limits limits = {}) noexcept : limits_{limits} {}

    /// @throws bad_argument  when the store is full; nothing was changed
    void set(std::string const& key, std::string value) {
        auto const found = values_.find(key);
        std::size_t const before = found == values_.end() ? 0 : key.size() + found->second.size();
        std::size_t const after = bytes_ - before + key.size() + value.size();
        if (after > limits_.bytes || (before == 0 && values_.size() >= limits_.keys)) {
            throw bad_argument{"the rendezvous store is full: " + std::to_string(values_.size()) +
                               " keys, " + std::to_string(bytes_) + " bytes"};
        }
        bytes_ = after;
        values_[key] = std::move(value);
    }
    std::optional<std::string> get(std::string const& key) const {
        auto const found = values_.find(key);
        if (found == values_.end()) return std::nullopt;
        return found->second;
    }
    bool has(std::string const& key) const { return values_.contains(key); }
    bool erase(std::string const& key) {
        auto const found = values_.find(key);
        if (found == values_.end()) return false;
        bytes_ -= key.size() + found->second.size();
        values_.erase(found);
        return true;
    }
    void erase_prefix(std::string const& prefix) {
        auto at = values_.lower_bound(prefix);
        while (at != values_.end() && at->first.starts_with(prefix)) {
            bytes_ -= at->first.size() + at->second.size();
            at = values_.erase(at);
        }
    }
    /// The key's number plus `delta`; a key that is missing counts as 0.
    /// @throws bad_argument  for a value that is no number, or a sum that does not fit
    std::int64_t add(std::string const& key, std::int64_t delta) {
        std::int64_t number = 0;
        if (auto const found = values_.find(key); found != values_.end()) {
            auto const& text = found->second;
            auto const [end, code] =
                std::from_chars(text.data(), text.data() + text.size(), number);
            if (code != std::errc{} || end != text.data() + text.size()) {
                throw bad_argument{"add: the value of '" + key + "' is no number"};
            }
        }
        if (__builtin_add_overflow(number, delta, &number)) {
            throw bad_argument{"add: the value of '" + key + "' would not fit in 64 bits"};
        }
        set(key, std::to_string(number));
        return number;
    }
    std::size_t keys() const noexcept { return values_.size(); }
    std::size_t bytes() const noexcept { return bytes_; }

    /// True when all keys exist; else the waiter is kept.
    bool wait(waiter who) {
        std::erase_if(who.missing, [&](std::string const& key) { return has(key); });
        if (who.missing.empty()) return true;
        waiters_.push_back(std::move(who));
        return false;
    }
    /// Those whose last key this was.
    std::vector<waiter> arrived(std::string const& key) {
        return take_if([&](waiter& one) {
            std::erase(one.missing, key);
            return one.missing.empty();
        });
    }
    /// Those whose time is over.
    std::vector<waiter> expired(deadline::clock::time_point now) {
        return take_if([&](waiter const& one) { return one.until.point() <= now; });
    }
    void forget(std::uint64_t connection) {
        std::erase_if(waiters_, [&](waiter const& one) { return one.connection == connection; });
    }
    std::size_t waiting(std::uint64_t connection) const {
        return static_cast<std::size_t>(
            std::ranges::count(waiters_, connection, &waiter::connection));
    }
    deadline next_deadline() const noexcept {
        auto next = deadline::at(deadline::clock::time_point::max());
        for (auto const& one : waiters_) next = earlier(next, one.until);
        return next;
    }

  private:
    template <class Done>
    std::vector<waiter> take_if(Done done) {
        std::vector<waiter> taken;
        std::vector<waiter> kept;
        for (auto& one : waiters_) (done(one) ? taken : kept).push_back(std::move(one));
        waiters_ = std::move(kept);
        return taken;
    }

    store_limits limits_;
    std::map<std::string, std::string> values_;
    std::vector<waiter> waiters_;
    std::size_t bytes_ = 0;
};

}  // namespace weightcast::detail
