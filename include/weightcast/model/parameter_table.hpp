// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/model is host-only: include it from a .cpp file"
#endif
// What an engine holds: its own tensors, by their names and by those of the checkpoint tensors in them.

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <weightcast/base/error.hpp>
#include <weightcast/kernels/strided_region.hpp>
#include <weightcast/model/bundle_layout.hpp>
#include <weightcast/model/detail/shared_bytes.hpp>
#include <weightcast/model/layer_step.hpp>
#include <weightcast/model/layout.hpp>
#include <weightcast/model/name_map.hpp>
#include <weightcast/model/parameter.hpp>
#include <weightcast/model/parameter_index.hpp>
#include <weightcast/model/tensor_region.hpp>
#include <weightcast/model/update_check.hpp>
#include <weightcast/runtime/host_runtime.hpp>
#include <weightcast/tensor/concepts.hpp>
#include <weightcast/tensor/tensor_view.hpp>

namespace weightcast {

/// The destinations of one model. Views, not memory. An own tensor is either held as it is announced, or made of
/// checkpoint tensors as a layout says, or written by a layer's step; the names of both work. A look-up costs a hash,
/// however many experts there are. Made before updates, of one thread.
template <DeviceRuntime R = host_runtime>
class parameter_table {
  public:
    using space = typename R::space;
    using view = tensor_view<space>;

    /// Takes note of a tensor that updates of that name are written into.
    /// @throws bad_argument  for a name that is there already, an empty one, or a checkpoint tensor's of a layout
    template <WritableDeviceTensor T>
        requires std::same_as<space_of<T>, space>
    void add(std::string_view name, T&& tensor) {
        add_as(own_kind::parameter, name, writable_view_of(tensor));
    }
    /// The same for one that is made of checkpoint tensors. Updates of those are written where the layout says;
    /// what of it belongs to nobody stays as it is.
    /// @throws bad_argument  for a tensor whose dtype or shape is not the layout's, or whose elements overlap; for
    ///                       a checkpoint tensor that another layout describes otherwise, or that has the name of
    ///                       an own tensor which is not made of it; nothing is added
    template <WritableDeviceTensor T>
        requires std::same_as<space_of<T>, space>
    void add(std::string_view name, layout const& made_of, T&& tensor) {
        auto const own = writable_view_of(tensor);
        check_layout(name, made_of, own);
        index_.add_own(name, made_of, own.strides());
        append(own);
    }
    /// A tensor that an update need not bring: what leaves it out reports it, and only an update that promises
    /// `update_coverage::everything` is refused for it. @throws as add
    template <WritableDeviceTensor T>
        requires std::same_as<space_of<T>, space>
    void add_buffer(std::string_view name, T&& tensor) {
        add_as(own_kind::buffer, name, writable_view_of(tensor));
    }
    /// A tensor that a layer's step writes; an update may also bring it itself. @throws as add
    template <WritableDeviceTensor T>
        requires std::same_as<space_of<T>, space>
    void add_output(std::string_view name, T&& tensor) {
        add_as(own_kind::output, name, writable_view_of(tensor));
    }
    /// Another name of a tensor (tied embeddings): an update of either name reaches it. An update may bring both, when
    /// their bytes are equal; which the vote tells.
    /// @throws bad_argument  for a name that has a meaning already, or another that has none
    void alias(std::string_view name, std::string_view of) { index_.add_alias(name, of); }
    /// These are valid only together: weights and their scales. An update brings all or none of them, unless it
    /// promises `update_coverage::members` only.
    /// @throws bad_argument  for fewer than two, or a name without a meaning
    void bundle(std::vector<std::string> names) {
        if (names.size() < 2) throw bad_argument{"a bundle has two members or more"};
        for (auto const& name : names) require_known(name, "bundle");
        rules_.bundles.push_back(std::move(names));
    }
    /// The same for the checkpoint tensors of a bundle's layout, a group for each of its logical tensors.
    /// @throws bad_argument  for a member that is not in the table: add each with its layout first
    void bundle(bundle_layout const& of) {
        for (auto const& names : of.groups()) bundle(names);
    }
    /// What is done with a layer when all of it has arrived. Its inputs are no own tensors: they are held until the
    /// step has read them, so only whole layers can be updated.
    /// @throws bad_argument  for a step that does nothing or waits for nothing, or names without a meaning, or outputs
    ///                       that were not added with add_output; nothing is added
    void add_layer(layer_step<R> step) {
        check_step(step);
        index_.add_inputs(step.inputs, layers_.size());
        auto& rules = rules_.layers.emplace_back();
        rules.name = step.name;
        for (auto const& p : step.inputs) rules.inputs.push_back(p.name);
        for (auto const& name : step.outputs) rules.outputs.push_back(index_.find_own(name));
        layers_.push_back(std::move(step));
    }
    /// Renames announced names before they are looked up; a name that leads nowhere is tried as it stands.
    void rename(name_map map) { index_.rename(std::move(map)); }
    /// Announced names without a meaning are received and dropped, and listed in the report, instead of a refusal. An
    /// update of such names alone is always refused.
    void accept_unknown_names() noexcept { rules_.lenient = true; }

