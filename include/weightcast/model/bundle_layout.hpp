// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/model is host-only: include it from a .cpp file"
#endif
// Parameters that describe one logical tensor together, at different granularity: cut and joined as one.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <weightcast/base/error.hpp>
#include <weightcast/model/detail/joined_layout.hpp>
#include <weightcast/model/fused_layout.hpp>
#include <weightcast/model/layout.hpp>
#include <weightcast/model/parameter.hpp>
#include <weightcast/model/sliced_layout.hpp>
#include <weightcast/model/tensor_region.hpp>
#include <weightcast/tensor/extents.hpp>

namespace weightcast {

/// One tensor of a bundle. One element of it stands for unit[d] indices of the logical tensor along dimension d: {1, 1}
/// for a weight, {128, 128} for the scales of its blocks, {8, 1} for int4 values packed eight to an int32 along
/// dimension 0. At the logical tensor's end an element may stand for fewer.
struct bundle_member {
    layout made_of;
    extents unit;
};

namespace detail {

/// Checkpoint names that are valid only together; each name in one group.
using name_groups = std::vector<std::vector<std::string>>;

/// A bundle's value: see bundle_layout.
struct bundle_state {
    extents shape{};
    std::vector<bundle_member> members{};
    name_groups groups{};
};

constexpr std::int64_t ceil_divide(std::int64_t size, std::int64_t unit) {
    return size / unit + (size % unit == 0 ? 0 : 1);
}

/// Collects groups; those that share a name become one: what is valid with one is valid with the other. Hashed by
/// name: a look-up a name, and a move a name for each time that its group is joined to an earlier one.
class group_union {
  public:
    void add(std::vector<std::string> const& group) {
        auto to = groups_.size();
        for (auto const& name : group) {
            if (auto const known = group_of_.find(name); known != group_of_.end()) {
                to = std::min(to, known->second);
            }
        }
        if (to == groups_.size()) groups_.emplace_back();
        for (auto const& name : group) {
            auto const [place, added] = group_of_.try_emplace(name, to);
            if (added) groups_[to].push_back(name);
            if (place->second != to) move_names(place->second, to);
        }
    }
    /// In the order in which each one's first name came.
    name_groups take() {
        std::erase_if(groups_, [](auto const& group) { return group.empty(); });
        return std::move(groups_);
    }

  private:
    void move_names(std::size_t from, std::size_t to) {
        for (auto& name : std::exchange(groups_[from], {})) {
            group_of_.at(name) = to;
            groups_[to].push_back(std::move(name));
        }
    }
    name_groups groups_;
    std::unordered_map<std::string, std::size_t> group_of_;
};

/// @throws bad_argument  unless the member has one element for each unit of a logical tensor of that shape
inline void check_member(extents const& shape, bundle_member const& member) {
    auto const& unit = member.unit;
    bool right = unit.size() == shape.size();
    for (auto const size : unit) right = right && size >= 1;
    if (!right) {
        throw bad_argument{describe(member.made_of) + ": unit " + to_string(unit) +
                           " is none for a bundle of shape " + to_string(shape)};
    }
    extents expected = shape;
    for (std::size_t d = 0; d < shape.size(); ++d) expected[d] = ceil_divide(shape[d], unit[d]);
    if (member.made_of.shape() == expected) return;
    throw bad_argument{describe(member.made_of) + ": a bundle of shape " + to_string(shape) +
                       " with an element for " + to_string(unit) + " indices needs shape " +
                       to_string(expected) + ", found " + to_string(member.made_of.shape())};
}

}  // namespace detail

/// A logical tensor and the tensors that hold it, of which none means anything without the others: FP8 values and the
/// scales of their blocks, packed int4 values with scales and zeros. A value, pure metadata, made by
/// `layouts::bundle` and composed by other functions of `layouts`, which treat all members alike. Each member is an
/// own tensor with a layout as any other.
class bundle_layout {
  public:
    /// @throws bad_argument  for a shape that is none, no member, or a member that does not fit the logical shape
    explicit bundle_layout(detail::bundle_state state) : state_{std::move(state)} {
        try {
            static_cast<void>(element_count(state_.shape));
        } catch (bad_input const& problem) {
            throw bad_argument{"bundle of shape " + to_string(state_.shape) + ": " +
                               problem.what()};
        }
        if (state_.members.empty()) throw bad_argument{"a bundle needs at least one member"};
        for (auto const& member : state_.members) detail::check_member(state_.shape, member);
    }

