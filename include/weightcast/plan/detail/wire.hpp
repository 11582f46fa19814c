// SPDX-License-Identifier: Apache-2.0
#pragma once
// Little-endian fields of messages, every length checked against what is left before it is believed.

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <weightcast/base/error.hpp>

namespace weightcast::detail {

static_assert(std::endian::native == std::endian::little, "messages are little-endian");

class wire_writer {
  public:
    template <std::integral I>
    void put(I value) {
        auto const* bytes = reinterpret_cast<std::byte const*>(&value);
        bytes_.insert(bytes_.end(), bytes, bytes + sizeof(I));
    }
    void put_text(std::string_view text) {
        put(static_cast<std::uint32_t>(text.size()));
        auto const* bytes = reinterpret_cast<std::byte const*>(text.data());
        bytes_.insert(bytes_.end(), bytes, bytes + text.size());
    }
    std::vector<std::byte> take() && { return std::move(bytes_); }

  private:
    std::vector<std::byte> bytes_;
};

class wire_reader {
  public:
    explicit wire_reader(std::span<std::byte const> bytes) : left_{bytes} {}
    /// @throws bad_input  when the message is cut short
    template <std::integral I>
    I take(char const* field) {
        need(sizeof(I), field);
        I value{};
        std::memcpy(&value, left_.data(), sizeof(I));
        left_ = left_.subspan(sizeof(I));
        return value;
    }
    std::string take_text(char const* field) {
        auto const size = take<std::uint32_t>(field);
        need(size, field);
        std::string text(reinterpret_cast<char const*>(left_.data()), size);
        left_ = left_.subspan(size);
        return text;
    }
    /// A count of items that take at least `item_bytes` each: believed only when they can be there.
    std::size_t take_count(std::size_t item_bytes, char const* field) {
        auto const count = take<std::uint32_t>(field);
        if (count > left_.size() / item_bytes) refuse(field, "announces more items than it holds");
        return count;
    }
    bool empty() const noexcept { return left_.empty(); }
    [[noreturn]] static void refuse(char const* field, char const* why) {
        throw bad_input{std::string{"message: field '"} + field + "' " + why};
    }

  private:
    void need(std::size_t bytes, char const* field) const {
        if (left_.size() < bytes) refuse(field, "is cut short");
    }
    std::span<std::byte const> left_;
};

}  // namespace weightcast::detail
