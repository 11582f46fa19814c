// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/engine is host-only: include it from a .cpp file"
#endif
// The payload of a dense update at a receiver: chunks over a ring, and windows of direct tensors.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <weightcast/align/alignment_scope.hpp>
#include <weightcast/align/detail/settle.hpp>
#include <weightcast/base/sinks.hpp>
#include <weightcast/engine/detail/chunk_ring.hpp>
#include <weightcast/engine/detail/destinations.hpp>
#include <weightcast/engine/detail/layer_runner.hpp>
#include <weightcast/engine/detail/stream_trace.hpp>
#include <weightcast/engine/detail/transfer_steps.hpp>
#include <weightcast/kernels/launch.hpp>
#include <weightcast/kernels/model_digest.hpp>
#include <weightcast/kernels/tensor_copy.hpp>
#include <weightcast/model/layer_step.hpp>
#include <weightcast/model/tensor_region.hpp>
#include <weightcast/plan/announcement.hpp>
#include <weightcast/plan/packing_plan.hpp>

namespace weightcast::detail {

/// What one rank does with an agreed update, and what came of it.
template <DeviceRuntime R>
struct reception {
    std::vector<destination<typename R::space>> destinations{};
    std::vector<layer_run<R>> layers{};
    std::vector<std::pair<std::size_t, std::size_t>>
        same{};                    ///< parameters whose bytes have to be equal
    std::uint64_t held_limit = 0;  ///< bytes for layers that are not complete
    std::function<bool()> stop{};  ///< asked between operations; true: the memory goes away
    // --- results ---
    std::map<std::size_t, std::uint64_t>
        digests{};                      ///< by tensor, of those that no rank holds whole
    std::vector<std::uint8_t> begun{};  ///< a tensor: its first bytes may be written
    std::uint64_t held_peak = 0;        ///< the most bytes held at a time
};

/// Digests of tensors whose bytes lie in no one tensor afterwards, taken as they arrive, in order.
class arrival_digests {
  public:
    template <class R>
    arrival_digests(announcement const& agreed, reception<R> const& received) {
        auto const& to = received.destinations;
        for (std::size_t i = 0; agreed.verify && i < to.size(); ++i) {
            if (to[i].in_parts || to[i].held) add(agreed, i);
        }
        for (auto const& [a, b] : received.same) {
            add(agreed, a);
            if (to[b].in_parts || to[b].held) add(agreed, b);
        }
    }
    void update(std::size_t tensor, std::span<std::byte const> bytes) {
        if (auto const found = states_.find(tensor); found != states_.end())
            found->second.update(bytes);
    }
    std::map<std::size_t, std::uint64_t> values() const {
        std::map<std::size_t, std::uint64_t> all;
        for (auto const& [tensor, state] : states_) all.emplace(tensor, state.value());
        return all;
    }

  private:
    void add(announcement const& agreed, std::size_t i) {
        states_.try_emplace(i, agreed.parameters[i].type, agreed.parameters[i].shape);
    }
    std::map<std::size_t, tensor_digest_state> states_;
};

/// Receives one agreed update.
template <class C, class Progress>
class dense_receiver {
    using runtime = typename C::runtime;
    using space = typename runtime::space;
    using view = tensor_view<space>;

  public:
    /// All but the communicator stay as they are while the receiver lives.
    dense_receiver(C& communicator, announcement const& agreed, reception<runtime>& received,
                   op_limits const& limits, Progress& progress,
                   stream_trace<runtime, Progress>& trace)
        : communicator_{communicator},
          agreed_{agreed},
          received_{received},
          limits_{limits},
          progress_{progress},
          trace_{trace},
          tensors_{planned_tensors(agreed)},
          plan_{tensors_, agreed.options},
          steps_{transfer_steps(plan_, agreed)},
          scope_{communicator,
                 {.slots = static_cast<int>(agreed.options.ring),
                  .slot_bytes = static_cast<std::size_t>(plan_.slot_bytes())}},
          ring_{scope_, agreed.options.ring},
          digests_{agreed, received},
          layers_{received.layers, agreed, communicator.where(),
                  communicator.core().unpack_stream(), received.held_limit} {
        received_.begun.assign(agreed.parameters.size(), 0);
    }

