// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/model is host-only: include it from a .cpp file"
#endif
// What a table knows by name: own tensors, the checkpoint tensors in them, aliases, and tensors that layers take.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <weightcast/base/error.hpp>
#include <weightcast/model/detail/name_hash.hpp>
#include <weightcast/model/layout_table.hpp>
#include <weightcast/model/name_map.hpp>
#include <weightcast/model/parameter.hpp>

namespace weightcast {

/// What an own tensor is to updates.
enum class own_kind : std::uint8_t {
    parameter,  ///< has to be brought, unless an update is partial
    buffer,     ///< reported where it is left out
    output      ///< written by a layer's step
};

/// Metadata of a table: names, not memory. A look-up costs a hash, however many experts there are.
class parameter_index {
  public:
    static constexpr std::size_t none = static_cast<std::size_t>(-1);

    struct own_entry {
        std::string name;
        dtype type;
        extents shape;
        own_kind kind;
        std::size_t layout;  ///< in `layouts()`; none: it is held as it is announced
    };
    /// A checkpoint tensor that a layer's step reads.
    struct layer_input {
        parameter expected;
        std::size_t layer;
    };
    /// How an announced tensor fits what is meant by its name.
    enum class fit : std::uint8_t { unknown, misfit, whole, in_parts, held };
    struct meaning {
        std::size_t own = none;  ///< the own tensor of that name
        std::size_t source =
            none;  ///< the checkpoint tensor of that name, in `layouts().resolutions()`
        std::size_t input = none;  ///< the layer's input of that name
        fit how = fit::unknown;
        bool by_alias = false;
        friend bool operator==(meaning const&, meaning const&) = default;
    };

    /// Takes note of an own tensor; returns its index. Layouts take `strides`, in elements.
    /// @throws bad_argument  for an empty name, or one that has a meaning already; nothing is added
    std::size_t add_own(std::string_view name, dtype type, extents const& shape, own_kind kind) {
        if (layouts_.find(name) != nullptr) refuse_two_meanings(name);
        require_new(name);
        return append_own({std::string{name}, type, shape, kind, none});
    }
    std::size_t add_own(std::string_view name, layout const& made_of, extents const& strides) {
        if (name.empty() || find_own(name) != none) refuse(name);
        check_names(name, made_of);
        auto const index = layouts_.add(made_of, strides);
        own_of_layout_.push_back(own_.size());
        for (auto const& source : made_of.sources()) {
            auto const* found = layouts_.find(source.name);
            ids_[source.name].source =
                static_cast<std::size_t>(found - layouts_.resolutions().data());
        }
        return append_own(
            {std::string{name}, made_of.type(), made_of.shape(), own_kind::parameter, index});
    }
    /// From now on the name means that of another tensor, too.
    /// @throws bad_argument  for a name that has a meaning already, or another that has none
    void add_alias(std::string_view name, std::string_view of) {
        require_new(name);
        if (layouts_.find(name) != nullptr) refuse_two_meanings(name);
        if (find_own(of) == none && layouts_.find(of) == nullptr) {
            throw bad_argument{"alias '" + std::string{name} + "' is of '" + std::string{of} +
                               "', which is not in the table"};
        }
        aliases_.emplace(std::string{name}, std::string{of});
    }
    /// @throws bad_argument  for a name that has a meaning already; the first ones of the list are added then
    void add_inputs(std::vector<parameter> const& inputs, std::size_t layer) {
        for (auto const& p : inputs) {
            require_new(p.name);
            if (layouts_.find(p.name) != nullptr) refuse_two_meanings(p.name);
            ids_[p.name].input = inputs_.size();
            inputs_.push_back({p, layer});
        }
    }
    void rename(name_map map) {
        map_ = std::move(map);
        renames_ = true;
    }

    std::vector<own_entry> const& own() const noexcept { return own_; }
    layout_table const& layouts() const noexcept { return layouts_; }
    std::vector<layer_input> const& inputs() const noexcept { return inputs_; }
    name_map const& map() const noexcept { return map_; }
    bool has_aliases() const noexcept { return !aliases_.empty(); }
    /// The own tensor that a layout is of.
    std::size_t own_of_layout(std::size_t layout) const { return own_of_layout_[layout]; }
    /// The own tensor of that name, as it stands; or none.
    std::size_t find_own(std::string_view name) const { return at(name).own; }
    std::size_t find_source(std::string_view name) const { return at(name).source; }
    std::size_t find_input(std::string_view name) const { return at(name).input; }

