// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/model is host-only: include it from a .cpp file"
#endif
// From a checkpoint name to its places in all of an engine's tensors.

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <weightcast/base/error.hpp>
#include <weightcast/model/detail/name_hash.hpp>
#include <weightcast/model/layout.hpp>

namespace weightcast {

/// Resolutions by checkpoint name, over many own tensors. Built once; a look-up is one hash, whatever the number of
/// experts. A checkpoint tensor may have places in several own tensors (a copy of tied weights). Another expert map
/// between updates means another table.
class layout_table {
  public:
    /// Takes note of an own tensor; returns its index, which its regions carry.
    /// @throws bad_argument  for a checkpoint tensor that is here with another dtype or shape; nothing is changed
    /// Cost: linear in the layout's checkpoint tensors and regions.
    std::size_t add(layout const& own, extents const& strides) {
        auto resolved = resolve(own, layouts_.size(), strides);
        for (auto const& one : resolved) check(one.expected);
        layouts_.push_back(own);
        for (auto& one : resolved) merge(std::move(one));
        return layouts_.size() - 1;
    }
    /// The same for a dense row-major own tensor.
    std::size_t add(layout const& own) { return add(own, contiguous_strides(own.shape())); }

    /// What becomes of the checkpoint tensor of that name; null for a name that no layout knows.
    resolution const* find(std::string_view name) const {
        auto const found = indices_.find(name);
        return found == indices_.end() ? nullptr : &resolutions_[found->second];
    }
    /// All of them, in the order in which layouts named them.
    std::vector<resolution> const& resolutions() const noexcept { return resolutions_; }
    /// Their names in that order: what a `name_index` in front of the table finds.
    std::vector<std::string> names() const {
        std::vector<std::string> all;
        for (auto const& one : resolutions_) all.push_back(one.expected.name);
        return all;
    }
    /// By index of the own tensor.
    std::vector<layout> const& layouts() const noexcept { return layouts_; }

  private:
    void check(parameter const& source) const {
        auto const* known = find(source.name);
        if (known == nullptr || known->expected == source) return;
        throw bad_argument{"checkpoint tensor '" + source.name + "' is described as " +
                           describe_type(known->expected.type, known->expected.shape) + " and as " +
                           describe_type(source.type, source.shape)};
    }
    void merge(resolution one) {
        auto const [place, added] = indices_.try_emplace(one.expected.name, resolutions_.size());
        if (added) {
            resolutions_.push_back(std::move(one));
            return;
        }
        auto& regions = resolutions_[place->second].regions;
        regions.insert(regions.end(), one.regions.begin(), one.regions.end());
    }
    std::vector<layout> layouts_;
    std::vector<resolution> resolutions_;
    std::unordered_map<std::string, std::size_t, detail::name_hash, std::equal_to<>> indices_;
};

}  // namespace weightcast