    /// Receives all bytes. What fails on this rank alone does not keep it from the group's other operations: it
    /// is returned, for the vote.
    /// @throws timeout, peer_error, group_aborted
    std::optional<std::string> run() {
        on_this_rank([&] {
            progress_.begin(phase::payload, plan_.wire_bytes());
            layers_.begin([](std::string const&, auto const& run) { run(); });
        });
        for (auto const& step : steps_) {
            while (step.chunk != nullptr && ring_.full()) complete_oldest();
            start(step);
        }
        while (!under_way_.empty()) complete_oldest();
        flush_unpacking();
        on_this_rank([&] { progress_.end(); });
        received_.digests = digests_.values();
        received_.held_peak = layers_.peak();
        return local_failure_;
    }

  private:
    struct step_under_way {
        transfer_step const* step;
        event<runtime> done;
    };

    void start(transfer_step const& step) {
        require_memory(step);
        operation const op{{phase::payload, name_of(step)}, limits_};
        trace_.record("broadcast", name_of(step), communicator_.core().collective_stream(), [&] {
            if (step.chunk != nullptr) {
                receive_chunk(*step.chunk, op);
            } else {
                receive_window(step.window, op);
            }
        });
        under_way_.push_back({&step, mark(communicator_.core().collective_stream())});
    }
    // Memory that goes away must not be written: this rank leaves, its peers hear of an aborted group.
    void require_memory(transfer_step const& step) const {
        if (!received_.stop || !received_.stop()) return;
        fail<group_aborted>("the target falls asleep: its weights will not be resident",
                            {.where = phase::payload,
                             .tensor = std::string{name_of(step)},
                             .rank = communicator_.rank(),
                             .bytes_done = done_bytes_});
    }
    void receive_chunk(packed_chunk const& chunk, operation const& op) {
        for (auto const& m : chunk.members) received_.begun[m.tensor] = 1;
        if (auto const whole = sole_destination(chunk)) {
            ring_.receive_into(*whole, chunk, op);
        } else {
            ring_.receive(chunk, op);
        }
    }
    // Where a chunk that is a piece of one tensor may go without a stop in the ring.
    std::optional<view> sole_destination(packed_chunk const& chunk) const {
        if (chunk.members.size() != 1 || chunk.members.front().bytes != chunk.bytes)
            return std::nullopt;
        auto const& m = chunk.members.front();
        auto const& to = received_.destinations[m.tensor];
        if (to.in_parts || to.held || !to.whole.contiguous()) return std::nullopt;
        return view{static_cast<std::byte*>(to.whole.data()) + m.first_byte,
                    dtype::uint8,
                    {static_cast<std::int64_t>(m.bytes)},
                    to.whole.where()};
    }
    void receive_window(direct_window const& window, operation const& op) {
        auto group = scope_.receive_group(window.root, op);
        for (std::size_t i = window.first; i < window.last; ++i) {
            auto const index = plan_.direct()[i].tensor;
            received_.begun[index] = 1;
            group.add(scope_.require(received_.destinations[index].whole,
                                     {phase::payload, agreed_.parameters[index].name}));
        }
        group.submit();
    }

