// SPDX-License-Identifier: Apache-2.0
#pragma once
// Broadcastable and ReceivableInto: which tensors a communicator may send, and which it may receive into.

#include <concepts>

#include <weightcast/comm/concepts.hpp>
#include <weightcast/tensor/concepts.hpp>

namespace weightcast {

struct already_ready;
struct produced_anywhere;
template <class StreamRef>
struct produced_on;

/// How a sender says when its tensors are ready: one of the three spellings, for runtime R.
/// Models: produced_anywhere, produced_on{stream of R}, already_ready; near-miss: a stream alone.
template <class O, class R>
concept SourceOrder = std::same_as<O, produced_anywhere> || std::same_as<O, already_ready> ||
                      std::same_as<O, produced_on<typename R::stream_ref>>;

template <class T, class C>
concept in_communicators_space = std::same_as<space_of<T>, typename C::runtime::space>;
template <class T>
concept in_host_space = std::same_as<space_of<T>, host_space>;
template <class T>
concept in_dynamic_space = std::same_as<space_of<T>, dynamic_space>;

/// A tensor that C can send: in C's own space, in host memory (staged), or in a space known at run time only.
/// Semantics: the device *index* is checked when a scope aligns the tensor.
/// Models: tensor_view<host_space> with any communicator; near-miss: a cuda-space tensor with a host one.
template <class T, class C>
concept Broadcastable = DeviceTensor<T> && Communicator<C> &&
                        (in_communicators_space<T, C> || in_host_space<T> || in_dynamic_space<T>);

/// A tensor that C can receive into: writable, in C's own space or in one known at run time only. Receiving
/// never stages across devices, so host memory is no target of a CUDA communicator.
template <class T, class C>
concept ReceivableInto = WritableDeviceTensor<T> && Communicator<C> &&
                         (in_communicators_space<T, C> || in_dynamic_space<T>);

/// Says in full sentences why T cannot be sent through C; true when it can.
template <class T, class C>
consteval bool explain_broadcastable() {
    static_assert(
        DeviceTensor<T>,
        "Broadcastable: the tensor is no DeviceTensor; ranges of numbers are with "
        "<weightcast/tensor/range_tensor.hpp>, others need tensor_traits: see explain_device_tensor<T>()");
    static_assert(Communicator<C>, "Broadcastable: the group is no Communicator");
    if constexpr (DeviceTensor<T> && Communicator<C>) {
        static_assert(
            in_communicators_space<T, C> || in_host_space<T> || in_dynamic_space<T>,
            "Broadcastable: the tensor lies in another memory space than the communicator's; "
            "send it through a communicator of its own space");
    }
    return Broadcastable<T, C>;
}

/// Says in full sentences why C cannot receive into T; true when it can.
template <class T, class C>
consteval bool explain_receivable_into() {
    static_assert(
        WritableDeviceTensor<T>,
        "ReceivableInto: the destination is no WritableDeviceTensor: const elements cannot be received "
        "into, and a tensor needs tensor_traits; see explain_writable_device_tensor<T>()");
    static_assert(Communicator<C>, "ReceivableInto: the group is no Communicator");
    if constexpr (WritableDeviceTensor<T> && Communicator<C>) {
        static_assert(
            in_communicators_space<T, C> || in_dynamic_space<T>,
            "ReceivableInto: the destination lies in another memory space than the communicator's; "
            "receiving never stages");
    }
    return ReceivableInto<T, C>;
}

/// Says in full sentences why O is no order of sources for runtime R; true when it is one.
template <class O, class R>
consteval bool explain_source_order() {
    static_assert(DeviceRuntime<R>,
                  "SourceOrder: R is no DeviceRuntime; see explain_device_runtime<R>()");
    static_assert(
        SourceOrder<O, R>,
        "SourceOrder: say produced_anywhere{deadline}, produced_on{stream} with a stream of the "
        "communicator's runtime, or already_ready{}");
    return SourceOrder<O, R>;
}

}  // namespace weightcast
