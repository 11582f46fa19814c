// SPDX-License-Identifier: Apache-2.0
#pragma once
// Every wait in the library ends: a deadline is a point of the steady clock, made once and passed down.

#include <algorithm>
#include <chrono>
#include <compare>

namespace weightcast {

/// A point in time after which a wait gives up.
class deadline {
  public:
    using clock = std::chrono::steady_clock;

    /// That long from now. Spans too long for the clock end at the clock's last point; what is not
    /// positive (not a number too) has expired already.
    template <class Rep, class Period>
    static deadline after(std::chrono::duration<Rep, Period> span) noexcept {
        auto const now = clock::now();
        using seconds = std::chrono::duration<double>;
        if (!(seconds{span} > seconds::zero())) return deadline{now};
        if (seconds{span} >= seconds{clock::time_point::max() - now}) {
            return deadline{clock::time_point::max()};
        }
        return deadline{now + std::chrono::duration_cast<clock::duration>(span)};
    }
    static constexpr deadline at(clock::time_point point) noexcept { return deadline{point}; }

    constexpr clock::time_point point() const noexcept { return point_; }
    bool expired() const noexcept { return clock::now() >= point_; }
    /// Time left, never negative.
    clock::duration remaining() const noexcept {
        auto const now = clock::now();
        return now >= point_ ? clock::duration::zero() : point_ - now;
    }
    /// Whole milliseconds left, rounded up and cut to what poll(2) takes.
    int remaining_ms() const noexcept {
        auto const left = std::chrono::ceil<std::chrono::milliseconds>(remaining()).count();
        return static_cast<int>(std::min<long long>(left, 1'000'000'000));
    }
    /// The earlier of two.
    friend constexpr deadline earlier(deadline a, deadline b) noexcept {
        return a.point_ < b.point_ ? a : b;
    }
    friend constexpr bool operator==(deadline, deadline) = default;
    friend constexpr auto operator<=>(deadline, deadline) = default;

  private:
    constexpr explicit deadline(clock::time_point point) noexcept : point_{point} {}
    clock::time_point point_;
};

}  // namespace weightcast
