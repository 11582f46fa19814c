// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/engine is host-only: include it from a .cpp file"
#endif
// The payload of a dense update at a receiver: chunks over a ring, then direct tensors in windows.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <weightcast/align/alignment_scope.hpp>
#include <weightcast/align/located.hpp>
#include <weightcast/base/error.hpp>
#include <weightcast/base/sinks.hpp>
#include <weightcast/engine/detail/chunk_ring.hpp>
#include <weightcast/kernels/launch.hpp>
#include <weightcast/plan/announcement.hpp>
#include <weightcast/plan/packing_plan.hpp>

namespace weightcast::detail {

template <class C, class Target, class Progress>
class dense_receiver {
    using runtime = typename C::runtime;
    using space = typename runtime::space;
    using destination = tensor_view<space>;

  public:
    dense_receiver(C& communicator, Target& target, Progress& progress)
        : communicator_{communicator}, target_{target}, progress_{progress} {}

    /// Everything that can fail before the payload: resolves destinations, and says which of them cannot be
    /// received into directly. Returns the objection, if there is one.
    template <class TargetId>
    std::optional<std::string> prepare(announcement& a, TargetId const& target, std::uint64_t ring_limit) {
        if (a.options.ring > alignment_scope<C>::max_slots) {
            return "a ring of " + std::to_string(a.options.ring) + " buffers is over the most of " +
                   std::to_string(alignment_scope<C>::max_slots);
        }
        if (a.options.chunk_bytes > ring_limit / a.options.ring) {
            return "a ring of " + std::to_string(a.options.ring) + " chunks of " +
                   std::to_string(a.options.chunk_bytes) + " bytes is over this rank's limit of " +
                   std::to_string(ring_limit);
        }
        destinations_.reserve(a.parameters.size());
        int const ambient = runtime::current_device();
        for (std::size_t i = 0; i < a.parameters.size(); ++i) {
            auto const& name = a.parameters[i].name;
            auto tensor = target_.destination(target, name);
            auto const& d = destinations_.emplace_back(located<runtime>(
                writable_view_of(tensor), ambient, {phase::preflight, name}, communicator_.rank()));
            if (d.bytes() != 0 && d.where() != communicator_.where()) {
                return "tensor '" + name + "' is held on " + to_string(d.where()) +
                       ", but the group receives on " + to_string(communicator_.where());
            }
            if (!d.contiguous()) a.packed[i] = 1;
        }
        return std::nullopt;
    }

    /// Receives all bytes of the agreed plan.
    void receive(announcement const& a, op_limits const& limits) {
        auto const tensors = planned_tensors(a);
        packing_plan const plan{tensors, a.options};
        progress_.begin(phase::payload, plan.wire_bytes());
        alignment_scope<C> scope{communicator_, {.slots = static_cast<int>(a.options.ring),
                                                 .slot_bytes = static_cast<std::size_t>(plan.slot_bytes())}};
        receive_chunks(scope, a, plan, limits);
        receive_direct(scope, a, plan, limits);
        flush_unpacking(limits);
        progress_.end();
    }

  private:
    void receive_chunks(alignment_scope<C>& scope, announcement const& a, packing_plan const& plan,
                        op_limits const& limits) {
        chunk_ring<C> ring{scope, a.options.ring};
        for (auto const& chunk : plan.chunks()) {
            if (ring.full()) unpack_oldest(ring, a, limits);
            operation const op{{phase::payload, chunk_name(chunk, a)}, limits};
            if (auto const whole = sole_destination(chunk)) {
                ring.receive_into(*whole, chunk, op);
            } else {
                ring.receive(chunk, op);
            }
        }
        while (!ring.empty()) unpack_oldest(ring, a, limits);
    }
    // Where a chunk that is a piece of one tensor may go without a stop in the ring.
    std::optional<destination> sole_destination(packed_chunk const& chunk) const {
        if (chunk.members.size() != 1 || chunk.members.front().bytes != chunk.bytes) return std::nullopt;
        auto const& m = chunk.members.front();
        auto const& whole = destinations_[m.tensor];
        if (!whole.contiguous()) return std::nullopt;
        return destination{static_cast<std::byte*>(whole.data()) + m.first_byte, dtype::uint8,
                           {static_cast<std::int64_t>(m.bytes)}, whole.where()};
    }
    // The bytes are unpacked only once the transport says that all of them are here.
    void unpack_oldest(chunk_ring<C>& ring, announcement const& a, op_limits const& limits) {
        auto const& chunk = ring.wait_oldest(limits.at);
        auto const stream = communicator_.core().unpack_stream();
        auto const* base = static_cast<std::byte const*>(ring.oldest_data());
        for (auto const& m : chunk.members) {
            if (!ring.oldest_is_in_place()) {
                unpack(base + m.offset, destinations_[m.tensor], m.first_byte, m.first_byte + m.bytes, stream);
            }
            done_bytes_ += m.bytes;
        }
        progress_.advance(done_bytes_, chunk_name(chunk, a));
        ring.pop();
    }
    void unpack(void const* from, destination const& to, std::uint64_t first, std::uint64_t last,
                typename runtime::stream_ref stream) {
        if (to.contiguous()) {
            runtime::copy(static_cast<std::byte*>(to.data()) + first, to.where(), from, communicator_.where(),
                          static_cast<std::size_t>(last - first), stream);
        } else {
            kernel_launcher<runtime>::unpack_async(from, to, first, last, stream);
        }
    }
    void receive_direct(alignment_scope<C>& scope, announcement const& a, packing_plan const& plan,
                        op_limits const& limits) {
        for (auto const& window : direct_windows(plan, a)) {
            operation const op{{phase::payload, a.parameters[plan.direct()[window.first].tensor].name}, limits};
            auto group = scope.receive_group(window.root, op);
            for (std::size_t i = window.first; i < window.last; ++i) {
                auto const index = plan.direct()[i].tensor;
                group.add(scope.require(destinations_[index], {phase::payload, a.parameters[index].name}));
            }
            group.submit();
            windows_.push_back(window_mark{mark(), window.last - 1, window.bytes});
        }
        for (auto& w : windows_) {
            auto const& name = a.parameters[plan.direct()[w.last].tensor].name;
            communicator_.wait(w.done.ref(), limits.at, {phase::payload, name});
            done_bytes_ += w.bytes;
            progress_.advance(done_bytes_, name);
            communicator_.core().give_event(std::move(w.done));
        }
    }
    event<runtime> mark() {
        auto done = communicator_.core().take_event();
        runtime::record(done.ref(), communicator_.core().collective_stream());
        return done;
    }
    void flush_unpacking(op_limits const& limits) {
        auto done = communicator_.core().take_event();
        runtime::record(done.ref(), communicator_.core().unpack_stream());
        communicator_.wait(done.ref(), limits.at, {phase::payload, "unpacking"});
        communicator_.core().give_event(std::move(done));
    }

    struct window_mark {
        event<runtime> done;
        std::size_t last;
        std::uint64_t bytes;
    };
    C& communicator_;
    Target& target_;
    Progress& progress_;
    std::vector<destination> destinations_;
    std::vector<window_mark> windows_;
    std::uint64_t done_bytes_ = 0;
};

}  // namespace weightcast::detail
