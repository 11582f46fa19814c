// SPDX-License-Identifier: Apache-2.0
#pragma once
// Communicator and its atoms. An engine asks only for the atoms that it calls.

#include <chrono>
#include <concepts>

#include <weightcast/base/operation.hpp>
#include <weightcast/comm/proofs.hpp>
#include <weightcast/comm/transfer_range.hpp>
#include <weightcast/runtime/concepts.hpp>
#include <weightcast/tensor/device.hpp>

namespace weightcast {

template <class C>
concept has_runtime = DeviceRuntime<typename C::runtime>;
template <class C>
concept has_group_position = requires(C const& c) {
    { c.rank() } noexcept -> std::same_as<int>;
    { c.size() } noexcept -> std::same_as<int>;
};
template <class C>
concept has_device = requires(C const& c) {
    { c.where() } noexcept -> std::same_as<device>;
};
template <class C>
concept has_broadcast =
    requires(C& c, resident<C> const& read, writable_resident<C> const& write,
             resident_group<C> const& reads, writable_group<C> const& writes, operation const& op) {
        c.broadcast_from(read, op);
        c.broadcast_into(write, 0, op);
        c.broadcast_from(reads, op);
        c.broadcast_into(writes, 0, op);
    };
template <class C>
concept has_send_receive = requires(C& c, resident<C> const& read,
                                    writable_resident<C> const& write, operation const& op) {
    c.send_to(read, 0, op);
    c.receive_from(write, 0, op);
};
template <class C>
concept has_all_reduce = requires(C& c, writable_resident<C> const& write, operation const& op) {
    c.all_reduce(write, reduction::min, op);
};
template <class C>
concept has_abort = requires(C& c, C const& cc) {
    { c.abort() } noexcept;
    { cc.outstanding() } noexcept -> std::same_as<bool>;
    { cc.failed() } noexcept -> std::same_as<bool>;
};
template <class C>
concept has_bounded_wait = requires(C& c, typename C::runtime::event_ref event, deadline until) {
    c.wait(event, until, operation_label{});
};

/// A group of ranks that can broadcast on its own device, and whose every wait ends.
/// Semantics: takes proofs, never raw tensors; operations run in the order of the calls on the group's own
/// stream; after a failure later work is skipped and each next call or wait throws the first failure.
/// `abort` may be called from any thread and returns at once; `outstanding` says whether the last operation
/// has yet to complete.
/// Laws: tests/laws/communicator_laws.hpp. Models: local_communicator, gloo_communicator.
/// Near-miss: a group whose `broadcast_from` takes a pointer.
/// Cost: broadcast of n bytes over W ranks: at most ceil(log2 W) steps of n bytes a rank.
template <class C>
concept Communicator = has_runtime<C> && has_group_position<C> && has_device<C> &&
                       has_broadcast<C> && has_abort<C> && has_bounded_wait<C>;

/// Says in full sentences why C is no Communicator; true when it is one.
template <class C>
consteval bool explain_communicator() {
    static_assert(has_runtime<C>, "Communicator: the type needs `using runtime`, a DeviceRuntime");
    static_assert(has_group_position<C>,
                  "Communicator: the type needs noexcept rank() and size(), int");
    static_assert(has_device<C>, "Communicator: the type needs noexcept where(), returning device");
    static_assert(
        has_broadcast<C>,
        "Communicator: the type needs broadcast_from(resident or resident_group, operation) and "
        "broadcast_into(writable_resident or writable_group, root, operation); derive from "
        "communicator_operations<C> to have them over a private raw entry");
    static_assert(has_abort<C>,
                  "Communicator: the type needs noexcept abort(), outstanding() and failed()");
    static_assert(has_bounded_wait<C>,
                  "Communicator: the type needs wait(event, deadline, operation_label)");
    return Communicator<C>;
}

}  // namespace weightcast
