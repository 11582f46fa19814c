// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/model is host-only: include it from a .cpp file"
#endif
// Whether an announced update can go into a table: from metadata alone, before a byte moves.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <weightcast/model/coverage.hpp>
#include <weightcast/model/name_index.hpp>
#include <weightcast/model/parameter.hpp>
#include <weightcast/model/parameter_index.hpp>
#include <weightcast/model/update_coverage.hpp>

namespace weightcast {

/// What of a table belongs together, beside the names.
struct table_rules {
    std::vector<std::vector<std::string>>
        bundles{};  ///< names of tensors that are valid only together
    std::vector<std::pair<std::size_t, std::size_t>>
        overlaps{};  ///< own tensors that share bytes, although no alias says so
    struct layer {
        std::string name{};
        std::vector<std::string> inputs{};
        std::vector<std::size_t> outputs{};  ///< own tensors
    };
    std::vector<layer> layers{};
    bool lenient = false;  ///< unknown names are received and dropped
};

/// One update's parameters, looked up once.
class update_check {
    using index = parameter_index;
    using fit = index::fit;

  public:
    /// All must outlive it.
    update_check(index const& names, table_rules const& rules, parameter const* parameters,
                 std::size_t count)
        : names_{names},
          rules_{rules},
          parameters_{parameters},
          own_(names.own().size()),
          sources_(names.layouts().resolutions().size()),
          inputs_(names.inputs().size()) {
        meanings_.reserve(count);
        for (std::size_t i = 0; i < count; ++i) {
            auto const& m = meanings_.emplace_back(names.look_up(parameters[i]));
            if (m.how == fit::whole) note(own_[m.own], i);
            if (m.how == fit::in_parts) note(sources_[m.source], i);
            if (m.how == fit::held) note(inputs_[m.input], i);
        }
    }

    std::vector<index::meaning> const& meanings() const noexcept { return meanings_; }

    /// What is wrong with the update, or nothing.
    std::optional<std::string> objection(update_coverage promised) const {
        if (auto found = wrong_name_or_type()) return found;
        if (auto found = unknown_names()) return found;
        if (auto found = written_twice()) return found;
        if (auto found = broken_layer()) return found;
        if (promised != update_coverage::members) {
            if (auto found = broken_bundle()) return found;
        }
        // one without tensors updates nothing, and says so
        if (promised > update_coverage::parameters || meanings_.empty()) return std::nullopt;
        return left_out(promised == update_coverage::everything);
    }
    /// Announced names without a meaning here, in their order.
    std::vector<std::string> unknown() const {
        std::vector<std::string> all;
        for (std::size_t i = 0; i < meanings_.size(); ++i) {
            if (meanings_[i].how == fit::unknown) all.push_back(parameters_[i].name);
        }
        return all;
    }
    /// Names that the update does not bring, in name order: own tensors held as they are, checkpoint tensors of which
    /// this engine holds a part, and layers' inputs.
    std::vector<std::string> not_covered(bool buffers = true) const {
        std::set<std::string> missing;
        for (std::size_t o = 0; o < own_.size(); ++o) {
            auto const& own = names_.own()[o];
            if (own.layout != index::none || own_[o].brought || own.kind == own_kind::output)
                continue;
            if (buffers || own.kind != own_kind::buffer) missing.insert(own.name);
        }
        for (std::size_t s = 0; s < sources_.size(); ++s) {
            if (!is_covered(s)) missing.insert(names_.layouts().resolutions()[s].expected.name);
        }
        for (std::size_t i = 0; i < inputs_.size(); ++i) {
            auto const& input = names_.inputs()[i];
            if (!inputs_[i].brought && !has_all_outputs(input.layer))
                missing.insert(input.expected.name);
        }
        return {missing.begin(), missing.end()};
    }
    /// An own tensor, all of whose elements that belong to somebody the update writes.
    bool is_written(std::size_t own) const {
        if (own_[own].brought) return true;
        auto const& entry = names_.own()[own];
        if (entry.kind == own_kind::output) return is_output_of_brought_layer(own);
        if (entry.layout == index::none) return false;
        auto const sources = names_.layouts().layouts()[entry.layout].sources();
        return std::all_of(sources.begin(), sources.end(), [&](parameter const& p) {
            return sources_[names_.find_source(p.name)].brought;
        });
    }
    /// Announced parameters that mean one tensor, one of them by its alias: (index, index of the other).
    std::vector<std::pair<std::size_t, std::size_t>> alias_pairs() const {
        std::vector<std::pair<std::size_t, std::size_t>> all;
        for (auto const* list : {&own_, &sources_}) {
            for (auto const& one : *list) {
                if (one.brought && one.again != index::none) all.emplace_back(one.again, one.first);
            }
        }
        return all;
    }
    /// The parameter that brings a layer's input, or none.
    std::size_t bringer_of_input(std::size_t input) const {
        return inputs_[input].brought ? inputs_[input].first : index::none;
    }
    std::size_t bringer_of(index::meaning const& m) const {
        if (m.own != index::none && own_[m.own].brought) return own_[m.own].first;
        if (m.source != index::none && sources_[m.source].brought) return sources_[m.source].first;
        return index::none;
    }

