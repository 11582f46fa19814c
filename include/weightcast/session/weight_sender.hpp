// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/session is host-only: include it from a .cpp file"
#endif
// A trainer's side: one call an update, with a result for every group and rank.

#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <ranges>
#include <string>
#include <utility>
#include <vector>

#include <weightcast/base/error.hpp>
#include <weightcast/engine/concepts.hpp>
#include <weightcast/model/target_id.hpp>
#include <weightcast/model/weight_version.hpp>
#include <weightcast/session/update_result.hpp>

namespace weightcast {

/// What a caller may say of one update.
struct update_options {
    target_id target{};
    std::optional<std::string> label{};  ///< of the version
    bool allow_empty = false;            ///< an update without tensors counts as done
};

/// Owns a trainer engine and counts versions. Of one thread.
template <class E>
class weight_sender {
  public:
    using init_type = typename E::init_type;

    explicit weight_sender(E engine) : engine_{std::move(engine)} {}
    weight_sender(E engine, init_type const& init) : engine_{std::move(engine)} { engine_.init(init); }

    /// Joins groups. @throws what the engine's init throws
    void init(init_type const& init) { engine_.init(init); }

    /// Sends the source's tensors to every group: preflight, payload, vote. A failed group is told in the
    /// result and does not stop the others.
    /// @throws what the source throws: no group has published; groups that were in the payload are broken
    template <class Source>
        requires TrainerEngine<E, init_type, Source>
    update_result update(Source& source, update_options const& options = {}) {
        update_result result;
        result.target = options.target;
        result.version = {next_version_++, options.label};
        step(result, phase::preflight, [&] { engine_.announce(source, result.version, options.target); });
        step(result, phase::payload, [&] { engine_.send(source); });
        step(result, phase::vote, [&] { engine_.vote(); });
        describe(result, options);
        return result;
    }

    /// Tells the workers that the announced step will not come; they go on waiting for the next.
    void announce_failure(std::string const& reason) noexcept { engine_.announce_failure(reason); }

    /// The last version that every receiver of every group holds.
    weight_version acknowledged() const { return engine_.acknowledged(); }
    E& engine() noexcept { return engine_; }

  private:
    template <class F>
    static void step(update_result& result, phase where, F const& run) {
        phase_timer const timer{result.seconds, where};
        run();
    }
    void describe(update_result& result, update_options const& options) {
        auto const& announced = engine_.announced();
        result.tensors = announced.parameters.size();
        for (auto const& p : announced.parameters) result.bytes += p.bytes();
        result.wire_bytes = engine_.wire_bytes();
        bool ok = true;
        for (std::size_t g = 0; g < engine_.group_count(); ++g) {
            result.groups.push_back(group_of(g));
            ok = ok && result.groups.back().ok();
        }
        if (!ok) result.status = update_status::failed;
        else if (result.tensors == 0 && !options.allow_empty) result.status = update_status::nothing_updated;
        else result.status = update_status::updated;
    }
    group_result group_of(std::size_t g) const {
        group_result one{.name = engine_.group_name(g), .failure = engine_.failure(g)};
        one.ranks.assign(static_cast<std::size_t>(engine_.group_size(g)), rank_status::updated);
        if (one.failure) explain(one);
        return one;
    }
    // A refusal leaves every rank as it was; any other failure leaves open what the ranks hold.
    static void explain(group_result& one) {
        try {
            std::rethrow_exception(one.failure);
        } catch (refused_update const& e) {
            one.message = e.what();
            mark(one, rank_status::unchanged, e.facts().suspect, rank_status::refused);
        } catch (error const& e) {
            one.message = e.what();
            mark(one, rank_status::unknown, e.facts().suspect, rank_status::lost);
        } catch (std::exception const& e) {
            one.message = e.what();
            mark(one, rank_status::unknown, -1, rank_status::lost);
        }
    }
    static void mark(group_result& one, rank_status all, int suspect, rank_status its) {
        for (auto& r : one.ranks) r = all;
        if (suspect >= 0 && static_cast<std::size_t>(suspect) < one.ranks.size()) {
            one.ranks[static_cast<std::size_t>(suspect)] = its;
        }
    }

    E engine_;
    std::uint64_t next_version_ = 1;
};

}  // namespace weightcast
