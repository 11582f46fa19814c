// SPDX-License-Identifier: Apache-2.0
#pragma once
// Messages as bytes, little-endian, read back with every length checked before it is believed.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <weightcast/base/error.hpp>

namespace weightcast::detail {

/// Appends numbers and texts to a message.
class message_writer {
  public:
    template <std::integral T>
    message_writer& number(T value) {
        auto bits = static_cast<std::make_unsigned_t<T>>(value);
        for (std::size_t i = 0; i < sizeof(T); ++i) {
            bytes_.push_back(static_cast<char>(static_cast<unsigned char>(bits & 0xFFU)));
            if constexpr (sizeof(T) > 1) bits = static_cast<decltype(bits)>(bits >> 8U);
        }
        return *this;
    }
    message_writer& text(std::string_view value) {
        number(static_cast<std::uint32_t>(value.size()));
        bytes_.append(value);
        return *this;
    }
    std::string const& bytes() const& noexcept { return bytes_; }
    std::string bytes() && noexcept { return std::move(bytes_); }

  private:
    std::string bytes_;
};

/// Takes them back. @throws bad_input  for a message that is too short, too long or holds a text that is too long
class message_reader {
  public:
    explicit message_reader(std::string_view bytes) noexcept : rest_{bytes} {}

    template <std::integral T>
    T number() {
        using bits_type = std::make_unsigned_t<T>;
        auto const raw = take(sizeof(T));
        std::uint64_t bits = 0;
        for (std::size_t i = sizeof(T); i-- > 0;) {
            bits = (bits << 8U) | static_cast<unsigned char>(raw[i]);
        }
        return static_cast<T>(static_cast<bits_type>(bits));
    }
    /// A number below `end`.
    template <std::integral T>
    T number_below(T end, char const* what) {
        auto const value = number<T>();
        if (value >= end || value < T{}) {
            throw bad_input{std::string{"a message has "} + what + " " + std::to_string(value) +
                            ", which is not below " + std::to_string(end)};
        }
        return value;
    }
    std::string text(std::size_t longest) {
        auto const length = number<std::uint32_t>();
        if (length > longest) {
            throw bad_input{"a message has a text of " + std::to_string(length) +
                            " bytes; expected at most " + std::to_string(longest)};
        }
        return std::string{take(length)};
    }
    void expect_end() const {
        if (!rest_.empty()) {
            throw bad_input{"a message has " + std::to_string(rest_.size()) + " bytes too many"};
        }
    }

  private:
    std::string_view take(std::size_t bytes) {
        if (bytes > rest_.size()) throw bad_input{"a message ends too early"};
        auto const taken = rest_.substr(0, bytes);
        rest_.remove_prefix(bytes);
        return taken;
    }
    std::string_view rest_;
};

}  // namespace weightcast::detail
