// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/model is host-only: include it from a .cpp file"
#endif
// What an engine holds: its own tensors, by their names and by those of the checkpoint tensors in them.

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include <weightcast/base/error.hpp>
#include <weightcast/kernels/strided_region.hpp>
#include <weightcast/model/layout.hpp>
#include <weightcast/model/layout_table.hpp>
#include <weightcast/model/name_index.hpp>
#include <weightcast/model/name_map.hpp>
#include <weightcast/model/parameter.hpp>
#include <weightcast/model/tensor_region.hpp>
#include <weightcast/tensor/concepts.hpp>
#include <weightcast/tensor/tensor_view.hpp>

namespace weightcast {

/// The destinations of one model. Views, not memory. An own tensor is either held as it is announced, or made of
/// checkpoint tensors as a layout says; the names of both work. Look-ups cost a hash or two, however many experts there are.
template <MemorySpace Space = host_space>
class parameter_table {
  public:
    using view = tensor_view<Space>;

    /// Takes note of a tensor that updates of that name are written into.
    /// @throws bad_argument  for a name that is there already, an empty one, or a checkpoint tensor's of a layout
    template <WritableDeviceTensor T>
        requires std::same_as<space_of<T>, Space>
    void add(std::string_view name, T&& tensor) {
        if (layouts_.find(name) != nullptr) refuse_two_meanings(name);
        add_own(name, writable_view_of(tensor), std::nullopt);
    }
    /// The same for one that is made of checkpoint tensors. Updates of those are written where the layout says;
    /// what of it belongs to nobody stays as it is.
    /// @throws bad_argument  for a tensor whose dtype or shape is not the layout's, or whose elements overlap; for
    ///                       a checkpoint tensor that another layout describes otherwise, or that has the name of
    ///                       an own tensor which is not made of it; nothing is added
    template <WritableDeviceTensor T>
        requires std::same_as<space_of<T>, Space>
    void add(std::string_view name, layout const& made_of, T&& tensor) {
        auto const own = writable_view_of(tensor);
        if (own.type() != made_of.type() || own.shape() != made_of.shape()) {
            throw bad_argument{"parameter '" + std::string{name} + "' is " +
                               describe_type(own.type(), own.shape()) +
                               ", but its layout is of an " + describe(made_of)};
        }
        if (!has_separate_elements(own.layout())) {
            throw bad_argument{"parameter '" + std::string{name} + "': elements of shape " +
                               to_string(own.shape()) + " and strides " + to_string(own.strides()) +
                               " overlap or interleave"};
        }
        if (name.empty() || find(name) != nullptr) refuse(name);
        check_names(name, made_of);
        auto const index = layouts_.add(made_of, own.strides());
        add_own(name, own, index);
        made_.push_back(own);
    }
    /// Renames announced names before they are looked up; a name that leads nowhere is tried as it stands.
    void rename(name_map map) { map_ = std::move(map); }

    /// The own tensor of that name, or null.
    view const* find(std::string_view name) const {
        auto const found = tensors_.find(name);
        return found == tensors_.end() ? nullptr : &found->second.own;
    }
    /// Own tensors.
    std::size_t size() const noexcept { return tensors_.size(); }

    /// The names of own tensors, in their order.
    std::vector<std::string> names() const {
        std::vector<std::string> all;
        for (auto const& [name, _] : tensors_) all.push_back(name);
        return all;
    }

    /// The engine's or a checkpoint's name that is meant: as renamed, or, where that is unknown, as it stands.
    std::string known_name(std::string_view announced) const {
        auto renamed = map_(announced);
        if (find(renamed) != nullptr || layouts_.find(renamed) != nullptr) return renamed;
        return std::string{announced};
    }
    /// The parts of own tensors that an announced parameter is written into by a layout; none of them where this
    /// engine holds nothing of it. Nothing: it is written into `find(known_name(...))` as it is.
    std::optional<std::vector<placed_region<Space>>> parts(parameter const& announced) const {
        auto const* resolved = by_parts(known_name(announced.name), announced);
        if (resolved == nullptr) return std::nullopt;
        std::vector<placed_region<Space>> all;
        for (auto const& region : resolved->regions) all.push_back({region, made_[region.own]});
        return all;
    }

    /// What is wrong with an update of these parameters, or nothing. Writes nothing.
    std::optional<std::string> objection(parameter const* parameters, std::size_t count) const {
        std::unordered_set<std::string> seen;
        std::size_t unknown = 0;
        for (std::size_t i = 0; i < count; ++i) {
            auto const& p = parameters[i];
            auto const name = known_name(p.name);
            if (!seen.insert(name).second) return announced_twice(p.name, name);
            auto const* own = find(name);
            auto const* source = layouts_.find(name);
            if (own == nullptr && source == nullptr) {
                ++unknown;
            } else if (whole(name, p) == nullptr && by_parts(name, p) == nullptr) {
                return "tensor '" + p.name + "' is announced as " + describe_type(p.type, p.shape) +
                       ", held as " + held_as(own, source);
            }
        }
        if (unknown != 0) return list_unknown(parameters, count);
        return written_twice(parameters, count);
    }
    /// Names that these parameters do not update, in name order: own tensors held as they are, and checkpoint
    /// tensors of which this engine holds a part.
    std::vector<std::string> not_covered(parameter const* parameters, std::size_t count) const {
        std::unordered_set<std::string> as_own;
        std::unordered_set<std::string> in_parts;
        std::vector<bool> whole_own(made_.size(), false);
        for (std::size_t i = 0; i < count; ++i) {
            auto const name = known_name(parameters[i].name);
            if (by_parts(name, parameters[i]) != nullptr) in_parts.insert(name);
            if (whole(name, parameters[i]) == nullptr) continue;
            as_own.insert(name);
            if (auto const& layout = tensors_.find(name)->second.layout) whole_own[*layout] = true;
        }
        std::set<std::string> missing;
        for (auto const& [name, held] : tensors_) {
            if (!held.layout && !as_own.contains(name)) missing.insert(name);
        }
        for (auto const& one : layouts_.resolutions()) {
            if (in_parts.contains(one.expected.name)) continue;
            for (auto const& region : one.regions) {
                if (!whole_own[region.own]) missing.insert(one.expected.name);
            }
        }
        return {missing.begin(), missing.end()};
    }

