// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/engine is host-only: include it from a .cpp file"
#endif
// The receiving side of dense updates: whole tensors, packed or direct, checked before anything is written.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <weightcast/base/error.hpp>
#include <weightcast/base/expects.hpp>
#include <weightcast/base/sinks.hpp>
#include <weightcast/engine/concepts.hpp>
#include <weightcast/engine/detail/dense_receive.hpp>
#include <weightcast/engine/detail/destinations.hpp>
#include <weightcast/engine/detail/membership.hpp>
#include <weightcast/engine/detail/tensor_digests.hpp>
#include <weightcast/engine/engine_group.hpp>
#include <weightcast/engine/transfer_settings.hpp>
#include <weightcast/kernels/model_digest.hpp>
#include <weightcast/model/concepts.hpp>
#include <weightcast/plan/announcement.hpp>
#include <weightcast/plan/packing_plan.hpp>

namespace weightcast {

/// One announced dense update.
struct dense_update {
    announcement announced{};
    std::optional<std::string> objection{};  ///< what this rank found wrong with the message itself

    target_id const& target() const noexcept { return announced.target; }
};

/// Receives dense updates from the trainers of one group into a target. Of one thread.
/// Every refusal before the payload reaches all ranks as `refused_update` and leaves the group usable; a
/// failure after it ends the group: `init` again.
/// Cost: metadata once; payload bytes once; at most ring x chunk bytes of buffers; two small all-reduces.
template <Communicator C, WeightTarget Target, ProgressSink Progress = no_progress>
    requires std::same_as<typename Target::space, typename C::runtime::space>
class dense_engine {
  public:
    using init_type = group_init;
    using update_type = dense_update;
    using target_type = typename Target::id_type;
    using version_type = typename Target::version_type;
    using communicator_type = C;

    /// The target must outlive the engine.
    dense_engine(communicator_factory<C> factory, Target& target, transfer_limits limits = {},
                 Progress progress = {})
        : factory_{std::move(factory)},
          target_{&target},
          limits_{limits},
          progress_{std::move(progress)} {}

    /// Joins the group; replaces the one joined before. Blocks until the group forms.
    /// @throws bad_argument  for a rank that is a trainer; the group joined before stays
    /// @throws timeout, peer_error, bad_argument  nothing is joined
    void init(init_type const& init) {
        check_receiver(init);
        if constexpr (has_remembered_metadata<Target>) target_->forget();
        in_protocol_ = false;
        member_.join(factory_, init);
    }

    /// Waits for the trainers' next update: no transfer, bounded by `limits.announcement`.
    /// @throws refused_update       a trainer said that it failed first: the group is usable, call `next` again
    /// @throws timeout, peer_error  none came, or a trainer is gone: form the group anew
    update_type next() {
        member().require_alive();
        auto const expected =
            member().next_epoch();  // announcements that end in an error count too
        auto all = in_step([&] {
            return member().exchange(std::nullopt, limits_.waiting(),
                                     [&] { return limits_.operations(); });
        });
        if (!all.objection && all.merged.epoch != expected) {
            all.objection = "announcement " + std::to_string(all.merged.epoch) + " came where " +
                            std::to_string(expected) + " was expected";
        }
        in_protocol_ = true;
        return {std::move(all.merged), std::move(all.objection)};
    }

    /// Opens an update of that target. Dense parameters of whole tensors have nothing to prepare.
    /// @throws bad_argument  for a target that is not here
    void start(target_type const& target) {
        target_->begin_update(target);
        open_target_ = target;
        received_.reset();
        reception_ = {};
        delivers_ = false;
        local_failure_.reset();
    }

    /// Answers the announced update with an objection instead of receiving it.
    /// @throws refused_update  always, unless the group fails: nothing was written, and the group is usable
    void refuse(update_type const& update, std::string const& reason) {
        static_cast<void>(update);
        in_step([&] { agree(reason, limits_.operations(), phase::preflight); });
    }

    /// Takes part in the preflight, then receives the payload.
    /// @throws lifecycle_error  for a second announcement in one update: the vote on the first is due
    /// @throws refused_update  some rank objected: nothing was written, and the group is usable
    /// @throws timeout, peer_error, group_aborted  in the payload: roll back, and form the group anew
    void receive(update_type const& update) {
        if (received_)
            throw lifecycle_error{"receive: an announced update was received; its vote comes next"};
        auto& m = member();
        auto const limits = limits_.operations(update.announced.shared);
        limits_of_update_ = limits;
        in_protocol_ = true;
        received_ = update.announced;
        agree(objection_to(update), limits, phase::preflight);
        m.agree_on_packed(*received_, limits, [](auto&) {});
        delivers_ = delivers_bytes(*received_);
        auto const unprepared = delivers_ ? prepare_writing() : std::nullopt;
        auto const failed =
            detail::receive_dense(m.communicator(), *received_, reception_, limits, progress_);
        local_failure_ = unprepared ? unprepared : failed;
    }

