// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/model is host-only: include it from a .cpp file"
#endif
// What fusing, interleaving and stacking have in common: many layouts become one.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <weightcast/base/error.hpp>
#include <weightcast/model/layout.hpp>

namespace weightcast::detail {

/// Checkpoint tensors of several layouts, each once. Hashed by name: a layout of 10,000 experts costs 10,000 look-ups.
class source_union {
  public:
    /// The index here of each of the part's sources.
    /// @throws bad_argument  when a name has another dtype or shape here
    std::vector<std::size_t> add(layout const& part) {
        std::vector<std::size_t> indices;
        for (auto const& source : part.sources()) indices.push_back(add(source));
        return indices;
    }
    std::vector<parameter> take() { return std::move(sources_); }

  private:
    std::size_t add(parameter const& source) {
        auto const [place, added] = indices_.try_emplace(source.name, sources_.size());
        if (added) {
            sources_.push_back(source);
        } else if (auto const& known = sources_[place->second]; known != source) {
            throw bad_argument{"checkpoint tensor '" + source.name + "' is described as " +
                               describe_type(known.type, known.shape) + " and as " +
                               describe_type(source.type, source.shape)};
        }
        return place->second;
    }
    std::vector<parameter> sources_;
    std::unordered_map<std::string, std::size_t> indices_;
};

/// The sum of two sizes of a dimension.
inline std::int64_t add_sizes(std::int64_t a, std::int64_t b) {
    if (a > std::numeric_limits<std::int64_t>::max() - b) {
        throw bad_argument{"sizes " + std::to_string(a) + " and " + std::to_string(b) +
                           " do not add up to 63 bits"};
    }
    return a + b;
}

/// @throws bad_argument  unless all parts have the first one's dtype and its shape, but for dimension `but`
inline void check_alike(std::vector<layout> const& parts, std::size_t but) {
    if (parts.empty()) throw bad_argument{"a layout needs at least one part"};
    auto const& first = parts.front();
    for (std::size_t k = 1; k < parts.size(); ++k) {
        auto shape = parts[k].shape();
        if (but < shape.size() && but < first.shape().size()) shape[but] = first.shape()[but];
        if (parts[k].type() == first.type() && shape == first.shape()) continue;
        throw bad_argument{"part " + std::to_string(k) + ", " + describe(parts[k]) +
                           ", does not fit part 0, " + describe(first) +
                           (but == no_dim ? "" : ", beside dimension " + std::to_string(but))};
    }
}

/// A layout of that shape with the pieces of all parts; place(piece, k, put) puts what becomes of a piece of part k.
template <class Place>
layout joined(std::vector<layout> const& parts, extents const& shape, Place place) {
    layout_state state{parts.front().type(), shape, {}, {}};
    source_union sources;
    auto const put = [&state](layout_piece const& piece) { state.pieces.push_back(piece); };
    for (std::size_t k = 0; k < parts.size(); ++k) {
        auto const indices = sources.add(parts[k]);
        for (auto piece : parts[k].state().pieces) {
            if (piece.source != nobody) piece.source = indices[piece.source];
            place(piece, k, put);
        }
    }
    state.sources = sources.take();
    return layout{std::move(state)};
}

}  // namespace weightcast::detail
