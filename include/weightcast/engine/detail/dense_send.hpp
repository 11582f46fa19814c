// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/engine is host-only: include it from a .cpp file"
#endif
// The payload of a dense update at a sender: sources aligned once a device, sent to every group on it.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <ranges>
#include <string>
#include <utility>
#include <vector>

#include <weightcast/align/alignment_scope.hpp>
#include <weightcast/align/broadcast_aligned.hpp>
#include <weightcast/base/error.hpp>
#include <weightcast/engine/detail/fetched_tensors.hpp>
#include <weightcast/engine/detail/sending_lane.hpp>
#include <weightcast/engine/detail/stream_trace.hpp>
#include <weightcast/engine/detail/transfer_steps.hpp>
#include <weightcast/model/concepts.hpp>
#include <weightcast/plan/announcement.hpp>
#include <weightcast/plan/packing_plan.hpp>
#include <weightcast/runtime/event.hpp>
#include <weightcast/runtime/stream.hpp>
#include <weightcast/runtime/stream_sync_scope.hpp>

namespace weightcast::detail {

template <class C, class Source, class Progress>
class dense_sender {
    using runtime = typename C::runtime;
    using space = typename runtime::space;
    using stream_ref = typename runtime::stream_ref;

  public:
    /// `own` is this rank's announcement; its flags are replaced by what the groups agreed on.
    dense_sender(Source& source, std::vector<tensor_placement> const& placements,
                 std::vector<sender_group<C>*> const& groups, announcement const& own,
                 op_limits const& limits, Progress& progress)
        : source_{source},
          placements_{placements},
          own_{own},
          limits_{limits},
          progress_{progress} {
        for (auto* g : groups) {
            own_.verify = own_.verify || g->agreed().verify;
            for (std::size_t i = 0; i < own_.packed.size(); ++i) {
                own_.packed[i] |= g->agreed().packed[g->own_begin() + i];
            }
        }
        tensors_ = planned_tensors(own_);
        plan_ = packing_plan{tensors_, own_.options};
        steps_ = transfer_steps(plan_, own_);
        scope_options const options{.slots = static_cast<int>(own_.options.ring),
                                    .slot_bytes = static_cast<std::size_t>(plan_.slot_bytes())};
        for (auto* g : groups) lane_of(g->communicator().where()).add(*g, options);
    }
    dense_sender(dense_sender const&) = delete;
    dense_sender& operator=(dense_sender const&) = delete;
    ~dense_sender() {
        while (!lanes_.empty()) lanes_.pop_back();  // scopes nest: the last one opened ends first
    }

    /// Bytes that enter transfers of one group, padding included.
    std::uint64_t wire_bytes() const noexcept { return plan_.wire_bytes(); }

    /// Sends everything; returns the digests of the tensors where the update is verified.
    std::vector<std::uint64_t> send() {
        auto const until = earlier(limits_.at, deadline::after(limits_.stall));
        wait_for_sources<runtime>(std::views::transform(placements_, &tensor_placement::where),
                                  until);
        if (lanes_.empty()) return walk();
        progress_.begin(phase::payload, plan_.wire_bytes());
        fetched_tensors<runtime, Source> fetched{source_, lanes_.front()->copy_stream(), own_,
                                                 ambient_, limits_.at};
        try {
            auto digests = send_all(fetched);
            progress_.end();
            return digests;
        } catch (...) {
            order_everything_before(
                fetched.source_stream());  // what is still read is released behind its readers
            throw;
        }
    }

  private:
    std::vector<std::uint64_t> send_all(fetched_tensors<runtime, Source>& fetched) {
        for (auto const& step : steps_) {
            fetched.fetch_up_to(step.last_tensor);
            if (step.chunk != nullptr) {
                send_chunk(*step.chunk, fetched);
            } else {
                send_window(step.window, fetched);
            }
        }
        fetched.fetch_rest();
        each_seat([&](auto& seat) { seat.receive_foreign(limits_); });
        auto digests = own_.verify ? fetched.digests() : std::vector<std::uint64_t>{};
        each_seat([&](auto& seat) { seat.wait_all(limits_.at); });
        take_trace();
        return digests;
    }
    // Streams of a group that failed may still be at it.
    void take_trace() {
        bool all_done = true;
        each_seat([&](auto& seat) { all_done = all_done && !seat.group().failure(); });
        if (all_done) trace_.take(progress_);
    }
    // A trainer rank outside every group takes part in what the source does to make its tensors.
    std::vector<std::uint64_t> walk() {
        stream<runtime> aside{cpu_device};
        // Also when the source throws: its work reads tensors that are the caller's again after this.
        stream_sync_scope<runtime> const work{aside.ref()};
        walk_on(aside.ref());
        event<runtime> made{};
        runtime::record(made.ref(), aside.ref());
        if (!runtime::wait(made.ref(), limits_.at)) {
            fail<timeout>("the source did not make its tensors", {.where = phase::payload});
        }
        return {};
    }
    void walk_on(stream_ref made_on) {
        fetched_tensors<runtime, Source> fetched{source_, made_on, own_, ambient_, limits_.at};
        for (std::size_t i = 0; i < own_.parameters.size(); ++i) {
            fetched.fetch_up_to(i);
            fetched.release(i, made_on);
        }
    }

