// SPDX-License-Identifier: Apache-2.0
#pragma once
// In what two models differ, tensor by tensor.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <weightcast/tensor/named_view.hpp>

namespace weightcast::program {

/// Why a tensor is not the same in both.
enum class difference_reason : std::uint8_t { missing, dtype, shape, bytes };

std::string_view to_string(difference_reason reason) noexcept;

/// One tensor that differs.
struct tensor_difference {
    std::string name;
    difference_reason reason;
    std::optional<std::uint64_t> first_byte{};  ///< of the tensor; for the reason `bytes` only
    const_tensor_view<> const* a = nullptr;     ///< null where it is missing
    const_tensor_view<> const* b = nullptr;
};

struct model_comparison {
    std::size_t tensors = 0;  ///< names in either
    std::vector<tensor_difference> differences{};
};

/// Compares by digests, and looks for the first byte where they differ. Tensors in the order of `a`, then those
/// that only `b` has. Refers to both.
/// Cost: each byte is read once, those of tensors that differ twice.
model_comparison compare(std::span<named_view<> const> a, std::span<named_view<> const> b);

}  // namespace weightcast::program