    /// The vote of all ranks. A failure of this rank alone in the payload is its no.
    /// @throws refused_update  some rank voted no: roll back; the group is usable
    void prepare() {
        WEIGHTCAST_EXPECTS(received_.has_value(), "prepare: nothing was received in this update");
        auto objection = received_->verify ? compare_digests(limits_of_update_) : std::nullopt;
        if (!objection && !local_failure_) objection = different_aliases();
        agree(local_failure_ ? local_failure_ : objection,
              detail::vote_limits(limits_of_update_, *received_), phase::vote);
        in_protocol_ = false;
    }

    /// Publishes the version: local, after every rank voted yes.
    void commit() noexcept {
        in_protocol_ = false;
        if (!received_ || !delivers_)
            return target_->roll_back(open_target_);  // nothing was written
        if constexpr (has_remembered_metadata<Target>) {
            target_->remember(open_target_, std::move(received_->parameters));
        }
        target_->publish(open_target_, received_->version);
        received_.reset();
    }
    /// Undoes the update as the target's policy promises: local. Peers that still wait for this rank hear an
    /// aborted group at once.
    void rollback() noexcept {
        if (in_protocol_) member_.interrupt();
        in_protocol_ = false;
        note_written();
        target_->roll_back(open_target_);
        received_.reset();
    }
    /// Why the last commit could not do all that goes with it, or nothing: the version is published all the same.
    std::optional<std::string> commit_failure() const {
        if constexpr (has_publish_failure<Target>) return target_->publish_failure(open_target_);
        return std::nullopt;
    }
    /// Leaves the group.
    void shutdown() { member_.leave(); }
    /// Ends what this engine waits for, from any thread: the running call throws, and the group is aborted.
    void interrupt() noexcept { member_.interrupt(); }

    /// What the open update brought.
    template <class Report>
    void describe(Report& report) const {
        report.target = open_target_;
        report.version = target_->version(open_target_);
        if (!received_) return;
        auto const& parameters = received_->parameters;
        report.tensors = parameters.size();
        for (auto const& p : parameters) report.bytes += p.bytes();
        if constexpr (has_coverage<Target>) {
            report.not_covered =
                target_->not_covered(open_target_, parameters.data(), parameters.size());
        }
        if constexpr (has_unknown_names<Target>) {
            report.unknown = target_->unknown(open_target_, parameters.data(), parameters.size());
        }
        report.held_bytes = reception_.held_peak;
        if (!delivers_) return;
        report.status = decltype(report.status)::updated;
        report.version = received_->version;
    }

    Target& target() noexcept { return *target_; }
    /// How long updates may take from the next call on.
    transfer_limits& limits() noexcept { return limits_; }
    /// The group. @throws lifecycle_error  before init
    engine_group<C>& member() { return member_.get(); }

  private:
    using space = typename C::runtime::space;

