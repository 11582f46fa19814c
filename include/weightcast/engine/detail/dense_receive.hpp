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
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <weightcast/align/alignment_scope.hpp>
#include <weightcast/align/detail/settle.hpp>
#include <weightcast/base/sinks.hpp>
#include <weightcast/engine/detail/chunk_ring.hpp>
#include <weightcast/engine/detail/transfer_steps.hpp>
#include <weightcast/kernels/launch.hpp>
#include <weightcast/plan/announcement.hpp>
#include <weightcast/plan/packing_plan.hpp>

namespace weightcast::detail {

/// Receives one agreed update into its destinations.
template <class C, class Progress>
class dense_receiver {
    using runtime = typename C::runtime;
    using space = typename runtime::space;
    using destination = tensor_view<space>;

  public:
    /// All but the communicator stay as they are while the receiver lives.
    dense_receiver(C& communicator, announcement const& agreed,
                   std::vector<destination>& destinations, op_limits const& limits,
                   Progress& progress)
        : communicator_{communicator},
          agreed_{agreed},
          destinations_{destinations},
          limits_{limits},
          progress_{progress},
          tensors_{planned_tensors(agreed)},
          plan_{tensors_, agreed.options},
          steps_{transfer_steps(plan_, agreed)},
          scope_{communicator,
                 {.slots = static_cast<int>(agreed.options.ring),
                  .slot_bytes = static_cast<std::size_t>(plan_.slot_bytes())}},
          ring_{scope_, agreed.options.ring} {}

    /// Receives all bytes. What fails on this rank alone does not keep it from the group's other operations: it
    /// is returned, for the vote.
    /// @throws timeout, peer_error, group_aborted
    std::optional<std::string> run() {
        on_this_rank([&] { progress_.begin(phase::payload, plan_.wire_bytes()); });
        for (auto const& step : steps_) {
            while (step.chunk != nullptr && ring_.full()) complete_oldest();
            start(step);
        }
        while (!under_way_.empty()) complete_oldest();
        flush_unpacking();
        on_this_rank([&] { progress_.end(); });
        return local_failure_;
    }

  private:
    struct step_under_way {
        transfer_step const* step;
        event<runtime> done;
    };

    void start(transfer_step const& step) {
        operation const op{{phase::payload, name_of(step)}, limits_};
        if (step.chunk != nullptr) {
            receive_chunk(*step.chunk, op);
        } else {
            receive_window(step.window, op);
        }
        under_way_.push_back({&step, mark(communicator_.core().collective_stream())});
    }
    void receive_chunk(packed_chunk const& chunk, operation const& op) {
        if (auto const whole = sole_destination(chunk)) {
            ring_.receive_into(*whole, chunk, op);
        } else {
            ring_.receive(chunk, op);
        }
    }
    // Where a chunk that is a piece of one tensor may go without a stop in the ring.
    std::optional<destination> sole_destination(packed_chunk const& chunk) const {
        if (chunk.members.size() != 1 || chunk.members.front().bytes != chunk.bytes)
            return std::nullopt;
        auto const& m = chunk.members.front();
        auto const& whole = destinations_[m.tensor];
        if (!whole.contiguous()) return std::nullopt;
        return destination{static_cast<std::byte*>(whole.data()) + m.first_byte,
                           dtype::uint8,
                           {static_cast<std::int64_t>(m.bytes)},
                           whole.where()};
    }
    void receive_window(direct_window const& window, operation const& op) {
        auto group = scope_.receive_group(window.root, op);
        for (std::size_t i = window.first; i < window.last; ++i) {
            auto const index = plan_.direct()[i].tensor;
            group.add(scope_.require(destinations_[index],
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
                done_bytes_ += oldest.step->window.bytes;
            }
            progress_.advance(done_bytes_, name);
        });
        if (oldest.step->chunk != nullptr) ring_.pop();
        communicator_.core().give_event(std::move(oldest.done));
        under_way_.pop_front();
    }
    void unpack_oldest(packed_chunk const& chunk) {
        auto const* base = static_cast<std::byte const*>(ring_.oldest_data());
        for (auto const& m : chunk.members) {
            if (!ring_.oldest_is_in_place()) {
                unpack(base + m.offset, destinations_[m.tensor], m.first_byte,
                       m.first_byte + m.bytes);
            }
        }
        done_bytes_ += chunk.bytes;
    }
    void unpack(void const* from, destination const& to, std::uint64_t first, std::uint64_t last) {
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
    std::vector<destination>& destinations_;
    op_limits limits_;
    Progress& progress_;
    std::vector<planned_tensor> tensors_;
    packing_plan plan_;
    std::vector<transfer_step> steps_;
    alignment_scope<C> scope_;
    chunk_ring<C> ring_;
    std::deque<step_under_way> under_way_;
    std::uint64_t done_bytes_ = 0;
    std::optional<std::string> local_failure_;
};

/// Receives an agreed update; what failed on this rank alone, for the vote.
/// @throws timeout, peer_error, group_aborted  nothing writes to the destinations any more, unless the group's
///                                             grace has passed
template <class C, class Progress>
std::optional<std::string> receive_dense(
    C& communicator, announcement const& agreed,
    std::vector<tensor_view<typename C::runtime::space>>& destinations, op_limits const& limits,
    Progress& progress) {
    try {
        return dense_receiver<C, Progress>{communicator, agreed, destinations, limits, progress}
            .run();
    } catch (...) {
        communicator.abort();
        static_cast<void>(settle(communicator));
        throw;
    }
}

}  // namespace weightcast::detail
