// SPDX-License-Identifier: Apache-2.0
#pragma once
// An event that someone owns. The handle that is copied is R::event_ref.

#include <optional>
#include <utility>

#include <weightcast/base/deadline.hpp>
#include <weightcast/base/expects.hpp>
#include <weightcast/runtime/concepts.hpp>

namespace weightcast {

/// Owns an event of R: moves, is not copied. Destroying it is harmless while streams have yet to reach it.
/// Moved from or released it is empty: `empty()` is true, `ref()` throws, destruction does nothing.
template <DeviceRuntime R>
class [[nodiscard]] event {
  public:
    using runtime = R;
    using ref_type = typename R::event_ref;
    using stream_ref = typename R::stream_ref;

    /// An event that was never recorded: nothing to wait for.
    event() : ref_{R::create_event()} {}
    /// An event recorded on that stream.
    explicit event(stream_ref on) : event{} { record(on); }
    event(event&& other) noexcept : ref_{std::exchange(other.ref_, std::nullopt)} {}
    event& operator=(event&& other) noexcept {
        if (this != &other) {
            reset();
            ref_ = std::exchange(other.ref_, std::nullopt);
        }
        return *this;
    }
    ~event() { reset(); }

    /// Takes over an event that `release` or foreign code gave away.
    static event from_native_handle(typename ref_type::native_type handle) {
        return event{adopted{ref_type::from_native_handle(handle)}};
    }
    /// @throws contract_violation  when empty
    typename ref_type::native_type native_handle() const { return ref().native_handle(); }
    /// Gives the event away: the caller destroys it. @throws contract_violation  when empty
    ref_type release() {
        auto const given = ref();
        ref_.reset();
        return given;
    }

    bool empty() const noexcept { return !ref_.has_value(); }
    /// @throws contract_violation  when empty
    ref_type ref() const {
        WEIGHTCAST_EXPECTS(ref_.has_value(), "this event was moved from or released");
        return *ref_;
    }
    operator ref_type() const { return ref(); }

    /// Stands for what the stream holds now; an earlier record is forgotten.
    void record(stream_ref on) const { R::record(ref(), on); }
    /// Its last record is reached, or there was none.
    bool query() const { return R::query(ref()); }
    /// Waits for that; false when the deadline passes first.
    bool wait(deadline until) const { return R::wait(ref(), until); }

  private:
    struct adopted {
        ref_type ref;
    };
    explicit event(adopted from) : ref_{from.ref} {}
    void reset() noexcept {
        if (ref_) R::destroy_event(*std::exchange(ref_, std::nullopt));
    }
    std::optional<ref_type> ref_;
};

}  // namespace weightcast
