// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/plan is host-only: include it from a .cpp file"
#endif
// Small messages and votes over the group itself: works where nothing but the communicator is there.

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <weightcast/align/alignment_scope.hpp>
#include <weightcast/align/detail/settle.hpp>
#include <weightcast/base/error.hpp>
#include <weightcast/base/operation.hpp>
#include <weightcast/comm/concepts.hpp>
#include <weightcast/runtime/detail/left_behind.hpp>
#include <weightcast/runtime/device_buffer.hpp>
#include <weightcast/tensor/tensor_view.hpp>

namespace weightcast {

/// Who objected, and why.
struct refusal {
    int rank = 0;
    std::string reason{};
};

/// Messages of one group through a small buffer on the communicator's device. Refers to the communicator.
/// Every call is collective: all ranks make the same call with the same root and phase.
template <Communicator C>
    requires has_all_reduce<C>
class group_mailbox {
    using runtime = typename C::runtime;
    using space = typename runtime::space;

  public:
    static constexpr std::uint64_t message_limit = std::uint64_t{256} << 20U;

    explicit group_mailbox(C& communicator) : communicator_{communicator} {}

    /// The root's message on every rank: its length first, checked against the limit, then its body.
    /// @throws bad_input  for a length over 256 MiB: nothing is allocated for it
    /// Cost: two broadcasts.
    std::vector<std::byte> broadcast(std::span<std::byte const> message, int root,
                                     op_limits const& limits, phase where) {
        return broadcast(message, root, limits, [&] { return limits; }, where);
    }
    /// The same, with limits of its own for the length, which may be long in coming; `body_limits` is asked for
    /// those of the body once the length is here.
    template <std::invocable BodyLimits>
    std::vector<std::byte> broadcast(std::span<std::byte const> message, int root,
                                     op_limits const& length_limits, BodyLimits const& body_limits,
                                     phase where) {
        std::array<std::uint64_t, 1> length{message.size()};
        exchange(std::as_writable_bytes(std::span{length}), root, {{where, {}}, length_limits});
        if (length[0] > message_limit) {
            throw bad_input{"a message of " + std::to_string(length[0]) +
                            " bytes is over the limit of " + std::to_string(message_limit)};
        }
        std::vector<std::byte> body(length[0]);
        if (communicator_.rank() == root) std::copy(message.begin(), message.end(), body.begin());
        op_limits const limits = body_limits();
        if (!body.empty()) exchange(body, root, {{where, {}}, limits});
        return body;
    }

    /// Asks all ranks; the lowest rank that objects sends its reason. Nothing: all agree.
    /// Cost: one all-reduce of 8 bytes; with an objection, one message more.
    std::optional<refusal> agree(std::optional<std::string> const& objection,
                                 op_limits const& limits, phase where) {
        std::array<std::int64_t, 1> lowest{objection ? communicator_.rank() : communicator_.size()};
        reduce(std::as_writable_bytes(std::span{lowest}), dtype::int64, reduction::min,
               {{where, {}}, limits});
        int const who = static_cast<int>(lowest[0]);
        if (who >= communicator_.size()) return std::nullopt;
        auto const mine = objection.value_or(std::string{});
        auto const text =
            broadcast(std::as_bytes(std::span{mine.data(), mine.size()}), who, limits, where);
        return refusal{who, std::string(reinterpret_cast<char const*>(text.data()), text.size())};
    }

    /// Flags that are set on any rank become set on all.
    void any_of(std::span<std::uint8_t> flags, op_limits const& limits, phase where) {
        std::vector<std::int32_t> counts(flags.begin(), flags.end());
        reduce(std::as_writable_bytes(std::span{counts}), dtype::int32, reduction::max,
               {{where, {}}, limits});
        std::ranges::transform(counts, flags.begin(),
                               [](std::int32_t c) { return static_cast<std::uint8_t>(c != 0); });
    }

  private:
    void exchange(std::span<std::byte> bytes, int root, operation const& op) {
        alignment_scope<C> scope{communicator_};
        staging memory{*this, bytes};
        auto view = memory.view(dtype::uint8);
        if (communicator_.rank() == root) {
            communicator_.broadcast_from(scope.align(view, already_ready{}, op.label), op);
        } else {
            communicator_.broadcast_into(scope.require(view, op.label), root, op);
        }
        memory.finish(bytes, op);
    }
    void reduce(std::span<std::byte> bytes, dtype type, reduction how, operation const& op) {
        alignment_scope<C> scope{communicator_};
        staging memory{*this, bytes};
        auto view = memory.view(type);
        communicator_.all_reduce(scope.require(view, op.label), how, op);
        memory.finish(bytes, op);
    }

    // The bytes of one call: on the heap, and on an accelerator's memory where the group is on one. After a
    // failure the heap copy goes when nothing reads or writes it any more; unproven, it is left behind.
    class staging {
      public:
        staging(group_mailbox& box, std::span<std::byte const> bytes)
            : communicator_{box.communicator_},
              host_{std::make_unique<std::vector<std::byte>>(bytes.begin(), bytes.end())} {
            if (!communicator_.where().is_accelerator() || bytes.empty()) return;
            auto const stream = communicator_.core().collective_stream();
            device_.emplace(bytes.size(), communicator_.where(), stream);
            runtime::copy(device_->data(), communicator_.where(), host_->data(), cpu_device,
                          host_->size(), stream);
        }
        staging(staging const&) = delete;
        ~staging() {
            if (finished_ || detail::settle(communicator_)) return;
            detail::kept_list unproven;  // the transport may still write there
            unproven.keep(std::move(host_));
            detail::leave_behind(unproven);
        }
        tensor_view<space> view(dtype type) {
            extents const shape{static_cast<std::int64_t>(host_->size() / item_size(type))};
            // no bytes: nothing was staged, and nothing lies anywhere
            return {device_ ? device_->data() : host_->data(), type, shape, communicator_.where()};
        }
        void finish(std::span<std::byte> bytes, operation const& op) {
            auto& core = communicator_.core();
            if (device_) {
                runtime::copy(host_->data(), cpu_device, device_->data(), communicator_.where(),
                              host_->size(), core.collective_stream());
            }
            auto done = core.take_event();
            runtime::record(done.ref(), core.collective_stream());
            communicator_.wait(done.ref(), op.limits.at, op.label);
            core.give_event(std::move(done));
            finished_ = true;
            std::copy(host_->begin(), host_->end(), bytes.begin());
        }

      private:
        C& communicator_;
        std::unique_ptr<std::vector<std::byte>> host_;
        std::optional<device_buffer<runtime>> device_;
        bool finished_ = false;
    };

    C& communicator_;
};

}  // namespace weightcast
