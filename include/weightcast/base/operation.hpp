// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a communicator's operation carries besides bytes: who it is for, and how long it may take.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include <weightcast/base/deadline.hpp>
#include <weightcast/base/phase.hpp>

namespace weightcast {

/// Phase and tensor of an operation. Trivially copyable, so that queues may hold it without allocating;
/// a longer tensor name keeps its tail, which tells tensors apart.
class operation_label {
  public:
    static constexpr std::size_t capacity = 86;
    constexpr operation_label() noexcept = default;
    constexpr operation_label(phase where, std::string_view tensor) noexcept : where_{where} {
        if (tensor.size() > capacity) tensor.remove_prefix(tensor.size() - capacity);
        length_ = static_cast<std::uint8_t>(tensor.size());
        std::copy(tensor.begin(), tensor.end(), text_.begin());
    }
    constexpr phase where() const noexcept { return where_; }
    constexpr std::string_view tensor() const noexcept { return {text_.data(), length_}; }

  private:
    phase where_ = phase::payload;
    std::uint8_t length_ = 0;
    std::array<char, capacity> text_{};
};

/// How long an operation may take.
struct op_limits {
    /// No byte moved for this long ends the operation; counted from when it *runs*, renewed per piece.
    std::chrono::milliseconds stall{20'000};
    /// The end of the whole operation, whatever moves.
    deadline at = deadline::after(std::chrono::seconds{300});
};

/// Label and limits of one operation.
struct operation {
    operation_label label{};
    op_limits limits{};
};

}  // namespace weightcast