  private:
    struct held_tensor {
        view own;
        std::optional<std::size_t> layout;  // index in layouts_
    };

    [[noreturn]] static void refuse(std::string_view name) {
        if (name.empty()) throw bad_argument{"a parameter needs a name"};
        throw bad_argument{"parameter '" + std::string{name} + "' is in the table already"};
    }
    [[noreturn]] static void refuse_two_meanings(std::string_view name) {
        throw bad_argument{"'" + std::string{name} +
                           "' is the name of an own tensor and of a checkpoint tensor that another "
                           "layout takes a part of; describe the own one with layouts::whole"};
    }
    static bool is_source(layout const& made_of, std::string_view name) {
        for (auto const& source : made_of.sources()) {
            if (source.name == name) return true;
        }
        return false;
    }
    // An update of a checkpoint tensor reaches all that is made of it, so no own tensor of that name may be left out.
    void check_names(std::string_view name, layout const& made_of) const {
        if (layouts_.find(name) != nullptr && !is_source(made_of, name)) refuse_two_meanings(name);
        for (auto const& source : made_of.sources()) {
            auto const held = tensors_.find(source.name);
            if (held == tensors_.end()) continue;
            auto const& layout = held->second.layout;
            if (!layout || !is_source(layouts_.layouts()[*layout], source.name))
                refuse_two_meanings(source.name);
        }
    }
    void add_own(std::string_view name, view const& own, std::optional<std::size_t> layout) {
        if (name.empty() ||
            !tensors_.try_emplace(std::string{name}, held_tensor{own, layout}).second)
            refuse(name);
    }
    // The own tensor that a parameter is written into as it is; null when it goes by parts, or nowhere.
    view const* whole(std::string_view name, parameter const& p) const {
        auto const* own = find(name);
        if (own == nullptr || own->type() != p.type || own->shape() != p.shape) return nullptr;
        return by_parts(name, p) == nullptr ? own : nullptr;
    }
    // A name may be both: that of a checkpoint tensor and of the own tensor made of it. The shape tells which is
    // meant; where both fit, the checkpoint's, so that nothing depends on how this engine stores it.
    resolution const* by_parts(std::string_view name, parameter const& p) const {
        auto const* found = layouts_.find(name);
        if (found == nullptr) return nullptr;
        return found->expected.type == p.type && found->expected.shape == p.shape ? found : nullptr;
    }
    static std::string held_as(view const* own, resolution const* source) {
        if (source == nullptr) return describe_type(own->type(), own->shape());
        auto text = describe_type(source->expected.type, source->expected.shape);
        if (own != nullptr)
            text += " or, as the engine's own, " + describe_type(own->type(), own->shape());
        return text;
    }
    static std::string announced_twice(std::string const& announced, std::string const& name) {
        return announced == name
                   ? "tensor '" + name + "' is announced twice"
                   : "tensor '" + announced + "' means '" + name + "', which is announced already";
    }
    // An own tensor that comes whole, and a checkpoint tensor that is part of it.
    std::optional<std::string> written_twice(parameter const* parameters, std::size_t count) const {
        if (made_.empty()) return std::nullopt;
        std::vector<std::string_view> whole_by(made_.size());
        for (std::size_t i = 0; i < count; ++i) {
            auto const name = known_name(parameters[i].name);
            auto const found = tensors_.find(name);
            if (found == tensors_.end() || !found->second.layout) continue;
            if (whole(name, parameters[i]) == nullptr) continue;
            whole_by[*found->second.layout] = parameters[i].name;
        }
        for (std::size_t i = 0; i < count; ++i) {
            auto const* source = by_parts(known_name(parameters[i].name), parameters[i]);
            if (source == nullptr) continue;
            for (auto const& region : source->regions) {
                auto const by = whole_by[region.own];
                if (by.empty()) continue;
                return "tensor '" + parameters[i].name + "' is a part of '" + std::string{by} +
                       "', which is announced too: its bytes would be written twice";
            }
        }
        return std::nullopt;
    }
    // The index that finds near names is made for the message only.
    std::string list_unknown(parameter const* parameters, std::size_t count) const {
        std::set<std::string> known;
        for (auto const& [name, _] : tensors_) known.insert(name);
        for (auto const& one : layouts_.resolutions()) known.insert(one.expected.name);
        std::vector<std::string> announced;
        for (std::size_t i = 0; i < count; ++i) announced.push_back(parameters[i].name);
        name_index const index{{known.begin(), known.end()}, map_};
        return index.objection(announced).value_or("names are unknown here");
    }

    std::map<std::string, held_tensor, std::less<>> tensors_;
    layout_table layouts_;
    std::vector<view> made_;  // own tensors by the index that layouts_ gave them
    name_map map_;
};

}  // namespace weightcast
