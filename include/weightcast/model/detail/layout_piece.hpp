// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/model is host-only: include it from a .cpp file"
#endif
// What a layout is made of: boxes of checkpoint tensors in own coordinates, and how they are cut.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <weightcast/model/parameter.hpp>
#include <weightcast/tensor/extents.hpp>

namespace weightcast::detail {

inline constexpr std::size_t nobody = static_cast<std::size_t>(-1);
inline constexpr std::size_t no_dim = static_cast<std::size_t>(-1);

/// One dimension of the own tensor: the piece holds indices first, first + step, ... (count of them), which are
/// consecutive in dimension source_dim of its checkpoint tensor.
struct piece_axis {
    std::int64_t first = 0;
    std::int64_t count = 1;
    std::int64_t step = 1;
    std::size_t source_dim = no_dim;  ///< none: the dimension is the own tensor's alone
};

/// A box of checkpoint tensor `source`, which begins at `offset` there; of nobody where the own elements belong
/// to no checkpoint tensor. Dimensions of the checkpoint tensor that no axis names have one index. The pieces of
/// a layout hold each element of the own tensor once.
struct layout_piece {
    std::size_t source = nobody;
    extents offset{};
    std::array<piece_axis, extents::max_rank> axes{};  ///< one a dimension of the own tensor
};

/// A layout's value: see layout.hpp.
struct layout_state {
    dtype type = dtype::uint8;
    extents shape{};
    std::vector<parameter> sources{};
    std::vector<layout_piece> pieces{};
};

/// The smallest i >= 0 with first + i * step >= bound.
constexpr std::int64_t steps_to(std::int64_t first, std::int64_t step, std::int64_t bound) {
    return bound <= first ? 0 : (bound - first - 1) / step + 1;
}

/// Cuts the piece down to own indices [lower, upper) of a dimension; false when nothing is left.
inline bool cut(layout_piece& piece, std::size_t dim, std::int64_t lower, std::int64_t upper) {
    auto& axis = piece.axes[dim];
    auto const from = steps_to(axis.first, axis.step, lower);
    auto const to = std::min(axis.count, steps_to(axis.first, axis.step, upper));
    if (from >= to) return false;
    if (axis.source_dim != no_dim) piece.offset[axis.source_dim] += from;
    axis.first += from * axis.step;
    axis.count = to - from;
    return true;
}

}  // namespace weightcast::detail
