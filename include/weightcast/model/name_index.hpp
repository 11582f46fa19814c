// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/model is host-only: include it from a .cpp file"
#endif
// Which of an engine's names an announced one means, and what may have been meant by one that is unknown.

#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <weightcast/base/error.hpp>
#include <weightcast/model/detail/name_distance.hpp>
#include <weightcast/model/detail/name_hash.hpp>
#include <weightcast/model/name_map.hpp>

namespace weightcast {

/// The engine's names behind a name map. Built once; a look-up costs one or two hashes.
class name_index {
  public:
    /// @throws bad_argument  for an empty name, or one that is there twice
    explicit name_index(std::vector<std::string> names, name_map map = {})
        : names_{std::move(names)}, map_{std::move(map)} {
        for (std::size_t i = 0; i < names_.size(); ++i) {
            if (names_[i].empty()) throw bad_argument{"a parameter needs a name"};
            if (!indices_.try_emplace(names_[i], i).second) {
                throw bad_argument{"parameter '" + names_[i] + "' is there twice"};
            }
            by_ending_.push_back(i);
        }
        std::sort(by_ending_.begin(), by_ending_.end(), [this](std::size_t a, std::size_t b) {
            return ends_before(names_[a], names_[b]);
        });
    }

    std::vector<std::string> const& names() const noexcept { return names_; }

    /// The index of the engine's name that is meant: by the map, or, where that leads nowhere, the name as it stands,
    /// so that the engine's own names work too. Nothing for an unknown name.
    std::optional<std::size_t> find(std::string_view announced) const {
        if (auto const found = at(map_(announced))) return found;
        return at(announced);
    }

    /// Announced names that are unknown here, in their order.
    std::vector<std::string> unknown(std::vector<std::string> const& announced) const {
        std::vector<std::string> names;
        for (auto const& name : announced) {
            if (!find(name)) names.push_back(name);
        }
        return names;
    }

    /// What is wrong with an update of these names, or nothing: two that mean the same, or unknown ones: how many,
    /// the first three, and the nearest to each.
    std::optional<std::string> objection(std::vector<std::string> const& announced) const {
        std::unordered_map<std::size_t, std::string_view> meant;
        for (auto const& name : announced) {
            auto const index = find(name);
            if (!index) continue;
            auto const [first, added] = meant.try_emplace(*index, name);
            if (added) continue;
            return "tensors '" + std::string{first->second} + "' and '" + name + "' both mean '" +
                   names_[*index] + "'";
        }
        auto const strangers = unknown(announced);
        if (strangers.empty()) return std::nullopt;
        return list_unknown(strangers, announced.size());
    }

    /// Names that are near to an unknown one, as renamed by the map: first those within a few typing errors (at
    /// most 3, and less than half of the name), then those that end with most of the same components.
    /// Cost: the first `compared` names, 7 steps a character; the rest a binary search.
    std::vector<std::string> nearest(std::string_view unknown, std::size_t most = 3) const {
        auto name = map_(unknown);
        if (name.empty()) name = unknown;
        std::vector<std::string> found;
        for (auto const index : by_typing(name)) add(found, index, most);
        for (auto const index : by_ending(name, most)) add(found, index, most);
        return found;
    }
    static constexpr std::size_t compared = 100'000;

  private:
    using rated = std::pair<std::size_t, std::size_t>;  // how far, index

    static bool ends_before(std::string_view a, std::string_view b) {
        return std::lexicographical_compare(a.rbegin(), a.rend(), b.rbegin(), b.rend());
    }
    std::optional<std::size_t> at(std::string_view name) const {
        auto const found = indices_.find(name);
        return found == indices_.end() ? std::nullopt : std::optional{found->second};
    }
    void add(std::vector<std::string>& found, std::size_t index, std::size_t most) const {
        auto const& name = names_[index];
        if (found.size() >= most || std::find(found.begin(), found.end(), name) != found.end())
            return;
        found.push_back(name);
    }
    static std::vector<std::size_t> in_order(std::vector<rated> all) {
        std::sort(all.begin(), all.end());
        std::vector<std::size_t> indices;
        for (auto const& [_, index] : all) indices.push_back(index);
        return indices;
    }
    std::vector<std::size_t> by_typing(std::string_view name) const {
        std::vector<rated> near;
        auto const limit =
            std::min<std::size_t>(3, (std::max<std::size_t>(name.size(), 1) - 1) / 2);
        for (std::size_t i = 0; i < std::min(names_.size(), compared); ++i) {
            auto const distance = detail::edit_distance(name, names_[i], limit);
            if (distance <= limit) near.emplace_back(distance, i);
        }
        return in_order(std::move(near));
    }
    /// The longest common endings are neighbours in the order of the reversed names.
    std::vector<std::size_t> by_ending(std::string_view name, std::size_t most) const {
        auto const place = std::lower_bound(
            by_ending_.begin(), by_ending_.end(), name,
            [this](std::size_t i, std::string_view n) { return ends_before(names_[i], n); });
        auto const centre = static_cast<std::size_t>(place - by_ending_.begin());
        std::vector<rated> near;
        auto const last = std::min(by_ending_.size(), centre + most);
        for (auto i = centre > most ? centre - most : 0; i < last; ++i) {
            auto const same = detail::common_suffix(name, names_[by_ending_[i]]);
            if (same > 0) near.emplace_back(name.size() - same, by_ending_[i]);
        }
        return in_order(std::move(near));
    }
    std::string list_unknown(std::vector<std::string> const& strangers, std::size_t count) const {
        std::string text = std::to_string(strangers.size()) + " of " + std::to_string(count) +
                           " announced names are unknown here:";
        for (std::size_t i = 0; i < strangers.size() && i < 3; ++i) {
            text.append(i == 0 ? " '" : ", '").append(strangers[i]).append("'");
            auto const candidates = nearest(strangers[i]);
            for (std::size_t k = 0; k < candidates.size(); ++k) {
                text.append(k == 0 ? " (near: '" : ", '").append(candidates[k]).append("'");
            }
            if (!candidates.empty()) text += ")";
        }
        return strangers.size() > 3 ? text + ", ..." : text;
    }
    std::vector<std::string> names_;
    name_map map_;
    std::unordered_map<std::string, std::size_t, detail::name_hash, std::equal_to<>> indices_;
    std::vector<std::size_t> by_ending_;  // indices, sorted by the names read backwards
};

}  // namespace weightcast