  private:
    struct bringing {
        bool brought = false;
        std::size_t first = index::none;  // parameters
        std::size_t again = index::none;
        std::size_t times = 0;
    };
    static void note(bringing& one, std::size_t by) {
        ++one.times;
        if (one.brought) {
            one.again = by;
        } else {
            one = {true, by, index::none, 1};
        }
    }

    std::optional<std::string> wrong_name_or_type() const {
        for (std::size_t i = 0; i < meanings_.size(); ++i) {
            auto const& p = parameters_[i];
            if (meanings_[i].how == fit::misfit) {
                return "tensor '" + p.name + "' is announced as " + describe_type(p.type, p.shape) +
                       ", held as " + names_.held_as(meanings_[i]);
            }
        }
        for (auto const* list : {&own_, &sources_, &inputs_}) {
            for (auto const& one : *list) {
                if (one.again == index::none || is_alias_pair(one)) continue;
                return announced_twice(one);
            }
        }
        return std::nullopt;
    }
    bool is_alias_pair(bringing const& one) const {
        return one.times == 2 && meanings_[one.first].by_alias != meanings_[one.again].by_alias;
    }
    std::string announced_twice(bringing const& one) const {
        auto const& first = parameters_[one.first].name;
        auto const& again = parameters_[one.again].name;
        if (first == again) return "tensor '" + first + "' is announced twice";
        return "tensor '" + again + "' means '" + first + "', which is announced already";
    }
    std::optional<std::string> unknown_names() const {
        if (auto found = twice_unknown()) return found;
        auto const strangers = unknown();
        bool const all = strangers.size() == meanings_.size();
        if (strangers.empty() || (rules_.lenient && !all)) return std::nullopt;
        // the index that finds near names is made for the message only
        name_index const near{names_.known_names(), names_.map()};
        std::vector<std::string> announced;
        for (std::size_t i = 0; i < meanings_.size(); ++i) announced.push_back(parameters_[i].name);
        return near.objection(announced).value_or("names are unknown here");
    }
    std::optional<std::string> twice_unknown() const {
        std::set<std::string_view> seen;
        for (std::size_t i = 0; i < meanings_.size(); ++i) {
            if (meanings_[i].how != fit::unknown) continue;
            if (!seen.insert(parameters_[i].name).second)
                return "tensor '" + parameters_[i].name + "' is announced twice";
        }
        return std::nullopt;
    }

    // An own tensor that comes whole, and a checkpoint tensor that is part of it, or that a layer makes it of; or two
    // own tensors that share bytes.
    std::optional<std::string> written_twice() const {
        for (std::size_t s = 0; s < sources_.size(); ++s) {
            if (!sources_[s].brought) continue;
            for (auto const& region : names_.layouts().resolutions()[s].regions) {
                auto const own = names_.own_of_layout(region.own);
                if (own_[own].brought) return part_of(sources_[s], own);
            }
        }
        for (std::size_t i = 0; i < inputs_.size(); ++i) {
            if (!inputs_[i].brought) continue;
            for (auto const own : rules_.layers[names_.inputs()[i].layer].outputs) {
                if (own_[own].brought) return part_of(inputs_[i], own);
            }
        }
        for (auto const& [a, b] : rules_.overlaps) {
            if (is_touched(a) && is_touched(b)) {
                return "own tensors '" + names_.own()[a].name + "' and '" + names_.own()[b].name +
                       "' share memory: their bytes would be written twice; where they are the same "
                       "tensor, declare an alias";
            }
        }
        return std::nullopt;
    }
    std::string part_of(bringing const& one, std::size_t own) const {
        return "tensor '" + parameters_[one.first].name + "' is a part of '" +
               parameters_[own_[own].first].name +
               "', which is announced too: its bytes would be written twice";
    }
    bool is_touched(std::size_t own) const {
        if (own_[own].brought) return true;
        auto const& entry = names_.own()[own];
        if (entry.kind == own_kind::output) return is_output_of_brought_layer(own);
        if (entry.layout == index::none) return false;
        auto const sources = names_.layouts().layouts()[entry.layout].sources();
        return std::any_of(sources.begin(), sources.end(), [&](parameter const& p) {
            return sources_[names_.find_source(p.name)].brought;
        });
    }

