// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/model is host-only: include it from a .cpp file"
#endif
// An engine's targets: main, draft and adapters, each with its own table, version and state.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <exception>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <weightcast/base/deadline.hpp>
#include <weightcast/base/error.hpp>
#include <weightcast/model/commit_policy.hpp>
#include <weightcast/model/concepts.hpp>
#include <weightcast/model/detail/adapter_rules.hpp>
#include <weightcast/model/parameter_table.hpp>
#include <weightcast/model/serving_hooks.hpp>
#include <weightcast/model/snapshot_gate.hpp>
#include <weightcast/model/target_id.hpp>
#include <weightcast/model/update_coverage.hpp>
#include <weightcast/model/weight_snapshot.hpp>
#include <weightcast/model/weight_version.hpp>

namespace weightcast {

/// Tables by target under one commit policy, `in_place` or `shadow`. Tables are made, and targets added and removed,
/// while nothing else uses them; one thread updates; any thread takes snapshots, and asks for versions.
template <DeviceRuntime R = host_runtime, CommitPolicy<R> Policy = in_place>
class parameter_tables {
    using policy_memory = typename Policy::template memory<R>;

  public:
    using runtime = R;
    using space = typename R::space;
    using policy_type = Policy;
    using id_type = target_id;
    using version_type = weight_version;
    using parameter_type = parameter;
    using snapshot_type = weight_snapshot<R, policy_memory>;

    /// The table of a target; made empty when it is new.
    parameter_table<R>& table(target_id const& id = {}) {
        return states_.try_emplace(id, to_string(id)).first->second.table;
    }
    parameter_table<R>& main() { return table(target_id::main()); }
    parameter_table<R>& draft() { return table(target_id::draft()); }
    parameter_table<R>& adapter(std::string_view id) { return table(target_id::adapter(id)); }
    bool has(target_id const& id) const { return states_.contains(id); }
    /// Takes a target away, an adapter for instance.
    /// @throws bad_argument     for a target that is not here
    /// @throws lifecycle_error  while snapshots of it are held
    void remove(target_id const& id) {
        auto const held = state(id).gate.readers();
        if (held != 0) {
            throw lifecycle_error{"target '" + to_string(id) + "' cannot be removed: " +
                                  std::to_string(held) + " snapshots of it are held"};
        }
        states_.erase(id);
    }

    /// Version that the target holds; of a mixed target: the last one it held whole.
    weight_version version(target_id const& id = {}) const { return state(id).gate.version(); }
    /// An update failed after the first byte: do not serve. Never under `shadow`.
    bool mixed(target_id const& id = {}) const { return state(id).gate.mixed(); }
    /// Of a mixed target: parameters that the failed update wrote, or began to write.
    std::vector<std::string> const& written(target_id const& id = {}) const {
        return state(id).written;
    }
    /// Names the version anew: no weights change, and no hook is called.
    void relabel(std::string label, target_id const& id = {}) {
        state(id).gate.relabel(std::move(label));
    }

    /// The weights as they are now, for a reader on any thread. Under `in_place` it waits while an update is open.
    /// @throws timeout  at the deadline: an update is open, or the target is mixed
    /// @throws lifecycle_error, bad_argument  while the target sleeps; for one that is not here
    snapshot_type snapshot(deadline until, target_id const& id = {}) const {
        auto& s = const_cast<target_state&>(state(id));
        return snapshot_type{s.table, s.memory, s.gate, until};
    }
    /// Before the engine unmaps a target's weights: no snapshot is given, an open update ends, each waited for.
    /// @throws timeout  at the deadline; the target stays awake
    void sleep(deadline until, target_id const& id = {}) { state(id).gate.fall_asleep(until); }
    /// The weights are there again, whatever they are: their bytes are those of the memory that was mapped.
    void wake(target_id const& id = {}) noexcept {
        if (auto* s = find(id)) s->gate.wake();
    }
    /// What is done around the updates of every target.
    void hooks(serving_hooks hooks) { hooks_ = std::move(hooks); }
    /// How long an update waits for snapshots that hold what it will write, and for copies that its policy makes.
    void reader_limit(std::chrono::milliseconds limit) noexcept { reader_limit_ = limit; }

