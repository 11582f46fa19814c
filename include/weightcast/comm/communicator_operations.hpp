// SPDX-License-Identifier: Apache-2.0
#pragma once
// The proof-taking face that every communicator has over its private raw entry: one place for the rule
// "a tensor must be on the communicator's device" and for the sentence that a raw tensor meets.

#include <chrono>
#include <concepts>
#include <memory>
#include <span>
#include <string>
#include <type_traits>

#include <weightcast/base/deadline.hpp>
#include <weightcast/base/error.hpp>
#include <weightcast/base/expects.hpp>
#include <weightcast/base/operation.hpp>
#include <weightcast/comm/proofs.hpp>
#include <weightcast/comm/transfer_range.hpp>

namespace weightcast {

namespace detail {
template <class>
inline constexpr bool always_false = false;
}  // namespace detail

/// CRTP base of communicators. Self keeps private, with this class as friend:
/// `enqueue_broadcasts(span<transfer_range const>, root, operation)`, `enqueue_send(range, peer, operation)`,
/// `enqueue_receive(range, peer, operation)`, `enqueue_all_reduce(range, dtype, reduction, operation)`
/// (in place); public `core()`, `abort() noexcept`, `outstanding() const noexcept`, `grace()`.
/// Ordering: all operations run on the communicator's collective stream, in the order of the calls. Calls return before the operation has run.
template <class Self>
class communicator_operations {
  public:
    /// This rank is the root: its bytes go to every rank.
    /// @throws peer_error, timeout, group_aborted  an earlier operation's failure; the group must be re-formed
    template <class Proof>
        requires std::same_as<Proof, resident<Self>>
    void broadcast_from(Proof const& tensor, operation const& op = {}) {
        admit(tensor);
        auto const range = range_of(tensor);
        self().enqueue_broadcasts({&range, 1}, self().core().rank(), op);
    }
    template <class Group>
        requires std::same_as<Group, resident_group<Self>>
    void broadcast_from(Group const& group, operation const& op = {}) {
        admit(group);
        self().enqueue_broadcasts(group.ranges(), self().core().rank(), op);
    }
    template <class Tensor>
    void broadcast_from(Tensor const&, operation const& = {}) {
        static_assert(
            detail::always_false<Tensor>,
            "broadcast_from takes a proof that the tensor is on the communicator's device: write "
            "broadcast_aligned(communicator, tensor), or scope.align(tensor) of an alignment_scope");
    }

    /// The bytes of rank `root` come into this rank's own buffer.
    template <class Proof>
        requires std::same_as<Proof, writable_resident<Self>>
    void broadcast_into(Proof const& tensor, int root, operation const& op = {}) {
        admit(tensor);
        check_peer(root, "root");
        auto const range = range_of(tensor);
        self().enqueue_broadcasts({&range, 1}, root, op);
    }
    template <class Group>
        requires std::same_as<Group, writable_group<Self>>
    void broadcast_into(Group const& group, int root, operation const& op = {}) {
        admit(group);
        check_peer(root, "root");
        self().enqueue_broadcasts(group.ranges(), root, op);
    }
    template <class Tensor>
    void broadcast_into(Tensor const&, int, operation const& = {}) {
        static_assert(
            detail::always_false<Tensor>,
            "broadcast_into takes a proof that the buffer may be written on the communicator's "
            "device: write scope.require(tensor) of an alignment_scope; a proof to read is not one");
    }

    /// Sends to one rank, which calls `receive_from` for as many bytes.
    template <class Proof>
        requires std::same_as<Proof, resident<Self>>
    void send_to(Proof const& tensor, int peer, operation const& op = {}) {
        admit(tensor);
        check_peer(peer, "peer");
        self().enqueue_send(range_of(tensor), peer, op);
    }
    template <class Tensor>
    void send_to(Tensor const&, int, operation const& = {}) {
        static_assert(
            detail::always_false<Tensor>,
            "send_to takes a proof that the tensor is on the communicator's device: write "
            "scope.align(tensor) of an alignment_scope");
    }
    template <class Proof>
        requires std::same_as<Proof, writable_resident<Self>>
    void receive_from(Proof const& tensor, int peer, operation const& op = {}) {
        admit(tensor);
        check_peer(peer, "peer");
        self().enqueue_receive(range_of(tensor), peer, op);
    }
    template <class Tensor>
    void receive_from(Tensor const&, int, operation const& = {}) {
        static_assert(
            detail::always_false<Tensor>,
            "receive_from takes a proof that the buffer may be written on the communicator's "
            "device: write scope.require(tensor) of an alignment_scope");
    }

    /// Reduces element by element over all ranks, in place. Types: int32, int64, uint64, float32, float64.
    template <class Proof>
        requires std::same_as<Proof, writable_resident<Self>>
    void all_reduce(Proof const& tensor, reduction how, operation const& op = {}) {
        admit(tensor);
        self().enqueue_all_reduce(range_of(tensor), tensor.type(), how, op);
    }
    template <class Tensor>
    void all_reduce(Tensor const&, reduction, operation const& = {}) {
        static_assert(
            detail::always_false<Tensor>,
            "all_reduce takes a proof that the buffer may be written on the communicator's "
            "device: write scope.require(tensor) of an alignment_scope");
    }

    /// Waits until the event is reached. When the deadline passes, aborts the group and waits for the
    /// group's grace before it throws.
    /// @throws timeout  the group is aborted; @throws the group's first failure, if it has one
    template <class Event>
    void wait(Event event, deadline until, operation_label const& label) {
        using runtime = typename Self::runtime;
        // The operation's own limit is met at the same moment; its error says more, so it goes first.
        if (runtime::wait(event, until) || runtime::wait(event, deadline::after(settling))) {
            return self().core().rethrow_if_failed();
        }
        bool const had_failed = self().core().failed();
        self().abort();
        bool const proven = runtime::wait(event, deadline::after(self().grace()));
        if (had_failed) self().core().rethrow_if_failed();
        failure_facts facts{.where = label.where(),
                            .tensor = std::string{label.tensor()},
                            .rank = self().core().rank(),
                            .suspect = self().suspect(),
                            .bytes_done = self().bytes_done()};
        fail<timeout>(
            proven ? "the deadline passed; the group is aborted"
                   : "the deadline passed; the group is aborted, and an operation that did not "
                     "end within the grace keeps its memory",
            std::move(facts));
    }

  private:
    friend Self;
    static constexpr std::chrono::milliseconds settling{200};
    communicator_operations() = default;
    Self& self() noexcept { return static_cast<Self&>(*this); }

    template <class Proof>
    void admit(Proof const& proof) {
        WEIGHTCAST_EXPECTS(proof.belongs_to(self().identity()),
                           "the proof was made by a scope of another communicator");
        self().core().rethrow_if_failed();
        proof.mark_used();
    }
    template <class Proof>
    static transfer_range range_of(Proof const& proof) noexcept {
        return {const_cast<void*>(static_cast<void const*>(proof.data())), proof.bytes(),
                proof.label()};
    }
    void check_peer(int rank, char const* role) {
        if (rank >= 0 && rank < self().core().size()) return;
        throw bad_argument{std::string{role} + " " + std::to_string(rank) +
                           " is no rank of a group of " + std::to_string(self().core().size())};
    }
};

}  // namespace weightcast