    // Whatever this rank cannot do is an objection: peers that agreed would wait for it.
    std::optional<std::string> objection_to(update_type const& update) {
        try {
            if (auto found = metadata_objection(update)) return found;
            plan_reception();
            // last: the destinations say what has to be packed
            return detail::ring_objection<C>(*received_, limits_.ring_bytes);
        } catch (std::exception const& e) {
            return e.what();
        } catch (...) {
            return "the target threw what is no std::exception";
        }
    }
    void plan_reception() {
        auto& r = reception_;
        auto const& parameters = received_->parameters;
        r.destinations.resize(parameters.size());
        r.held_limit = limits_.held_bytes;
        if constexpr (has_layer_runs<Target>) {
            r.layers = target_->layer_runs(open_target_, parameters.data(), parameters.size());
            for (auto const& run : r.layers) {
                for (auto const t : run.inputs) r.destinations[t].held = true;
            }
        }
        if constexpr (has_aliases<Target>) {
            r.same = target_->alias_pairs(open_target_, parameters.data(), parameters.size());
            for (auto const& [again, _] : r.same) r.destinations[again].in_parts = true;  // no part
        }
        if constexpr (has_stop_request<Target>) {
            r.stop = [this] { return target_->stop_requested(open_target_); };
        }
        detail::add_destinations(r.destinations, *received_, *target_, open_target_,
                                 member().communicator());
    }
    // From here on the target's bytes change. What this rank cannot do is its no at the vote.
    std::optional<std::string> prepare_writing() {
        std::optional<std::string> failure;
        if constexpr (has_write_preparation<Target>) {
            auto const& parameters = received_->parameters;
            try {
                target_->prepare_writing(open_target_, parameters.data(), parameters.size());
            } catch (std::exception const& e) {
                failure = e.what();
            }
        }
        target_->mark_writing(open_target_);
        return failure;
    }
    void note_written() noexcept {
        if constexpr (has_written_names<Target>) {
            try {
                std::vector<std::string> names;
                for (std::size_t i = 0; received_ && i < reception_.begun.size(); ++i) {
                    if (reception_.begun[i] != 0) names.push_back(received_->parameters[i].name);
                }
                if (!names.empty()) target_->note_written(open_target_, std::move(names));
            } catch (...) {  // out of memory for a list: the target is mixed all the same
            }
        }
    }
    std::optional<std::string> different_aliases() {
        for (auto const& [again, first] : reception_.same) {
            auto const a = digest_of(again);
            auto const b = digest_of(first);
            if (a == b) continue;
            auto const& all = received_->parameters;
            return "tensors '" + all[again].name + "' and '" + all[first].name +
                   "' share memory, but other bytes came for one (digest " + digest_text(a) +
                   ") than for the other (" + digest_text(b) + ")";
        }
        return std::nullopt;
    }
    // Of what arrived.
    std::uint64_t digest_of(std::size_t tensor) {
        auto const found = reception_.digests.find(tensor);
        if (found != reception_.digests.end()) return found->second;
        return tensor_digest(
            view_of(target_->destination(open_target_, received_->parameters[tensor].name)));
    }
    // Outside an open update nobody rolls back: what fails here has left the steps of the others, who hear of it.
    template <class F>
    auto in_step(F const& call) {
        try {
            return call();
        } catch (refused_update const&) {  // on all ranks alike
            throw;
        } catch (...) {
            member_.interrupt();
            throw;
        }
    }
    static void check_receiver(group_init const& init) {
        if (std::ranges::find(init.trainers, init.rank) == init.trainers.end()) return;
        throw bad_argument{"group '" + init.name + "': rank " + std::to_string(init.rank) +
                           " is a trainer of it (group_init::trainers), so it cannot receive"};
    }
    std::optional<std::string> metadata_objection(update_type const& update) const {
        if (update.objection) return update.objection;
        auto const& a = update.announced;
        if (a.target != open_target_) {
            return "the update is of target '" + to_string(a.target) + "', but '" +
                   to_string(open_target_) + "' was started";
        }
        return target_->objection(open_target_, a.parameters.data(), a.parameters.size(),
                                  a.coverage);
    }
    void agree(std::optional<std::string> const& objection, op_limits const& limits, phase where) {
        auto const refused = member().mailbox().agree(objection, limits, where);
        if (!refused) return;
        in_protocol_ = false;
        fail<refused_update>(
            "refused by rank " + std::to_string(refused->rank) + ": " + refused->reason,
            {.where = where, .rank = member().communicator().rank(), .suspect = refused->rank});
    }
    std::optional<std::string> compare_digests(op_limits const& limits) {
        auto& m = member();
        std::vector<std::uint64_t> expected;
        try {
            expected = detail::exchange_digests<C>(m, std::nullopt, *received_, limits);
        } catch (bad_input const& e) {
            return e.what();
        }
        for (std::size_t i = 0; i < received_->parameters.size(); ++i) {
            auto const& p = received_->parameters[i];
            auto const actual = digest_of(i);
            if (actual != expected[i]) {
                return "tensor '" + p.name + "' arrived with digest " + digest_text(actual) +
                       ", sent with " + digest_text(expected[i]);
            }
        }
        return std::nullopt;
    }

    communicator_factory<C> factory_;
    Target* target_;
    transfer_limits limits_;
    Progress progress_;
    detail::membership<C> member_;
    target_type open_target_{};
    std::optional<announcement> received_;
    op_limits limits_of_update_{};                        // of the received one
    detail::reception<typename C::runtime> reception_{};  // of the received one
    std::optional<std::string> local_failure_;            // in the payload, on this rank alone
    bool delivers_ = false;     // the received one has bytes: there is something to publish
    bool in_protocol_ = false;  // peers wait for this rank
};

}  // namespace weightcast