    /// What is meant by an announced name: as renamed, or, where that is unknown, as it stands.
    meaning look_up(std::string_view announced) const {
        if (renames_) {
            auto const renamed = find(map_(announced));
            if (is_known(renamed)) return renamed;
        }
        return find(announced);
    }
    /// The same, and how the announced tensor fits. A name may be that of a checkpoint tensor and of the own one made of
    /// it: the shape tells which is meant; where both fit, the checkpoint's, so that nothing depends on how this engine
    /// stores it.
    meaning look_up(parameter const& p) const {
        auto m = look_up(std::string_view{p.name});
        if (!is_known(m)) return m;
        m.how = fit::misfit;
        if (m.own != none && own_[m.own].type == p.type && own_[m.own].shape == p.shape)
            m.how = fit::whole;
        if (m.input != none && fits(inputs_[m.input].expected, p)) m.how = fit::held;
        if (m.source != none && fits(layouts_.resolutions()[m.source].expected, p))
            m.how = fit::in_parts;
        return m;
    }
    static bool is_known(meaning const& m) noexcept {
        return m.own != none || m.source != none || m.input != none;
    }
    /// Every name that has a meaning.
    std::vector<std::string> known_names() const {
        std::vector<std::string> all = layouts_.names();
        for (auto const& o : own_) {
            if (layouts_.find(o.name) == nullptr) all.push_back(o.name);
        }
        for (auto const& i : inputs_) all.push_back(i.expected.name);
        for (auto const& [alias, _] : aliases_) all.push_back(alias);
        return all;
    }
    /// "float32[2, 3]": what a tensor of that meaning has to be.
    std::string held_as(meaning const& m) const {
        std::string text;
        if (m.input != none) text = described(inputs_[m.input].expected);
        if (m.source != none) text = described(layouts_.resolutions()[m.source].expected);
        if (m.own == none) return text;
        auto const as_own = describe_type(own_[m.own].type, own_[m.own].shape);
        return text.empty() ? as_own : text + " or, as the engine's own, " + as_own;
    }

  private:
    struct ids {
        std::size_t own = none;
        std::size_t source = none;
        std::size_t input = none;
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
    static bool fits(parameter const& expected, parameter const& p) {
        return expected.type == p.type && expected.shape == p.shape;
    }
    static std::string described(parameter const& p) { return describe_type(p.type, p.shape); }
    ids at(std::string_view name) const {
        auto const found = ids_.find(name);
        return found == ids_.end() ? ids{} : found->second;
    }
    void require_new(std::string_view name) const {
        auto const known = at(name);
        if (name.empty() || known.own != none || known.input != none || aliases_.contains(name))
            refuse(name);
    }
    std::size_t append_own(own_entry entry) {
        ids_[entry.name].own = own_.size();
        own_.push_back(std::move(entry));
        return own_.size() - 1;
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
        if (find_input(name) != none || aliases_.contains(name)) refuse(name);
        for (auto const& source : made_of.sources()) {
            if (find_input(source.name) != none || aliases_.contains(source.name))
                refuse(source.name);
            auto const held = find_own(source.name);
            if (held == none) continue;
            auto const layout = own_[held].layout;
            if (layout == none || !is_source(layouts_.layouts()[layout], source.name))
                refuse_two_meanings(source.name);
        }
    }
    meaning find(std::string_view name) const {
        auto const known = at(name);
        meaning m{known.own, known.source, known.input, fit::unknown, false};
        if (is_known(m) || aliases_.empty()) return m;
        auto const alias = aliases_.find(name);
        if (alias == aliases_.end()) return m;
        m = find(alias->second);
        m.by_alias = true;
        return m;
    }

    std::vector<own_entry> own_;
    layout_table layouts_;
    std::vector<std::size_t> own_of_layout_;
    std::vector<layer_input> inputs_;
    std::unordered_map<std::string, ids, detail::name_hash, std::equal_to<>> ids_;
    std::unordered_map<std::string, std::string, detail::name_hash, std::equal_to<>> aliases_;
    name_map map_;
    bool renames_ = false;
};

}  // namespace weightcast