    /// Of the tensor that the members describe together.
    extents const& logical_shape() const noexcept { return state_.shape; }
    /// In the order in which they were given.
    std::vector<bundle_member> const& members() const noexcept { return state_.members; }
    /// The checkpoint tensors that are valid only together, a group for each logical tensor of the checkpoint: {{w1,
    /// w1_scale}, {w3, w3_scale}} for a fused w13. Also those of which this bundle holds nothing. No name is twice:
    /// groups that share one are one group.
    std::vector<std::vector<std::string>> const& groups() const noexcept { return state_.groups; }

  private:
    detail::bundle_state state_;
};

/// "bundle [300, 256] of 2 members, own tensor float8_e4m3fn[300, 256] of 'w' first".
inline std::string describe(bundle_layout const& of) {
    return "bundle " + to_string(of.logical_shape()) + " of " +
           std::to_string(of.members().size()) + " members, " +
           describe(of.members().front().made_of) + " first";
}

namespace detail {

inline void check_dim(bundle_layout const& of, std::size_t dim) {
    if (dim < of.logical_shape().size()) return;
    throw bad_argument{describe(of) + " has no dimension " + std::to_string(dim)};
}

/// The member's index for an index of the logical tensor, where it may be cut: at a unit's edge, or at the end.
/// @throws bad_argument  for a cut inside a unit
inline std::int64_t cut_of_member(bundle_layout const& of, bundle_member const& member,
                                  std::size_t dim, std::int64_t cut) {
    auto const unit = member.unit[dim];
    auto const size = of.logical_shape()[dim];
    if (cut % unit != 0 && cut != size) {
        auto const below = cut / unit * unit;
        auto const above = size - below > unit ? below + unit : size;
        throw bad_argument{describe(member.made_of) + ": a cut of dimension " +
                           std::to_string(dim) + " at " + std::to_string(cut) + " of " +
                           std::to_string(size) + " is inside a block of " + std::to_string(unit) +
                           "; the nearest edges are " + std::to_string(below) + " and " +
                           std::to_string(above)};
    }
    return ceil_divide(cut, unit);
}

/// @throws bad_argument  unless the part has the first one's members, units and shape beside dimension dim
inline void check_alike(bundle_layout const& first, bundle_layout const& part, std::size_t k,
                        std::size_t dim) {
    auto const refuse = [&](std::string const& why) {
        throw bad_argument{"part " + std::to_string(k) + ", " + describe(part) +
                           ", does not fit part 0, " + describe(first) + ": " + why};
    };
    auto const& expected = first.members();
    auto const& found = part.members();
    if (found.size() != expected.size()) {
        refuse("expected " + std::to_string(expected.size()) + " members, found " +
               std::to_string(found.size()));
    }
    auto shape = part.logical_shape();
    if (dim < shape.size()) shape[dim] = first.logical_shape()[dim];
    if (shape != first.logical_shape()) {
        refuse("shapes differ beside dimension " + std::to_string(dim));
    }
    for (std::size_t m = 0; m < expected.size(); ++m) {
        if (found[m].unit == expected[m].unit) continue;
        refuse("expected unit " + to_string(expected[m].unit) + " of member " + std::to_string(m) +
               ", found " + to_string(found[m].unit));
    }
}

/// @throws bad_argument  for a part that ends at `end` of `size` in all, inside a unit of a member
inline void check_part_end(bundle_layout const& part, std::size_t k, std::size_t dim,
                           std::int64_t end, std::int64_t size) {
    if (end == size) return;
    for (auto const& member : part.members()) {
        auto const unit = member.unit[dim];
        if (end % unit == 0) continue;
        throw bad_argument{"part " + std::to_string(k) + ", " + describe(member.made_of) +
                           ", ends at " + std::to_string(end) + " of " + std::to_string(size) +
                           " in dimension " + std::to_string(dim) + ", inside a block of " +
                           std::to_string(unit) + ": only the last part may"};
    }
}

}  // namespace detail

namespace layouts {

/// A logical tensor of that shape, held by these members, all of whose checkpoint tensors are valid only together.
/// Sizes need not divide by the units: member m has shape ceil(logical_shape[d] / unit[d]).
/// @throws bad_argument  for a shape that is none, no member, a unit below 1, a member of another shape, or a
///                       checkpoint tensor that is in two members
inline bundle_layout bundle(extents const& logical_shape, std::vector<bundle_member> members) {
    std::vector<std::string> names;
    std::unordered_set<std::string_view> seen;
    for (auto const& member : members) {
        for (auto const& source : member.made_of.sources()) {
            if (!seen.insert(source.name).second) {
                throw bad_argument{"checkpoint tensor '" + source.name +
                                   "' is in two members of a bundle of shape " +
                                   to_string(logical_shape)};
            }
            names.push_back(source.name);
        }
    }
    detail::name_groups groups;
    if (!names.empty()) groups.push_back(std::move(names));
    return bundle_layout{{logical_shape, std::move(members), std::move(groups)}};
}

/// A weight whose blocks have a scale each (`weight` and `weight_scale_inv` of FP8 checkpoints). The block has a number
/// a dimension of the weight: {1, 128, 128} for a stack of experts.
/// @throws bad_argument  for scales of another shape than ceil(weight / block)
inline bundle_layout block_scaled(parameter const& weight, parameter const& scales,
                                  extents const& block = {128, 128}) {
    extents one;
    for (std::size_t d = 0; d < weight.shape.size(); ++d) one.push_back(1);
    return bundle(weight.shape, {{whole(weight), one}, {whole(scales), block}});
}

/// How the integers of a quantized matrix lie. The defaults are GPTQ's for four bits; AWQ packs values along dimension
/// 1; compressed-tensors holds the transpose: groups and packing along dimension 1, zeros packed along dimension 0.
struct group_format {
    std::int64_t group = 128;      ///< indices that share a scale and a zero
    std::int64_t per_element = 8;  ///< values in one element of the packed tensors
    std::size_t group_dim = 0;     ///< dimension along which indices share them
    std::size_t packed_dim = 0;    ///< dimension along which values are packed
    std::size_t zeros_dim = 1;     ///< dimension along which zeros are packed
};

}  // namespace layouts

namespace detail {

/// @throws bad_argument  for a dimension outside the shape, or counts that are none
inline void check_format(extents const& shape, parameter const& packed,
                         layouts::group_format const& format) {
    for (auto const dim : {format.group_dim, format.packed_dim, format.zeros_dim}) {
        if (dim < shape.size()) continue;
        throw bad_argument{"the group format of '" + packed.name + "' names dimension " +
                           std::to_string(dim) + " of shape " + to_string(shape)};
    }
    if (format.group >= 1 && format.per_element >= 1 &&
        format.group <= std::numeric_limits<std::int64_t>::max() / format.per_element)
        return;
    throw bad_argument{"the group format of '" + packed.name + "' has groups of " +
                       std::to_string(format.group) + " indices and " +
                       std::to_string(format.per_element) + " values an element"};
}

}  // namespace detail

namespace layouts {

/// Packed integers of a logical tensor, with the scales and, unless they are symmetric, the zeros of its groups:
/// members in this order.
/// @throws bad_argument  for a dimension outside, or a parameter that does not fit the logical shape
inline bundle_layout group_quantized(extents const& logical_shape, parameter const& packed,
                                     parameter const& scales, std::optional<parameter> const& zeros,
                                     group_format const& format) {
    detail::check_format(logical_shape, packed, format);
    extents values;
    for (std::size_t d = 0; d < logical_shape.size(); ++d) values.push_back(1);
    extents groups = values;
    values[format.packed_dim] = format.per_element;
    groups[format.group_dim] = format.group;
    std::vector<bundle_member> members{{whole(packed), values}, {whole(scales), groups}};
    if (zeros) {
        extents of_zeros = groups;
        of_zeros[format.zeros_dim] *= format.per_element;
        members.push_back({whole(*zeros), of_zeros});
    }
    return bundle(logical_shape, std::move(members));
}

/// Indices [first, last) of a dimension of the logical tensor, of all members together.
/// @throws bad_argument  for a dimension or bounds outside, or a bound inside a unit of a member; the logical
///                       tensor's end is always an edge
inline bundle_layout sliced(bundle_layout const& of, std::size_t dim, index_range bounds) {
    detail::check_dim(of, dim);
    auto shape = of.logical_shape();
    if (bounds.first < 0 || bounds.first > bounds.last || bounds.last > shape[dim]) {
        throw bad_argument{describe(of) + ": [" + std::to_string(bounds.first) + ", " +
                           std::to_string(bounds.last) + ") is outside dimension " +
                           std::to_string(dim)};
    }
    shape[dim] = bounds.size();
    std::vector<bundle_member> members;
    for (auto const& member : of.members()) {
        auto const first = detail::cut_of_member(of, member, dim, bounds.first);
        auto const last = detail::cut_of_member(of, member, dim, bounds.last);
        members.push_back({sliced(member.made_of, dim, {first, last}), member.unit});
    }
    return bundle_layout{{shape, std::move(members), of.groups()}};
}

/// A rank's shard of a dimension of the logical tensor, `shard_bounds` of it, of all members together.
/// @throws bad_argument  for a dimension or rank outside, or a bound inside a unit of a member
inline bundle_layout sharded(bundle_layout const& of, std::size_t dim, shard_position at) {
    detail::check_dim(of, dim);
    return sliced(of, dim, shard_bounds(of.logical_shape()[dim], at));
}

/// The parts one after the other along a dimension of the logical tensor, member by member: w1 and w3 become w13.
/// Each part keeps its own groups.
/// @throws bad_argument  for no part, a dimension outside, parts that differ in number of members, units, dtypes, or
///                       shape elsewhere, or a part before the last one that ends inside a unit of a member
/// Cost: linear in the parts' sources, pieces and names.
inline bundle_layout fused(std::size_t dim, std::vector<bundle_layout> const& parts) {
    if (parts.empty()) throw bad_argument{"a bundle needs at least one part"};
    detail::check_dim(parts.front(), dim);
    detail::bundle_state state{parts.front().logical_shape(), {}, {}};
    state.shape[dim] = 0;
    detail::group_union groups;
    for (std::size_t k = 0; k < parts.size(); ++k) {
        detail::check_alike(parts.front(), parts[k], k, dim);
        state.shape[dim] = detail::add_sizes(state.shape[dim], parts[k].logical_shape()[dim]);
        for (auto const& group : parts[k].groups()) groups.add(group);
    }
    state.groups = groups.take();
    std::int64_t end = 0;
    for (std::size_t k = 0; k < parts.size(); ++k) {
        end += parts[k].logical_shape()[dim];
        detail::check_part_end(parts[k], k, dim, end, state.shape[dim]);
    }
    for (std::size_t m = 0; m < parts.front().members().size(); ++m) {
        std::vector<layout> made_of;
        for (auto const& part : parts) made_of.push_back(part.members()[m].made_of);
        state.members.push_back({fused(dim, made_of), parts.front().members()[m].unit});
    }
    return bundle_layout{std::move(state)};
}

}  // namespace layouts

}  // namespace weightcast
