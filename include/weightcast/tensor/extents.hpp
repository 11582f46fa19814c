// SPDX-License-Identifier: Apache-2.0
#pragma once
// Shape or strides of a tensor, held in place: views are made on the data path and must not
// allocate.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <ostream>
#include <ranges>
#include <span>
#include <string>

#include <weightcast/base/byte_count.hpp>
#include <weightcast/base/error.hpp>

namespace weightcast {

/// Up to `max_rank` signed 64-bit numbers, one a dimension, outermost first. Empty for a 0-dim
/// scalar.
class extents {
  public:
    static constexpr std::size_t max_rank = 8;

    constexpr extents() noexcept = default;
    /// @throws bad_input  for more than max_rank dimensions
    constexpr extents(std::initializer_list<std::int64_t> values) {
        for (auto const v : values) push_back(v);
    }
    template <std::ranges::input_range R>
        requires(!std::same_as<std::remove_cvref_t<R>, extents> &&
                 std::convertible_to<std::ranges::range_value_t<R>, std::int64_t>)
    constexpr explicit extents(R const& values) {
        for (auto const v : values) push_back(static_cast<std::int64_t>(v));
    }

    constexpr std::size_t size() const noexcept { return size_; }
    constexpr bool empty() const noexcept { return size_ == 0; }
    constexpr std::int64_t const* begin() const noexcept { return values_.data(); }
    constexpr std::int64_t const* end() const noexcept { return values_.data() + size_; }
    constexpr std::int64_t operator[](std::size_t i) const noexcept { return values_[i]; }
    constexpr std::int64_t& operator[](std::size_t i) noexcept { return values_[i]; }
    /// @throws bad_input  for more than max_rank dimensions
    constexpr void push_back(std::int64_t value) {
        if (size_ == max_rank) throw bad_input{"a tensor has more than 8 dimensions"};
        values_[size_++] = value;
    }

    friend constexpr bool operator==(extents const& a, extents const& b) noexcept {
        return std::equal(a.begin(), a.end(), b.begin(), b.end());
    }

  private:
    std::array<std::int64_t, max_rank> values_{};
    std::size_t size_ = 0;
};

/// Number of elements: the product, 1 for a scalar.
/// @throws bad_input  for a negative extent, or a product over 2^63 - 1
constexpr std::uint64_t element_count(extents const& shape) {
    std::uint64_t count = 1;
    bool zero = false;
    for (auto const e : shape) {
        if (e < 0) throw bad_input{"a tensor's shape has a negative extent"};
        if (e == 0)
            zero = true;
        else
            count = checked_multiply(count, static_cast<std::uint64_t>(e));
    }
    // An empty shape is held to the same bound, so that strides of any accepted shape fit too.
    if (count > static_cast<std::uint64_t>(INT64_MAX)) {
        throw bad_input{"a tensor's element count does not fit in 63 bits"};
    }
    return zero ? 0 : count;
}

/// Strides in elements of a dense row-major tensor of that shape.
/// @throws bad_input  for a shape that is none
constexpr extents contiguous_strides(extents const& shape) {
    static_cast<void>(element_count(shape));  // refuses what would overflow below
    extents strides = shape;
    std::int64_t step = 1;
    for (std::size_t i = shape.size(); i-- > 0;) {
        strides[i] = step;
        step *= std::max<std::int64_t>(shape[i], 1);
    }
    return strides;
}

/// "[2, 3]", "[]" for a scalar.
inline std::string to_string(extents const& values) {
    std::string text = "[";
    for (auto const v : values) text += (text.size() > 1 ? ", " : "") + std::to_string(v);
    return text + "]";
}

inline std::ostream& operator<<(std::ostream& out, extents const& e) { return out << to_string(e); }

}  // namespace weightcast