    /// The own tensor of that name, or null.
    view const* find(std::string_view name) const {
        auto const own = index_.find_own(name);
        return own == parameter_index::none ? nullptr : &own_[own];
    }
    /// Own tensors.
    std::size_t size() const noexcept { return own_.size(); }
    /// By index.
    std::vector<view> const& tensors() const noexcept { return own_; }
    /// The names of own tensors, in their order.
    std::vector<std::string> names() const {
        std::vector<std::string> all;
        for (auto const& o : index_.own()) all.push_back(o.name);
        std::sort(all.begin(), all.end());
        return all;
    }
    parameter_index const& index() const noexcept { return index_; }

    /// The own tensor that an announced name is written into as it is, or null.
    view const* whole(std::string_view announced) const {
        auto const m = index_.look_up(announced);
        return m.own == parameter_index::none ? nullptr : &own_[m.own];
    }
    /// The parts of own tensors that an announced parameter is written into by a layout; none of them where this
    /// engine holds nothing of it, or does not know it. Nothing: it is written into `whole(name)` as it is, or held for
    /// a layer.
    std::optional<std::vector<placed_region<space>>> parts(parameter const& announced) const {
        auto const m = index_.look_up(announced);
        std::vector<placed_region<space>> all;
        if (m.how == parameter_index::fit::unknown) return all;
        if (m.how != parameter_index::fit::in_parts) return std::nullopt;
        for (auto const& region : index_.layouts().resolutions()[m.source].regions) {
            all.push_back({region, own_[index_.own_of_layout(region.own)]});
        }
        return all;
    }

    /// Looks up an update's parameters. The table and the parameters must outlive it.
    update_check check(parameter const* parameters, std::size_t count) const {
        return {index_, rules_, parameters, count};
    }
    /// What is wrong with an update of these parameters, or nothing. Writes nothing.
    std::optional<std::string> objection(
        parameter const* parameters, std::size_t count,
        update_coverage promised = update_coverage::parameters) const {
        return check(parameters, count).objection(promised);
    }
    /// Names that these parameters do not update, in name order: own tensors held as they are, checkpoint tensors of
    /// which this engine holds a part, and layers' inputs.
    std::vector<std::string> not_covered(parameter const* parameters, std::size_t count) const {
        return check(parameters, count).not_covered();
    }
    /// Announced names that are dropped, where the table accepts unknown ones.
    std::vector<std::string> unknown(parameter const* parameters, std::size_t count) const {
        if (!rules_.lenient) return {};
        return check(parameters, count).unknown();
    }
    /// Announced parameters that mean one tensor, one of them by its alias: (index, index of the other).
    std::vector<std::pair<std::size_t, std::size_t>> alias_pairs(parameter const* parameters,
                                                                 std::size_t count) const {
        if (!index_.has_aliases()) return {};
        return check(parameters, count).alias_pairs();
    }
    /// The layers' steps of an update that has no objection.
    std::vector<layer_run<R>> layer_runs(parameter const* parameters, std::size_t count) const {
        std::vector<layer_run<R>> runs;
        if (layers_.empty()) return runs;
        auto const checked = check(parameters, count);
        for (std::size_t l = 0; l < layers_.size(); ++l) {
            if (auto run = run_of(l, checked)) runs.push_back(std::move(*run));
        }
        return runs;
    }

