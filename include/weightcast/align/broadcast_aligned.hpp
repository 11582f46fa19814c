// SPDX-License-Identifier: Apache-2.0
#pragma once
// The sender's one function: whatever device a tensor is on, it is sent from the communicator's device.

#include <concepts>
#include <ranges>
#include <string_view>
#include <utility>

#include <weightcast/align/alignment_scope.hpp>
#include <weightcast/align/concepts.hpp>
#include <weightcast/align/detail/settle.hpp>
#include <weightcast/align/located.hpp>
#include <weightcast/align/pending.hpp>
#include <weightcast/align/source_order.hpp>
#include <weightcast/base/deadline.hpp>
#include <weightcast/base/operation.hpp>

namespace weightcast {

/// A tensor and its checkpoint name.
template <DeviceTensor T>
struct named_tensor {
    std::string_view name;
    T tensor;
};
template <class T>
named_tensor(std::string_view, T) -> named_tensor<T>;
template <class T>
named_tensor(char const*, T) -> named_tensor<T>;

namespace detail {
template <class N>
concept named_tensor_like = requires(N const& n) {
    { n.name } -> std::convertible_to<std::string_view>;
    requires DeviceTensor<decltype(n.tensor)>;
};
template <class Tensors>
concept named_tensor_range =
    std::ranges::forward_range<Tensors> && named_tensor_like<std::ranges::range_value_t<Tensors>>;
template <DeviceRuntime R>
void wait_for_sources(std::ranges::input_range auto const& devices, deadline until) {
    source_devices unique;
    for (device const d : devices)
        unique.add(d.is_accelerator() ? d.resolved_to(R::current_device()) : d);
    unique.wait<R>(until);
}
/// Ends operations that nobody will wait for: aborts the group, and gives what runs, staging included, the
/// group's grace to leave the caller's tensors.
template <class C>
void abandon(C& communicator) noexcept {
    if (communicator.outstanding()) communicator.abort();
    static_cast<void>(settle(communicator));
}
template <class C>
void wait_for_stream(C& communicator, typename C::runtime::stream_ref stream, operation const& op) {
    auto& core = communicator.core();
    auto done = core.take_event();
    C::runtime::record(done.ref(), stream);
    communicator.wait(done.ref(), op.limits.at, op.label);
    core.give_event(std::move(done));
}
template <class C, class T>
void receive_required(C& communicator, alignment_scope<C>& scope, T& tensor, int root,
                      operation const& op) {
    bool required = false;
    try {
        {
            auto const destination = scope.require(tensor, op.label);
            required = true;
            communicator.broadcast_into(destination, root, op);
        }
        wait_for_stream(communicator, communicator.core().collective_stream(), op);
        wait_for_stream(communicator, communicator.core().unpack_stream(), op);
    } catch (...) {
        if (required) abandon(communicator);  // an unpacking may still write into the tensor
        throw;
    }
}
}  // namespace detail

/// Broadcasts the tensor's bytes from this rank to the group.
/// The caller's current device is of no importance, and is restored.
/// @throws device_mismatch, timeout  before anything was sent: the group is usable
/// @throws peer_error, group_aborted  an earlier failure of the group: it must be re-formed
/// Ordering: after what `order` names. The source may change after `pending.wait`, or on `pending.then`'s stream.
/// Cost: resident: no copy, no allocation; else one copy to the communicator's device through a slot.
template <class C, Broadcastable<C> T, class Order = produced_anywhere>
    requires SourceOrder<Order, typename C::runtime>
pending<C> broadcast_aligned(C& communicator, T const& tensor, Order order = {},
                             operation const& op = {}) {
    alignment_scope<C> scope{communicator};
    auto const proof = scope.align(tensor, order, op.label);
    try {
        communicator.broadcast_from(proof, op);
        return pending<C>{communicator, op.label};
    } catch (...) {
        detail::abandon(communicator);
        throw;
    }
}
template <class C, class T, class... Rest>
    requires(!Broadcastable<T, C> && !detail::named_tensor_range<T>)
pending<C> broadcast_aligned(C&, T const&, Rest const&...) {
    static_assert(explain_broadcastable<T, C>());
}

/// Broadcasts many named tensors, each as one operation, in their order: a model's parameters, a flattened
/// bucket (one uint8 tensor), or the tensors of a LoRA set. Each unique source device is waited for once.
/// @throws device_mismatch, timeout  before anything was sent: the group is usable
/// @throws anything else in the middle: the group is aborted, and the sources may change
template <class C, detail::named_tensor_range Tensors, class Order = produced_anywhere>
    requires Broadcastable<decltype(std::declval<std::ranges::range_value_t<Tensors>&>().tensor),
                           C> &&
             SourceOrder<Order, typename C::runtime>
pending<C> broadcast_aligned(C& communicator, Tensors const& tensors, Order order = {},
                             operation const& op = {}) {
    using runtime = typename C::runtime;
    int const ambient = runtime::current_device();
    source_devices sources;
    for (auto const& n : tensors) {
        operation_label const label{op.label.where(), n.name};
        sources.add(
            located<runtime>(view_of(n.tensor), ambient, label, communicator.rank()).where());
    }
    if constexpr (std::same_as<Order, produced_anywhere>) sources.wait<runtime>(order.until);
    alignment_scope<C> scope{communicator};
    auto const inner = [&] {
        if constexpr (std::same_as<Order, produced_anywhere>)
            return already_ready{};
        else
            return order;
    }();
    try {
        for (auto const& n : tensors) {
            operation const each{operation_label{op.label.where(), n.name}, op.limits};
            communicator.broadcast_from(scope.align(n.tensor, inner, each.label), each);
        }
        return pending<C>{communicator, op.label};
    } catch (...) {
        detail::abandon(communicator);
        throw;
    }
}

/// Receives a broadcast of rank `root` into the caller's own buffer, on the communicator's device.
/// @throws device_mismatch  when the buffer is elsewhere: nothing is written, and the group is usable
/// @throws timeout, peer_error, group_aborted  the group must be re-formed; nothing writes to the buffer any
///                                             more, unless the group's grace has passed
/// Ordering: the buffer may be read after `pending.wait`; a strided one is unpacked by then.
template <class C, ReceivableInto<C> T>
void receive_into(C& communicator, T& tensor, int root, operation const& op = {}) {
    alignment_scope<C> scope{communicator};
    detail::receive_required(communicator, scope, tensor, root, op);
}
template <class C, class T, class... Rest>
    requires(!ReceivableInto<T, C>)
void receive_into(C&, T&, Rest const&...) {
    static_assert(explain_receivable_into<T, C>());
}

}  // namespace weightcast
