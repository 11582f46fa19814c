// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/model is host-only: include it from a .cpp file"
#endif
// An engine's targets: main, draft and adapters, each with its own table, version and state.

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <weightcast/base/error.hpp>
#include <weightcast/model/concepts.hpp>
#include <weightcast/model/parameter_table.hpp>
#include <weightcast/model/target_id.hpp>
#include <weightcast/model/weight_version.hpp>

namespace weightcast {

/// Tables by target, under the policy `in_place`: bytes go straight into the tensors. A failure after the
/// first byte marks the target *mixed* until a full update repairs it; version and label stay.
/// Threads: one updates; a reader on another thread needs its own order (the engine pauses, or waits).
template <MemorySpace Space = host_space>
class parameter_tables {
  public:
    using space = Space;
    using id_type = target_id;
    using version_type = weight_version;
    using parameter_type = parameter;

    /// The table of a target; made empty when it is new.
    parameter_table<Space>& table(target_id const& id = {}) { return states_[id].table; }
    parameter_table<Space>& main() { return table(target_id::main()); }
    parameter_table<Space>& draft() { return table(target_id::draft()); }
    parameter_table<Space>& adapter(std::string_view id) { return table(target_id::adapter(id)); }
    bool has(target_id const& id) const { return states_.contains(id); }

    /// Version that the target holds; of a mixed target: the last one it held whole.
    weight_version version(target_id const& id = {}) const { return state(id).version; }
    /// An update failed after the first byte: do not serve.
    bool mixed(target_id const& id = {}) const { return state(id).mixed; }

    /// What the target remembers of its last update ("same as last time").
    std::vector<parameter> const& remembered(target_id const& id = {}) const {
        return state(id).remembered;
    }
    void remember(target_id const& id, std::vector<parameter> parameters) {
        state(id).remembered = std::move(parameters);
    }
    /// Forgets that metadata on every target, as a new group does.
    void forget() noexcept {
        for (auto& [_, s] : states_) s.remembered.clear();
    }

    // --- WeightTarget ---
    /// @throws bad_argument  for a target that is not here
    void begin_update(target_id const& id) { state(id).wrote = false; }
    std::optional<std::string> objection(target_id const& id, parameter const* parameters,
                                         std::size_t count) const {
        auto const found = states_.find(id);
        if (found == states_.end()) return "target '" + to_string(id) + "' is not here";
        if (found->second.mixed && !covers(found->second, parameters, count)) {
            return "target '" + to_string(id) + "' is mixed: only a full update repairs it";
        }
        return found->second.table.objection(parameters, count);
    }
    tensor_view<Space> destination(target_id const& id, std::string_view name) {
        auto const& table = state(id).table;
        auto const* found = table.find(table.known_name(name));
        if (found == nullptr)
            throw bad_argument{"parameter '" + std::string{name} + "' is not here"};
        return *found;
    }
    std::optional<std::vector<placed_region<Space>>> parts(target_id const& id,
                                                           parameter const& announced) const {
        return state(id).table.parts(announced);
    }
    void mark_writing(target_id const& id) noexcept {
        if (auto const found = states_.find(id); found != states_.end()) found->second.wrote = true;
    }
    void publish(target_id const& id, weight_version const& version) noexcept {
        auto const found = states_.find(id);
        if (found == states_.end()) return;
        found->second.version = version;
        found->second.mixed = false;
        found->second.wrote = false;
    }
    void roll_back(target_id const& id) noexcept {
        auto const found = states_.find(id);
        if (found == states_.end()) return;
        if (found->second.wrote) found->second.mixed = true;
        found->second.wrote = false;
    }
    std::vector<std::string> not_covered(target_id const& id, parameter const* parameters,
                                         std::size_t count) const {
        return state(id).table.not_covered(parameters, count);
    }

  private:
    struct target_state {
        parameter_table<Space> table{};
        weight_version version{};
        std::vector<parameter> remembered{};
        bool mixed = false;
        bool wrote = false;
    };
    static bool covers(target_state const& s, parameter const* parameters, std::size_t count) {
        return s.table.not_covered(parameters, count).empty();
    }
    target_state& state(target_id const& id) {
        auto const found = states_.find(id);
        if (found == states_.end())
            throw bad_argument{"target '" + to_string(id) + "' is not here"};
        return found->second;
    }
    target_state const& state(target_id const& id) const {
        return const_cast<parameter_tables*>(this)->state(id);
    }
    std::map<target_id, target_state> states_;
};
static_assert(WeightTarget<parameter_tables<>>);
static_assert(has_remembered_metadata<parameter_tables<>> && has_coverage<parameter_tables<>> &&
              has_parts<parameter_tables<>>);

}  // namespace weightcast