    // Bytes are unpacked only once the transport says that all of them are here.
    void complete_oldest() {
        auto& oldest = under_way_.front();
        auto const name = name_of(*oldest.step);
        communicator_.wait(oldest.done.ref(), limits_.at, {phase::payload, name});
        on_this_rank([&] {
            if (oldest.step->chunk != nullptr) {
                unpack_oldest(*oldest.step->chunk);
            } else {
                complete_window(oldest.step->window);
            }
            progress_.advance(done_bytes_, name);
        });
        if (oldest.step->chunk != nullptr) ring_.pop();
        communicator_.core().give_event(std::move(oldest.done));
        under_way_.pop_front();
    }
    void arrived(std::size_t tensor, std::uint64_t bytes) {
        layers_.arrived(tensor, bytes, [&](std::string const& layer, auto const& run) {
            trace_.record("layer step", layer, communicator_.core().unpack_stream(), run);
        });
    }
    void complete_window(direct_window const& window) {
        for (std::size_t i = window.first; i < window.last; ++i) {
            auto const tensor = plan_.direct()[i].tensor;
            arrived(tensor, agreed_.parameters[tensor].bytes());
        }
        done_bytes_ += window.bytes;
    }
    void unpack_oldest(packed_chunk const& chunk) {
        auto const* base = static_cast<std::byte const*>(ring_.oldest_data());
        bool const in_place = ring_.oldest_is_in_place();
        // one after the other: a layer's step frees what is held for it before the next member comes
        auto const take = [&] {
            for (auto const& m : chunk.members) {
                if (!in_place) unpack_member(base + m.offset, m);
                arrived(m.tensor, m.bytes);
            }
        };
        if (in_place) {
            take();
        } else {
            trace_.record("unpack", chunk_name(chunk, agreed_),
                          communicator_.core().unpack_stream(), take);
        }
        done_bytes_ += chunk.bytes;
    }
    void unpack_member(std::byte const* from, chunk_member const& m) {
        auto const& to = received_.destinations[m.tensor];
        digests_.update(m.tensor, {from, static_cast<std::size_t>(m.bytes)});
        if (to.in_parts) {
            unpack_parts(from, m, to);
        } else {
            unpack(from, to.held ? layers_.held(m.tensor) : to.whole, m.first_byte,
                   m.first_byte + m.bytes);
        }
    }
    // A piece of a tensor as a few boxes, and of each what this rank holds.
    void unpack_parts(std::byte const* from, chunk_member const& m, destination<space> const& to) {
        auto const& p = agreed_.parameters[m.tensor];
        auto const item = item_size(p.type);
        auto const rows = contiguous_strides(p.shape);
        auto const first = m.first_byte / item;
        for (auto const& box : boxes_of(p.shape, first, (m.first_byte + m.bytes) / item)) {
            for (auto const& part : to.parts) {
                auto const held = intersection(part.region, box);
                if (!held) continue;
                std::uint64_t at = 0;  // of its first element in the announced tensor
                for (std::size_t d = 0; d < rows.size(); ++d) {
                    at += static_cast<std::uint64_t>(held->offset[d] * rows[d]);
                }
                const_tensor_view<space> const source{from + (at - first) * item, p.type,
                                                      held->sizes, rows, communicator_.where()};
                view const own{
                    static_cast<std::byte*>(part.own.data()) + held->first_element * item, p.type,
                    held->sizes, held->strides, part.own.where()};
                copy_async<runtime>(source, own, communicator_.core().unpack_stream());
            }
        }
    }
    void unpack(void const* from, view const& to, std::uint64_t first, std::uint64_t last) {
        auto const stream = communicator_.core().unpack_stream();
        if (to.contiguous()) {
            runtime::copy(static_cast<std::byte*>(to.data()) + first, to.where(), from,
                          communicator_.where(), static_cast<std::size_t>(last - first), stream);
        } else {
            kernel_launcher<runtime>::unpack_async(from, to, first, last, stream);
        }
    }
    void flush_unpacking() {
        auto done = mark(communicator_.core().unpack_stream());
        communicator_.wait(done.ref(), limits_.at, {phase::payload, "unpacking"});
        communicator_.core().give_event(std::move(done));
    }

    // Runs what concerns no other rank; after its first failure, nothing of the kind is run any more.
    template <class F>
    void on_this_rank(F const& action) {
        if (local_failure_) return;
        try {
            action();
        } catch (std::exception const& e) {
            local_failure_ = e.what();
        }
    }
    event<runtime> mark(typename runtime::stream_ref stream) {
        auto made = communicator_.core().take_event();
        runtime::record(made.ref(), stream);
        return made;
    }
    std::string_view name_of(transfer_step const& step) const {
        return step_name(step, plan_, agreed_);
    }

    C& communicator_;
    announcement const& agreed_;
    reception<runtime>& received_;
    op_limits limits_;
    Progress& progress_;
    stream_trace<runtime, Progress>& trace_;
    std::vector<planned_tensor> tensors_;
    packing_plan plan_;
    std::vector<transfer_step> steps_;
    alignment_scope<C> scope_;
    chunk_ring<C> ring_;
    arrival_digests digests_;
    layer_runner<runtime> layers_;
    std::deque<step_under_way> under_way_;
    std::uint64_t done_bytes_ = 0;
    std::optional<std::string> local_failure_;
};

/// Receives an agreed update; what failed on this rank alone, for the vote.
/// @throws timeout, peer_error, group_aborted  nothing writes to the destinations any more, unless the group's
///                                             grace has passed
template <class C, class Progress>
std::optional<std::string> receive_dense(C& communicator, announcement const& agreed,
                                         reception<typename C::runtime>& received,
                                         op_limits const& limits, Progress& progress) {
    stream_trace<typename C::runtime, Progress> trace;
    try {
        dense_receiver<C, Progress> receiver{communicator, agreed,   received,
                                             limits,       progress, trace};
        auto failure = receiver.run();
        trace.take(progress);
        return failure;
    } catch (...) {
        communicator.abort();
        if (settle(communicator)) trace.take(progress);
        throw;
    }
}

}  // namespace weightcast::detail
