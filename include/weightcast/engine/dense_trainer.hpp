// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/engine is host-only: include it from a .cpp file"
#endif
// The sending side of dense updates: one source, any number of groups.

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <ranges>
#include <string>
#include <utility>
#include <vector>

#include <weightcast/align/broadcast_aligned.hpp>
#include <weightcast/align/detail/settle.hpp>
#include <weightcast/align/located.hpp>
#include <weightcast/align/source_order.hpp>
#include <weightcast/base/error.hpp>
#include <weightcast/base/expects.hpp>
#include <weightcast/base/sinks.hpp>
#include <weightcast/engine/concepts.hpp>
#include <weightcast/engine/detail/dense_send.hpp>
#include <weightcast/engine/detail/sender_group.hpp>
#include <weightcast/engine/detail/tensor_digests.hpp>
#include <weightcast/engine/engine_group.hpp>
#include <weightcast/engine/transfer_settings.hpp>
#include <weightcast/model/concepts.hpp>
#include <weightcast/model/target_id.hpp>
#include <weightcast/model/weight_version.hpp>
#include <weightcast/plan/announcement.hpp>
#include <weightcast/plan/packing_plan.hpp>

namespace weightcast {

/// Sends dense updates to the groups that it has joined. Of one thread. A group that fails is left out of the
/// rest of the update and does not stop the others; `failure(g)` tells why. With no group at all (a trainer
/// rank outside every group) `send` only walks the source, so that its collectives run on all ranks.
/// Cost: payload bytes once a group; sources are waited for, and staged, once a device and not once a group;
/// at most ring x chunk bytes of staging a device.
template <Communicator C, ProgressSink Progress = no_progress>
class dense_trainer {
    using runtime = typename C::runtime;

  public:
    using init_type = std::vector<group_init>;
    using target_type = target_id;
    using version_type = weight_version;
    using communicator_type = C;

    explicit dense_trainer(communicator_factory<C> factory, transfer_settings settings = {},
                           transfer_limits limits = {}, Progress progress = {})
        : factory_{std::move(factory)},
          settings_{settings},
          limits_{limits},
          progress_{std::move(progress)} {
        validate(settings.packing);
        if (settings.packing.ring > alignment_scope<C>::max_slots) {
            throw bad_argument{"packing: the ring has at most " +
                               std::to_string(alignment_scope<C>::max_slots) + " buffers"};
        }
    }

    /// Joins the groups; replaces those joined before. An empty list: this rank is outside every group.
    /// @throws bad_argument  for a rank that is no trainer of its group; the groups joined before stay
    /// @throws timeout, peer_error, bad_argument  no group is joined
    void init(init_type const& groups) {
        for (auto const& g : groups) check_trainer(g);
        shutdown();
        std::vector<std::unique_ptr<detail::sender_group<C>>> joined;
        for (auto const& g : groups)
            joined.push_back(std::make_unique<detail::sender_group<C>>(factory_, g));
        groups_ = std::move(joined);
    }

    /// What the next announced update promises to bring, instead of what the settings say.
    void promise(update_coverage coverage) noexcept { promised_ = coverage; }

    /// The preflight: metadata to every rank, agreed by all. Nothing of the payload has moved after it. Waits for
    /// the source's devices first, so that one which stays busy is an error while nobody waits for this rank.
    /// @throws bad_input, bad_argument, device_mismatch  the source's metadata is no plan; nobody waits
    /// @throws timeout  a source device was busy for the time of a whole update; nobody waits
    template <WeightSource<runtime> Source>
    void announce(Source& source, version_type const& version, target_type const& target) {
        limits_of_update_ = limits_.operations();
        announced_ = describe(source, version, target);
        wire_bytes_ = packing_plan{planned_tensors(announced_), announced_.options}.wire_bytes();
        detail::wait_for_sources<runtime>(
            std::views::transform(placements_, &tensor_placement::where), limits_of_update_.at);
        for (auto& g : groups_) g->begin();
        detail::packed_meeting meeting{alive().size()};
        for_each_group(
            [&](detail::sender_group<C>& g) {
                g.preflight(announced_, placements_, meeting, limits_of_update_);
            },
            [&] { meeting.leave(); });
    }

    /// The payload, to every group that agreed. Errors of the source are thrown after the groups were told.
    template <WeightSource<runtime> Source>
    void send(Source& source) {
        try {
            detail::dense_sender<C, Source, Progress> sender{
                source, placements_, alive(), announced_, limits_of_update_, progress_};
            wire_bytes_ = sender.wire_bytes();
            digests_ = sender.send();
        } catch (...) {
            for (auto* g : alive()) g->fail_with(std::current_exception(), true);
            for (auto& g : groups_) static_cast<void>(detail::settle(g->communicator()));
            throw;
        }
    }