    void send_chunk(packed_chunk const& chunk, fetched_tensors<runtime, Source>& fetched) {
        std::vector<packed_member<space>> members;
        members.reserve(chunk.members.size());
        for (auto const& m : chunk.members) {
            members.push_back({fetched[m.tensor], m.first_byte, m.first_byte + m.bytes, m.offset});
        }
        operation const op{{phase::payload, chunk_name(chunk, own_)}, limits_};
        auto const source_stream = fetched.source_stream();
        for (auto& lane : lanes_) {
            if (!lane->is_alive()) continue;  // the source is still asked for every tensor
            auto const packing = lane->copy_stream();
            order(source_stream, packing);
            lane->send_chunk(members, chunk, op, trace_);
            order(packing, source_stream);
        }
        fetched.release_complete(chunk, source_stream);
        throttle(chunk, source_stream);
    }
    // At most a ring of chunks is ahead of the transport, so that tensors made for the moment are bounded.
    void throttle(packed_chunk const& chunk, stream_ref source_stream) {
        auto& packed = packed_.emplace_back();
        runtime::record(packed.ref(), source_stream);
        sent_bytes_ += chunk.bytes;
        if (packed_.size() <= own_.options.ring) return;
        if (!runtime::wait(packed_.front().ref(), limits_.at)) {
            fail<timeout>("the deadline passed while chunks were packed",
                          {.where = phase::payload, .bytes_done = sent_bytes_});
        }
        packed_.pop_front();
        progress_.advance(sent_bytes_, chunk_name(chunk, own_));
    }
    void send_window(direct_window const& window, fetched_tensors<runtime, Source>& fetched) {
        auto const first = plan_.direct()[window.first].tensor;
        operation const op{{phase::payload, own_.parameters[first].name}, limits_};
        each_seat([&](auto& seat) { seat.open_window(op); });
        for (std::size_t i = window.first; i < window.last; ++i) {
            auto const index = plan_.direct()[i].tensor;
            auto const& view = fetched[index];
            operation_label const label{phase::payload, own_.parameters[index].name};
            each_seat([&](auto& seat) { seat.add_direct(view, fetched.source_stream(), label); });
        }
        each_seat([&](auto& seat) { seat.submit_window(own_.parameters[first].name, trace_); });
        release_window(window, fetched);
        sent_bytes_ += window.bytes;
        progress_.advance(sent_bytes_, own_.parameters[first].name);
    }
    void release_window(direct_window const& window, fetched_tensors<runtime, Source>& fetched) {
        if constexpr (has_tensor_release<Source, runtime>) {
            each_seat(
                [&](auto& seat) { order(seat.collective_stream(), fetched.source_stream()); });
            for (std::size_t i = window.first; i < window.last; ++i) {
                fetched.release(plan_.direct()[i].tensor, fetched.source_stream());
            }
        }
    }

    void order_everything_before(stream_ref stream) {
        for (auto& lane : lanes_) order(lane->copy_stream(), stream);
        each_seat([&](auto& seat) { order(seat.collective_stream(), stream); });
    }
    // The source's work runs on one stream: packing streams wait for it, and it for them.
    static void order(stream_ref first, stream_ref then) {
        if (first == then) return;
        event<runtime> mark{};
        runtime::record(mark.ref(), first);
        runtime::stream_wait(then, mark.ref());
    }

    sending_lane<C>& lane_of(device where) {
        for (auto& lane : lanes_) {
            if (lane->where() == where) return *lane;
        }
        return *lanes_.emplace_back(std::make_unique<sending_lane<C>>(where));
    }
    template <class F>
    void each_seat(F const& f) {
        for (auto& lane : lanes_) lane->each_seat(f);
    }

    int ambient_ = runtime::current_device();  // before scopes set another
    Source& source_;
    std::vector<tensor_placement> const& placements_;
    announcement own_;
    op_limits limits_;
    Progress& progress_;
    stream_trace<runtime, Progress> trace_;
    std::vector<planned_tensor> tensors_;
    packing_plan plan_;
    std::vector<transfer_step> steps_;
    std::vector<std::unique_ptr<sending_lane<C>>> lanes_;
    std::deque<event<runtime>> packed_;
    std::uint64_t sent_bytes_ = 0;
};

}  // namespace weightcast::detail