    std::optional<std::string> broken_layer() const {
        for (auto const& layer : rules_.layers) {
            if (auto found = broken_group("layer", layer.name, layer.inputs)) return found;
        }
        return std::nullopt;
    }
    std::optional<std::string> broken_bundle() const {
        for (auto const& bundle : rules_.bundles) {
            if (auto found = broken_group("bundle", bundle.front(), bundle)) return found;
        }
        return std::nullopt;
    }
    std::optional<std::string> broken_group(char const* kind, std::string const& name,
                                            std::vector<std::string> const& members) const {
        std::string_view present;
        std::string_view absent;
        for (auto const& member : members) (is_brought(member) ? present : absent) = member;
        if (present.empty() || absent.empty()) return std::nullopt;
        return std::string{kind} + " '" + name + "': the update brings '" + std::string{present} +
               "' without '" + std::string{absent} + "', and they are valid only together";
    }
    bool is_brought(std::string_view name) const {
        auto const m = names_.look_up(name);
        if (m.input != index::none) return inputs_[m.input].brought;
        if (m.source != index::none) return is_covered(m.source);
        return m.own != index::none && is_touched(m.own);
    }
    bool is_covered(std::size_t source) const {
        if (sources_[source].brought) return true;
        auto const& regions = names_.layouts().resolutions()[source].regions;
        return std::all_of(regions.begin(), regions.end(), [&](tensor_region const& r) {
            return own_[names_.own_of_layout(r.own)].brought;
        });
    }
    bool has_all_outputs(std::size_t layer) const {
        auto const& outputs = rules_.layers[layer].outputs;
        return !outputs.empty() && std::all_of(outputs.begin(), outputs.end(),
                                               [&](std::size_t o) { return own_[o].brought; });
    }
    bool is_output_of_brought_layer(std::size_t own) const {
        for (auto const& layer : rules_.layers) {
            auto const& all = layer.outputs;
            if (std::find(all.begin(), all.end(), own) != all.end() && !layer.inputs.empty())
                return is_brought(layer.inputs.front());
        }
        return false;
    }

    std::optional<std::string> left_out(bool buffers) const {
        auto const missing = not_covered(buffers);
        if (missing.empty()) return std::nullopt;
        auto text = "the update leaves out " + std::to_string(missing.size()) + ":";
        for (std::size_t i = 0; i < missing.size() && i < 3; ++i) {
            text.append(i == 0 ? " '" : ", '").append(missing[i]).append("'");
            text += in_own_tensor(missing[i]);
        }
        if (missing.size() > 3) text += ", ...";
        return text + "; bring them, or declare the update partial";
    }
    // Which bytes of an engine's own tensor nobody would write.
    std::string in_own_tensor(std::string const& name) const {
        auto const source = names_.find_source(name);
        if (source == index::none) return "";
        for (auto const& region : names_.layouts().resolutions()[source].regions) {
            auto const own = names_.own_of_layout(region.own);
            if (own_[own].brought) continue;
            return " (own tensor '" + names_.own()[own].name + "' " +
                   to_string(covered(region.own)) + ")";
        }
        return "";
    }
    coverage_report covered(std::size_t layout) const {
        coverage written;
        auto const& own_layout = names_.layouts().layouts()[layout];
        written.add_tensor(own_layout);
        for (auto const& one : resolve(own_layout)) {
            if (!sources_[names_.find_source(one.expected.name)].brought) continue;
            for (auto const& region : one.regions) written.mark(region);
        }
        return written.report(0);
    }

    index const& names_;
    table_rules const& rules_;
    parameter const* parameters_;
    std::vector<index::meaning> meanings_;
    std::vector<bringing> own_;
    std::vector<bringing> sources_;
    std::vector<bringing> inputs_;
};

}  // namespace weightcast
