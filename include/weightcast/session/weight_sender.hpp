// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/session is host-only: include it from a .cpp file"
#endif
// A trainer's side: one call an update, with a result for every group and rank.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <utility>

#include <weightcast/base/byte_count.hpp>
#include <weightcast/base/error.hpp>
#include <weightcast/engine/concepts.hpp>
#include <weightcast/model/target_id.hpp>
#include <weightcast/model/update_coverage.hpp>
#include <weightcast/model/weight_version.hpp>
#include <weightcast/session/update_result.hpp>
#include <weightcast/tensor/dtype.hpp>
#include <weightcast/tensor/extents.hpp>

namespace weightcast {

/// What a caller may say of one update.
struct update_options {
    target_id target{};
    std::optional<std::string> label{};  ///< of the version
    bool allow_empty = false;            ///< an update without tensors counts as done
    /// How much of the target it brings; nothing: as the engine is set, by default every parameter.
    std::optional<update_coverage> coverage{};
    /// The number of the version, for an update that is sent again; nothing: the next one. Later updates count on from
    /// the highest.
    std::optional<std::uint64_t> number{};
};

/// Owns a trainer engine and counts versions: each update takes the next number, whatever becomes of it. Of one
/// thread.
template <class E>
class weight_sender {
  public:
    using engine_type = E;
    using init_type = typename E::init_type;

    explicit weight_sender(E engine) : engine_{std::move(engine)} {}
    weight_sender(E engine, init_type const& init) : engine_{std::move(engine)} {
        engine_.init(init);
    }

    /// Joins groups. @throws what the engine's init throws
    void init(init_type const& init) { engine_.init(init); }

    /// Sends the source's tensors to every group: preflight, payload, vote. A failed group is told in the
    /// result and does not stop the others; an engine without groups of its own throws its failure.
    /// @throws bad_argument  for a coverage that the engine cannot promise; nobody waits
    /// @throws what the source throws: no group has published; groups that were in the payload are broken
    template <class Source>
        requires TrainerEngine<E, init_type, Source>
    update_result update(Source& source, update_options const& options = {}) {
        promise(options);
        update_result result;
        result.target = options.target;
        result.version = {options.number.value_or(next_version_), options.label};
        next_version_ = std::max(next_version_, result.version.number + 1);
        add_groups(result);
        add_totals(result, source);  // first: after the vote, nothing of the source may fail
        step(result, phase::preflight,
             [&] { engine_.announce(source, result.version, options.target); });
        step(result, phase::payload, [&] { engine_.send(source); });
        step(result, phase::vote, [&] { engine_.vote(); });
        if constexpr (has_wire_bytes<E>) result.wire_bytes = engine_.wire_bytes();
        conclude(result, options);
        return result;
    }

    /// Tells the workers that the announced step will not come; they go on waiting for the next.
    void announce_failure(std::string const& reason) noexcept
        requires has_failure_announcement<E>
    {
        engine_.announce_failure(reason);
    }

    /// The last version that every receiver of every group holds.
    weight_version acknowledged() const { return engine_.acknowledged(); }
    E& engine() noexcept { return engine_; }
    E const& engine() const noexcept { return engine_; }

  private:
    void promise(update_options const& options) {
        if (!options.coverage) return;
        if constexpr (has_promise<E>) {
            engine_.promise(*options.coverage);
        } else {
            throw bad_argument{
                "update_options::coverage: this engine cannot promise how much it brings"};
        }
    }
    template <class F>
    void step(update_result& result, phase where, F const& run) {
        {
            phase_timer const timer{result.seconds, where};
            run();
        }
        note_failures(result, where);
    }
    void add_groups(update_result& result) const {
        if constexpr (has_groups<E>) {
            for (std::size_t g = 0; g < engine_.group_count(); ++g) {
                result.groups.push_back({.name = engine_.group_name(g)});
                result.groups.back().ranks.resize(static_cast<std::size_t>(engine_.group_size(g)));
            }
        }
    }
    // A group's failure belongs to the step in which it came up.
    void note_failures(update_result& result, phase where) const {
        if constexpr (has_groups<E>) {
            for (std::size_t g = 0; g < result.groups.size(); ++g) {
                auto& one = result.groups[g];
                if (one.failure) continue;
                one.failure = engine_.failure(g);
                one.where = where;
            }
        }
    }
    template <class Source>
    void add_totals(update_result& result, Source const& source) const {
        for (auto const& p : source.parameters()) {
            ++result.tensors;
            auto const bytes = checked_multiply(element_count(extents{p.shape}), item_size(p.type));
            result.bytes = checked_add(result.bytes, bytes);
        }
    }
    static void conclude(update_result& result, update_options const& options) {
        bool const moved = result.bytes != 0;
        bool ok = true;
        for (auto& one : result.groups) {
            if (one.failure)
                explain(one);
            else
                std::ranges::fill(one.ranks, moved ? rank_status::updated : rank_status::unchanged);
            ok = ok && one.ok();
        }
        if (!ok)
            result.status = update_status::failed;
        else if (!moved && !options.allow_empty)
            result.status = update_status::nothing_updated;
        else
            result.status = update_status::updated;
    }
    static void explain(group_result& one) {
        try {
            std::rethrow_exception(one.failure);
        } catch (refused_update const& e) {
            one.message = e.what();
            mark(one, e.facts().suspect, rank_status::refused);
        } catch (error const& e) {
            one.message = e.what();
            mark(one, e.facts().suspect, rank_status::lost);
        } catch (std::exception const& e) {
            one.message = e.what();
            mark(one, -1, rank_status::lost);
        }
    }
    // What the ranks hold follows from how far they were: written is what came after the preflight, and a rank
    // publishes only after a vote that passed.
    static void mark(group_result& one, int suspect, rank_status its) {
        bool const voted_down = one.where == phase::vote && its == rank_status::refused;
        auto all = rank_status::unknown;
        if (one.where == phase::preflight)
            all = rank_status::unchanged;
        else if (one.where == phase::payload || voted_down)
            all = rank_status::rolled_back;
        std::ranges::fill(one.ranks, all);
        if (suspect < 0 || static_cast<std::size_t>(suspect) >= one.ranks.size()) return;
        one.ranks[static_cast<std::size_t>(suspect)] = its;
    }

    E engine_;
    std::uint64_t next_version_ = 1;
};

}  // namespace weightcast