    /// The agreement after the payload; a group that voted yes has acknowledged the version.
    void vote() {
        for_each_group([&](detail::sender_group<C>& g) { g.vote(digests_, limits_of_update_); },
                       [] {});
        if (!groups_.empty() && alive().size() == groups_.size() && delivers_bytes(announced_)) {
            acknowledged_ = announced_.version;
        }
    }

    /// Tells the groups that this update will not come, so that nobody waits for it.
    void announce_failure(std::string const& reason) noexcept {
        announcement failed;
        failed.kind = announcement_kind::failed;
        failed.reason = reason;
        for (auto& g : groups_) g->announce_failure(failed, limits_.operations());
    }

    /// The last version that every receiver of every group holds.
    version_type acknowledged() const { return acknowledged_; }
    /// Leaves the groups.
    void shutdown() { groups_.clear(); }

    std::size_t group_count() const noexcept { return groups_.size(); }
    std::string const& group_name(std::size_t g) const { return groups_.at(g)->name(); }
    int group_size(std::size_t g) const { return groups_.at(g)->size(); }
    /// Why group g left the current update; null: it did not.
    std::exception_ptr failure(std::size_t g) const { return groups_.at(g)->failure(); }
    /// Bytes that enter transfers of one group in the announced update, padding included.
    std::uint64_t wire_bytes() const noexcept { return wire_bytes_; }
    announcement const& announced() const noexcept { return announced_; }
    transfer_settings& settings() noexcept { return settings_; }
    /// How long updates may take from the next call on.
    transfer_limits& limits() noexcept { return limits_; }

  private:
    template <class Source>
    announcement describe(Source& source, version_type const& version, target_type const& target) {
        announcement a;
        a.target = target;
        a.version = version;
        a.options = settings_.packing;
        a.coverage = std::exchange(promised_, std::nullopt).value_or(settings_.coverage);
        a.verify = settings_.verify;
        a.shared = groups_.size() > 1;
        for (auto const& p : source.parameters()) {
            auto role = weight_role::base;
            if constexpr (requires {
                              { p.role } -> std::convertible_to<weight_role>;
                          })
                role = p.role;
            a.parameters.push_back({std::string{p.name}, p.type, extents{p.shape}, role});
        }
        placements_.clear();
        for (std::size_t i = 0; i < a.parameters.size(); ++i) {
            auto placed = source.placement(i);
            if (placed.where.is_accelerator())
                placed.where = placed.where.resolved_to(runtime::current_device());
            if (placed.where.is_accelerator() && placed.where.kind != runtime::kind) {
                fail_device_mismatch(
                    {phase::preflight, a.parameters[i].name}, -1,
                    "a device of kind " + std::string{to_string(runtime::kind)} + " or cpu",
                    to_string(placed.where));
            }
            placements_.push_back(placed);
        }
        a.roots.assign(a.parameters.size(), 0);
        a.packed.assign(a.parameters.size(), 0);
        return a;
    }
    std::vector<detail::sender_group<C>*> alive() {
        std::vector<detail::sender_group<C>*> list;
        for (auto& g : groups_) {
            if (!g->failure()) list.push_back(g.get());
        }
        return list;
    }
    // Each group waits for its own ranks: side by side, so that a slow one does not hold up the others.
    // `left` is called for a group whose step cannot run.
    template <class F, class Left>
    void for_each_group(F const& step, Left const& left) {
        auto const list = alive();
        detail::run_side_by_side(
            list.size(), [&](std::size_t i) { list[i]->attempt([&] { step(*list[i]); }); },
            [&](std::size_t i) {
                list[i]->fail_with(std::current_exception(), true);
                left();
            });
    }
    static void check_trainer(group_init const& g) {
        if (std::ranges::find(g.trainers, g.rank) != g.trainers.end()) return;
        throw bad_argument{"group '" + g.name + "': rank " + std::to_string(g.rank) +
                           " is none of its trainers (group_init::trainers), so it cannot send"};
    }

    communicator_factory<C> factory_;
    transfer_settings settings_;
    transfer_limits limits_;
    op_limits limits_of_update_{};  // of the announced one
    Progress progress_;
    std::vector<std::unique_ptr<detail::sender_group<C>>> groups_;
    std::optional<update_coverage> promised_;
    announcement announced_;
    std::vector<tensor_placement> placements_;
    std::vector<std::uint64_t> digests_;
    std::uint64_t wire_bytes_ = 0;
    version_type acknowledged_{};
};

}  // namespace weightcast
