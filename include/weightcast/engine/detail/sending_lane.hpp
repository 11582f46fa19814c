// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/engine is host-only: include it from a .cpp file"
#endif
// Groups whose communicators are on one device: the first packs, the others share what it packed.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <weightcast/align/alignment_scope.hpp>
#include <weightcast/engine/detail/sender_group.hpp>
#include <weightcast/engine/detail/transfer_steps.hpp>
#include <weightcast/model/concepts.hpp>
#include <weightcast/plan/announcement.hpp>
#include <weightcast/plan/packing_plan.hpp>

namespace weightcast::detail {

/// One group in a lane: its scope, and how far it is in the chunks of the group's plan.
template <class C>
class sending_seat {
    using runtime = typename C::runtime;

  public:
    sending_seat(sender_group<C>& group, scope_options options)
        : group_{group},
          scope_{group.communicator(), options},
          tensors_{planned_tensors(group.agreed())},
          plan_{tensors_, group.agreed().options} {}

    sender_group<C>& group() noexcept { return group_; }
    alignment_scope<C>& scope() noexcept { return scope_; }
    typename runtime::stream_ref collective_stream() {
        return group_.communicator().core().collective_stream();
    }

    /// Receives, and drops, the chunks of other trainers that come before this rank's next one.
    void receive_foreign(op_limits const& limits) {
        group_.attempt([&] {
            auto const chunks = plan_.chunks();
            for (; next_ < chunks.size() && chunks[next_].root != group_.rank(); ++next_) {
                operation const op{{phase::payload, chunk_name(chunks[next_], group_.agreed())},
                                   limits};
                auto const dropped =
                    scope_.chunk(static_cast<std::size_t>(chunks[next_].bytes), op.label);
                group_.communicator().broadcast_into(dropped, chunks[next_].root, op);
            }
        });
    }
    /// Sends this rank's next chunk.
    template <class Trace>
    void send(resident<C> const& chunk, operation const& op, Trace& trace) {
        receive_foreign(op.limits);
        group_.attempt([&] {
            trace.record("broadcast", op.label.tensor(), collective_stream(),
                         [&] { group_.communicator().broadcast_from(chunk, op); });
            ++next_;
        });
    }

    void open_window(operation const& op) {
        if (!group_.failure()) window_.reset(new resident_group<C>(scope_.send_group(op)));
    }
    template <class View>
    void add_direct(View const& view, typename runtime::stream_ref made_on,
                    operation_label const& label) {
        if (!window_ || group_.failure()) return;
        group_.attempt([&] { window_->add(scope_.align(view, produced_on{made_on}, label)); });
    }
    template <class Trace>
    void submit_window(std::string_view name, Trace& trace) {
        if (!window_) return;
        if (!group_.failure()) {
            group_.attempt([&] {
                trace.record("broadcast", name, collective_stream(), [&] { window_->submit(); });
            });
        }
        window_.reset();
    }
    /// Blocks until this group's bytes have left the sources.
    void wait_all(deadline until) {
        group_.attempt([&] {
            auto& core = group_.communicator().core();
            auto done = core.take_event();
            runtime::record(done.ref(), core.collective_stream());
            group_.communicator().wait(done.ref(), until, {phase::payload, "end of payload"});
            core.give_event(std::move(done));
        });
    }

  private:
    sender_group<C>& group_;
    alignment_scope<C> scope_;
    std::vector<planned_tensor> tensors_;
    packing_plan plan_;
    std::size_t next_ = 0;
    std::unique_ptr<resident_group<C>> window_;
};

template <class C>
class sending_lane {
    using runtime = typename C::runtime;
    using space = typename runtime::space;

  public:
    explicit sending_lane(device where) : where_{where} {}
    ~sending_lane() {
        while (!seats_.empty()) seats_.pop_back();  // scopes nest: the last one opened ends first
    }
    sending_lane(sending_lane const&) = delete;

    device where() const noexcept { return where_; }
    /// The stream on which this lane packs its next chunk.
    typename runtime::stream_ref copy_stream() {
        return lead().group().communicator().core().copy_stream();
    }
    void add(sender_group<C>& group, scope_options options) {
        seats_.push_back(std::make_unique<sending_seat<C>>(group, options));
    }
    template <class F>
    void each_seat(F const& f) {
        for (auto& seat : seats_) f(*seat);
    }

    /// Some group of the lane still takes part.
    bool is_alive() const noexcept {
        return std::ranges::any_of(seats_, [](auto const& s) { return !s->group().failure(); });
    }
    /// Packs once, sends to every group of the lane.
    template <class Trace>
    void send_chunk(std::span<packed_member<space> const> members, packed_chunk const& chunk,
                    operation const& op, Trace& trace) {
        auto& first = lead();
        first.receive_foreign(op.limits);
        auto const packed = trace.record("pack", op.label.tensor(), copy_stream(), [&] {
            return first.scope().pack(members, static_cast<std::size_t>(chunk.bytes), op.label);
        });
        first.send(packed, op, trace);
        for (auto& seat : seats_) {
            if (seat.get() == &first || seat->group().failure()) continue;
            seat->receive_foreign(op.limits);
            seat->send(seat->scope().share(packed), op, trace);
        }
    }

  private:
    // A group that failed packs for the others no longer: its streams may be stuck.
    sending_seat<C>& lead() {
        auto const alive =
            std::ranges::find_if(seats_, [](auto const& s) { return !s->group().failure(); });
        return alive == seats_.end() ? *seats_.front() : **alive;
    }
    device where_;
    std::vector<std::unique_ptr<sending_seat<C>>> seats_;
};

}  // namespace weightcast::detail