    /// What the target remembers of its last update ("same as last time").
    std::vector<parameter> const& remembered(target_id const& id = {}) const {
        return state(id).remembered;
    }
    void remember(target_id const& id, std::vector<parameter> parameters) {
        auto& s = state(id);
        s.merged = detail::roles_of_update{parameters.data(), parameters.size()}.merged != nullptr;
        s.remembered = std::move(parameters);
    }
    /// Forgets that metadata on every target, as a new group does.
    void forget() noexcept {
        for (auto& [_, s] : states_) s.remembered.clear();
    }

    // --- WeightTarget ---
    /// @throws bad_argument     for a target that is not here
    /// @throws lifecycle_error  while it sleeps, or another update is open
    /// @throws timeout          snapshots hold what would be written
    /// @throws what the pause hook throws; nothing is open
    void begin_update(target_id const& id) {
        auto& s = state(id);
        s.table.settle();
        s.memory.build(s.table.tensors(), deadline::after(reader_limit_));
        s.gate.open_update(deadline::after(reader_limit_));
        s.wrote = false;
        s.paused = false;
        if (policy_memory::sets == 2 || !hooks_.pause) return;
        try {
            hooks_.pause(id);
            s.paused = true;
        } catch (...) {
            s.gate.end_update();
            throw;
        }
    }
    std::optional<std::string> objection(
        target_id const& id, parameter const* parameters, std::size_t count,
        update_coverage promised = update_coverage::parameters) const {
        auto const* s = find(id);
        if (s == nullptr) return "target '" + to_string(id) + "' is not here";
        if (s->gate.asleep())
            return "target '" + to_string(id) + "' is asleep: its weights are not resident";
        detail::roles_of_update const roles{parameters, count};
        if (auto found = detail::role_objection(id, roles)) return found;
        if (auto found = counted_twice(id, roles)) return found;
        auto const check = s->table.check(parameters, count);
        if (s->gate.mixed() && !repairs(*s, check)) {
            return "target '" + to_string(id) + "' is mixed: only a full update repairs it";
        }
        return check.objection(promised);
    }
    /// Copies what the update does not bring to where it will be served from.
    /// @throws timeout  a copy was not done in time
    void prepare_writing(target_id const& id, parameter const* parameters, std::size_t count) {
        auto& s = state(id);
        if constexpr (policy_memory::sets == 2) {
            auto const check = s.table.check(parameters, count);
            std::vector<tensor_view<space>> kept;
            for (std::size_t own = 0; own < s.table.size(); ++own) {
                if (!check.is_written(own)) kept.push_back(s.table.tensors()[own]);
            }
            s.memory.carry(kept, s.gate.serving_set(), s.gate.written_set(),
                           deadline::after(reader_limit_));
        }
    }
    tensor_view<space> destination(target_id const& id, std::string_view name) {
        auto& s = state(id);
        auto const* found = s.table.whole(name);
        if (found == nullptr)
            throw bad_argument{"parameter '" + std::string{name} + "' is not here"};
        return written(s, *found);
    }
    std::optional<std::vector<placed_region<space>>> parts(target_id const& id,
                                                           parameter const& announced) const {
        auto const& s = state(id);
        auto all = s.table.parts(announced);
        if (all) {
            for (auto& part : *all) part.own = written(s, part.own);
        }
        return all;
    }
    /// The steps that the layers of an update without objection run.
    std::vector<layer_run<R>> layer_runs(target_id const& id, parameter const* parameters,
                                         std::size_t count) const {
        auto const& s = state(id);
        auto all = s.table.layer_runs(parameters, count);
        for (auto& run : all) {
            for (auto& output : run.outputs) output.tensor = written(s, output.tensor);
        }
        return all;
    }
    void mark_writing(target_id const& id) noexcept {
        if (auto* s = find(id)) s->wrote = true;
    }
    /// Which parameters a failed update had begun to write.
    void note_written(target_id const& id, std::vector<std::string> names) noexcept {
        if (auto* s = find(id)) s->written = std::move(names);
    }
    void publish(target_id const& id, weight_version const& version) noexcept {
        auto* s = find(id);
        if (s == nullptr) return;
        s->gate.publish(version);
        s->wrote = false;
        s->written.clear();
        end_update(*s, id, true);
    }
    void roll_back(target_id const& id) noexcept {
        auto* s = find(id);
        if (s == nullptr) return;
        bool const spoilt = std::exchange(s->wrote, false) && s->gate.spoil();
        end_update(*s, id, spoilt);
    }
    /// Why the last `publish` could not invalidate caches, or nothing.
    std::optional<std::string> publish_failure(target_id const& id) const {
        return state(id).hook_failure;
    }
    /// An open update has to end without writing on: the target falls asleep.
    bool stop_requested(target_id const& id) const noexcept {
        auto const* s = find(id);
        return s != nullptr && s->gate.stop_requested();
    }
    std::vector<std::string> not_covered(target_id const& id, parameter const* parameters,
                                         std::size_t count) const {
        return state(id).table.not_covered(parameters, count);
    }
    /// Names that the table does not know, where it accepts them.
    std::vector<std::string> unknown(target_id const& id, parameter const* parameters,
                                     std::size_t count) const {
        return state(id).table.unknown(parameters, count);
    }
    /// Parameters that mean one tensor: (index, index of the other).
    std::vector<std::pair<std::size_t, std::size_t>> alias_pairs(target_id const& id,
                                                                 parameter const* parameters,
                                                                 std::size_t count) const {
        return state(id).table.alias_pairs(parameters, count);
    }

