// SPDX-License-Identifier: Apache-2.0
#pragma once
// A stream that someone owns. The handle that is copied is R::stream_ref.

#include <optional>
#include <utility>

#include <weightcast/base/deadline.hpp>
#include <weightcast/base/expects.hpp>
#include <weightcast/runtime/concepts.hpp>

namespace weightcast {

/// Owns a stream of R: moves, is not copied, destroys it at its end without waiting for what is queued.
/// Moved from or released it is empty: `empty()` is true, `ref()` throws, destruction does nothing.
template <DeviceRuntime R>
class [[nodiscard]] stream {
  public:
    using runtime = R;
    using ref_type = typename R::stream_ref;

    /// A new stream of that device. @throws bad_argument  for a device that R does not have
    explicit stream(device where) : ref_{R::create_stream(where)} {}
    stream(int) = delete;
    stream(stream&& other) noexcept : ref_{std::exchange(other.ref_, std::nullopt)} {}
    stream& operator=(stream&& other) noexcept {
        if (this != &other) {
            reset();
            ref_ = std::exchange(other.ref_, std::nullopt);
        }
        return *this;
    }
    ~stream() { reset(); }

    /// Takes over a stream that `release` or foreign code gave away.
    static stream from_native_handle(typename ref_type::native_type handle) {
        return stream{adopted{ref_type::from_native_handle(handle)}};
    }
    /// @throws contract_violation  when empty
    typename ref_type::native_type native_handle() const { return ref().native_handle(); }
    /// Gives the stream away: the caller destroys it. @throws contract_violation  when empty
    ref_type release() {
        auto const given = ref();
        ref_.reset();
        return given;
    }

    bool empty() const noexcept { return !ref_.has_value(); }
    /// @throws contract_violation  when empty
    ref_type ref() const {
        WEIGHTCAST_EXPECTS(ref_.has_value(), "this stream was moved from or released");
        return *ref_;
    }
    operator ref_type() const { return ref(); }
    device where() const { return R::device_of(ref()); }
    /// All that was put on it is done.
    bool query() const { return R::query(ref()); }

  private:
    struct adopted {
        ref_type ref;
    };
    explicit stream(adopted from) : ref_{from.ref} {}
    void reset() noexcept {
        if (ref_) R::destroy_stream(*std::exchange(ref_, std::nullopt));
    }
    std::optional<ref_type> ref_;
};

}  // namespace weightcast