    /// Finds own tensors that share memory: an update that brings two of them is refused from then on. Called when an
    /// update begins. Cost: n log n when tensors were added since, else none.
    void settle() {
        if (settled_ == own_.size()) return;
        rules_.overlaps = detail::sharing_pairs(own_);
        settled_ = own_.size();
    }

  private:
    void add_as(own_kind kind, std::string_view name, view const& own) {
        index_.add_own(name, own.type(), own.shape(), kind);
        append(own);
    }
    void append(view const& own) { own_.push_back(own); }
    static void check_layout(std::string_view name, layout const& made_of, view const& own) {
        if (own.type() != made_of.type() || own.shape() != made_of.shape()) {
            throw bad_argument{"parameter '" + std::string{name} + "' is " +
                               describe_type(own.type(), own.shape()) +
                               ", but its layout is of an " + describe(made_of)};
        }
        if (has_separate_elements(own.layout())) return;
        throw bad_argument{"parameter '" + std::string{name} + "': elements of shape " +
                           to_string(own.shape()) + " and strides " + to_string(own.strides()) +
                           " overlap or interleave"};
    }
    void require_known(std::string const& name, char const* who) const {
        if (parameter_index::is_known(index_.look_up(std::string_view{name}))) return;
        throw bad_argument{std::string{who} + ": '" + name + "' is not in the table"};
    }
    void check_step(layer_step<R> const& step) const {
        auto const who = "layer '" + step.name + "'";
        if (!step.run) throw bad_argument{who + " has nothing to run"};
        if (step.inputs.empty() && step.after.empty())
            throw bad_argument{who + " waits for nothing"};
        for (auto const& name : step.after) require_known(name, who.c_str());
        for (auto const& p : step.inputs) {
            if (p.name.empty() ||
                parameter_index::is_known(index_.look_up(std::string_view{p.name}))) {
                throw bad_argument{who + ": input '" + p.name + "' is in the table already"};
            }
            if (std::count_if(step.inputs.begin(), step.inputs.end(),
                              [&](parameter const& q) { return q.name == p.name; }) > 1)
                throw bad_argument{who + ": input '" + p.name + "' is named twice"};
        }
        for (auto const& name : step.outputs) {
            auto const own = index_.find_own(name);
            if (own == parameter_index::none || index_.own()[own].kind != own_kind::output) {
                throw bad_argument{who + ": '" + name +
                                   "' was not added as an output (parameter_table::add_output)"};
            }
        }
    }
    // Nothing: the update brings nothing of that layer.
    std::optional<layer_run<R>> run_of(std::size_t layer, update_check const& checked) const {
        auto const& step = layers_[layer];
        layer_run<R> run{&step, {}, {}, {}};
        for (auto const& p : step.inputs) {
            auto const by = checked.bringer_of_input(index_.find_input(p.name));
            if (by == parameter_index::none) return std::nullopt;
            run.inputs.push_back(by);
        }
        for (auto const& name : step.after) {
            auto const by = checked.bringer_of(index_.look_up(std::string_view{name}));
            if (by != parameter_index::none) run.after.push_back(by);
        }
        if (run.inputs.empty() && run.after.empty()) return std::nullopt;
        for (auto const& name : step.outputs) run.outputs.push_back({name, *find(name)});
        return run;
    }

    parameter_index index_;
    table_rules rules_;
    std::vector<view> own_;  // by the index that index_ gave them
    std::vector<layer_step<R>> layers_;
    std::size_t settled_ = 0;
};

}  // namespace weightcast
