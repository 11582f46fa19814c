// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/model is host-only: include it from a .cpp file"
#endif
// How one tensor of an engine is made of checkpoint tensors, and the regions that follow from it.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <weightcast/base/error.hpp>
#include <weightcast/model/detail/layout_piece.hpp>
#include <weightcast/model/parameter.hpp>
#include <weightcast/model/tensor_region.hpp>
#include <weightcast/tensor/extents.hpp>

namespace weightcast {

/// How an own tensor is made of checkpoint tensors: a value, pure metadata. Made by `layouts::whole` and composed by
/// the other functions of `layouts`; each takes layouts and returns one, so that they nest: a stack of fused shards,
/// transposed. Its elements and its checkpoint tensors have one dtype, since bytes move as they are.
/// Each element of the own tensor belongs to one element of one checkpoint tensor, or to nobody.
class layout {
  public:
    /// @throws bad_argument  for a shape that is none
    explicit layout(detail::layout_state state) : state_{std::move(state)} {
        try {
            static_cast<void>(element_count(state_.shape));
        } catch (bad_input const& problem) {
            throw bad_argument{"layout of shape " + to_string(state_.shape) + ": " +
                               problem.what()};
        }
    }

    dtype type() const noexcept { return state_.type; }
    /// Of the own tensor, in the order in which it is stored.
    extents const& shape() const noexcept { return state_.shape; }
    /// The checkpoint tensors by which it was described, also those of which it holds nothing; names are unique.
    std::span<parameter const> sources() const noexcept { return state_.sources; }
    detail::layout_state const& state() const noexcept { return state_; }

  private:
    detail::layout_state state_;
};

/// "own tensor bfloat16[4, 8] of 'a' and 2 more".
inline std::string describe(layout const& own) {
    auto const sources = own.sources();
    std::string text = "own tensor " + describe_type(own.type(), own.shape());
    if (sources.empty()) return text + " of nobody";
    text += " of '" + sources[0].name + "'";
    return sources.size() == 1 ? text
                               : text + " and " + std::to_string(sources.size() - 1) + " more";
}

namespace detail {

inline tensor_region region_of_piece(layout_piece const& piece, std::size_t source_rank,
                                     std::size_t own, extents const& strides) {
    tensor_region region{piece.offset, {}, own, 0, {}};
    for (std::size_t d = 0; d < source_rank; ++d) {
        region.sizes.push_back(1);
        region.strides.push_back(0);
    }
    for (std::size_t d = 0; d < strides.size(); ++d) {
        auto const& axis = piece.axes[d];
        region.first_element += static_cast<std::uint64_t>(axis.first * strides[d]);
        if (axis.source_dim == no_dim) continue;
        region.sizes[axis.source_dim] = axis.count;
        region.strides[axis.source_dim] = axis.step * strides[d];
    }
    return region;
}

inline void check_strides(layout const& own, extents const& strides) {
    bool right = strides.size() == own.shape().size();
    for (auto const stride : strides) right = right && stride >= 0;
    if (right) return;
    throw bad_argument{describe(own) + ": strides " + to_string(strides) + " are none for " +
                       std::to_string(own.shape().size()) + " dimensions"};
}

}  // namespace detail

/// Each checkpoint tensor's regions, in the order of `sources()`, for an own tensor with these strides (in elements).
/// @pre the strides are those of a tensor in memory: no element's number is over 2^63 - 1
/// @throws bad_argument  for strides of another number of dimensions, or negative ones
/// Cost: linear in the number of checkpoint tensors and regions.
inline std::vector<resolution> resolve(layout const& own_layout, std::size_t own,
                                       extents const& strides) {
    detail::check_strides(own_layout, strides);
    std::vector<resolution> resolved;
    for (auto const& source : own_layout.sources()) resolved.push_back({source, {}});
    for (auto const& piece : own_layout.state().pieces) {
        if (piece.source == detail::nobody) continue;
        auto& to = resolved[piece.source];
        to.regions.push_back(
            detail::region_of_piece(piece, to.expected.shape.size(), own, strides));
    }
    return resolved;
}
/// The same for a dense row-major own tensor.
inline std::vector<resolution> resolve(layout const& own_layout, std::size_t own = 0) {
    return resolve(own_layout, own, contiguous_strides(own_layout.shape()));
}

/// The regions of the own tensor that belong to no checkpoint tensor and stay as they are. Their offset is that in
/// the own tensor; an interleaved one's is its first index.
inline std::vector<tensor_region> unowned_regions(layout const& own_layout, std::size_t own,
                                                  extents const& strides) {
    detail::check_strides(own_layout, strides);
    std::vector<tensor_region> regions;
    for (auto const& piece : own_layout.state().pieces) {
        if (piece.source != detail::nobody) continue;
        tensor_region region{{}, {}, own, 0, {}};
        for (std::size_t d = 0; d < strides.size(); ++d) {
            auto const& axis = piece.axes[d];
            region.offset.push_back(axis.first);
            region.sizes.push_back(axis.count);
            region.strides.push_back(axis.step * strides[d]);
            region.first_element += static_cast<std::uint64_t>(axis.first * strides[d]);
        }
        regions.push_back(region);
    }
    return regions;
}
/// The same for a dense row-major own tensor.
inline std::vector<tensor_region> unowned_regions(layout const& own_layout, std::size_t own = 0) {
    return unowned_regions(own_layout, own, contiguous_strides(own_layout.shape()));
}

namespace layouts {

/// The own tensor is the checkpoint tensor.
/// @throws bad_argument  for an empty name, or a shape that is none
inline layout whole(parameter const& source) {
    if (source.name.empty()) throw bad_argument{"a checkpoint tensor needs a name"};
    detail::layout_state state{source.type, source.shape, {source}, {}};
    detail::layout_piece piece{0, source.shape, {}};
    bool empty = false;
    for (std::size_t d = 0; d < source.shape.size(); ++d) {
        piece.offset[d] = 0;
        piece.axes[d] = {0, source.shape[d], 1, d};
        empty = empty || source.shape[d] == 0;
    }
    if (!empty) state.pieces.push_back(piece);
    return layout{std::move(state)};
}

/// An own tensor that belongs to no checkpoint tensor, such as a gap between the parts of a fused one.
/// @throws bad_argument  for a shape that is none
inline layout unowned(dtype type, extents const& shape) {
    detail::layout_state state{type, shape, {}, {}};
    detail::layout_piece piece{};
    bool empty = false;
    for (std::size_t d = 0; d < shape.size(); ++d) {
        piece.axes[d] = {0, shape[d], 1, detail::no_dim};
        empty = empty || shape[d] == 0;
    }
    if (!empty) state.pieces.push_back(piece);
    return layout{std::move(state)};
}

}  // namespace layouts

}  // namespace weightcast