  private:
    struct target_state {
        explicit target_state(std::string const& name) : gate{policy_memory::sets, name} {}
        parameter_table<R> table{};
        policy_memory memory{};
        snapshot_gate gate;
        std::vector<parameter> remembered{};
        std::vector<std::string> written{};
        std::optional<std::string> hook_failure{};
        bool merged = false;  // the last update brought weights that contain an adapter
        bool wrote = false;
        bool paused = false;
    };
    // An adapter that is here, and weights that contain one.
    std::optional<std::string> counted_twice(target_id const& id,
                                             detail::roles_of_update const& roles) const {
        for (auto const& [other, s] : states_) {
            if (roles.merged != nullptr && other.is_adapter() && s.gate.version().is_set()) {
                return "the update brings '" + roles.merged->name +
                       "' with an adapter merged into it, while target '" + to_string(other) +
                       "' is loaded: it would count twice; remove that target, or send the base";
            }
            if (id.is_adapter() && !other.is_adapter() && s.merged) {
                return "target '" + to_string(other) +
                       "' holds weights with an adapter merged into them: '" + to_string(id) +
                       "' would count twice; send the base first";
            }
        }
        return std::nullopt;
    }
    // Every parameter comes, and every buffer that the failed update had begun to write.
    static bool repairs(target_state const& s, update_check const& check) {
        if (!check.not_covered(false).empty()) return false;
        return std::ranges::all_of(s.written, [&](std::string const& name) {
            auto const own = s.table.index().look_up(name).own;
            return own == parameter_index::none || check.is_written(own) ||
                   s.table.index().own()[own].kind != own_kind::buffer;
        });
    }
    // Caches first, then readers.
    void end_update(target_state& s, target_id const& id, bool changed) noexcept {
        s.hook_failure.reset();
        if (changed) run(s, "invalidate", hooks_.invalidate, id);
        bool const stale = s.hook_failure.has_value();
        s.gate.end_update(stale);
        if (std::exchange(s.paused, false) && s.gate.readable())
            run(s, "resume", hooks_.resume, id);
    }
    static void run(target_state& s, char const* name,
                    std::function<void(target_id const&)> const& hook,
                    target_id const& id) noexcept {
        if (!hook) return;
        try {
            hook(id);
        } catch (std::exception const& e) {
            s.hook_failure = std::string{"hook '"} + name + "' failed: " + e.what();
        } catch (...) {
            s.hook_failure = std::string{"hook '"} + name + "' failed";
        }
    }
    static tensor_view<space> written(target_state const& s, tensor_view<space> const& own) {
        return s.memory.in_set(own, s.gate.written_set());
    }
    target_state* find(target_id const& id) noexcept {
        auto const found = states_.find(id);
        return found == states_.end() ? nullptr : &found->second;
    }
    target_state const* find(target_id const& id) const noexcept {
        return const_cast<parameter_tables*>(this)->find(id);
    }
    target_state& state(target_id const& id) {
        if (auto* s = find(id)) return *s;
        throw bad_argument{"target '" + to_string(id) + "' is not here"};
    }
    target_state const& state(target_id const& id) const {
        return const_cast<parameter_tables*>(this)->state(id);
    }
    std::map<target_id, target_state> states_;
    serving_hooks hooks_;
    std::chrono::milliseconds reader_limit_{std::chrono::seconds{10}};
};
static_assert(WeightTarget<parameter_tables<>>);
static_assert(has_remembered_metadata<parameter_tables<>> && has_coverage<parameter_tables<>> &&
              has_parts<parameter_tables<>>);

}  // namespace weightcast
