// SPDX-License-Identifier: Apache-2.0
#pragma once
// The concepts of tensor/ and their explanations in full sentences.

#include <concepts>
#include <cstdint>
#include <ranges>
#include <string_view>
#include <type_traits>
#include <utility>

#include <weightcast/tensor/tensor_traits.hpp>

namespace weightcast {

template <class T>
concept has_tensor_space = MemorySpace<typename tensor_traits<std::remove_cvref_t<T>>::space>;
template <class T>
concept has_tensor_data = requires(std::remove_cvref_t<T> const& t) {
    { tensor_traits<std::remove_cvref_t<T>>::data(t) } -> std::convertible_to<void const*>;
};
template <class T>
concept has_tensor_element_type = requires(std::remove_cvref_t<T> const& t) {
    { tensor_traits<std::remove_cvref_t<T>>::element_type(t) } -> std::same_as<dtype>;
};
template <class T>
concept has_tensor_device = requires(std::remove_cvref_t<T> const& t) {
    { tensor_traits<std::remove_cvref_t<T>>::where(t) } -> std::same_as<device>;
};
/// A sized range of integers, as shapes and strides are.
template <class R>
concept ExtentsRange = std::ranges::sized_range<R> && std::ranges::input_range<R> &&
                       std::convertible_to<std::ranges::range_value_t<R>, std::int64_t>;
template <class T>
concept has_tensor_shape = requires(std::remove_cvref_t<T> const& t) {
    { tensor_traits<std::remove_cvref_t<T>>::shape(t) } -> ExtentsRange;
};
template <class T>
concept has_tensor_strides = requires(std::remove_cvref_t<T> const& t) {
    { tensor_traits<std::remove_cvref_t<T>>::strides(t) } -> ExtentsRange;
};
template <class T>
concept has_mutable_tensor_data = requires(std::remove_reference_t<T>& t) {
    { tensor_traits<std::remove_cvref_t<T>>::mutable_data(t) } -> std::same_as<void*>;
};

/// A tensor that weightcast can read: memory, element type, device and shape.
/// Semantics: `data` points to element 0; it stays valid and unmoved while the tensor lives;
/// `where` names the device that owns the memory. A type without `strides` is contiguous.
/// Laws: `view_of(t)` has the same data, dtype, device and shape; twice the same call, twice the
/// same answer (tests/laws/tensor_laws.hpp).
/// Models: tensor_view, managed_dlpack, contiguous ranges of numbers; near-miss: std::list.
/// Cost: none of the calls may allocate on the data path.
template <class T>
concept DeviceTensor = has_tensor_space<T> && has_tensor_data<T> && has_tensor_element_type<T> &&
                       has_tensor_device<T> && has_tensor_shape<T>;

/// A tensor that weightcast may also write. Near-miss: a view of const elements.
template <class T>
concept WritableDeviceTensor = DeviceTensor<T> && has_mutable_tensor_data<T>;

/// The memory space of T as the compiler knows it.
template <DeviceTensor T>
using space_of = typename tensor_traits<std::remove_cvref_t<T>>::space;

/// Any tensor as a read-only view. @throws bad_input  for a layout that is none
template <DeviceTensor T>
const_tensor_view<space_of<T>> view_of(T const& t) {
    using traits = tensor_traits<T>;
    extents const shape{traits::shape(t)};
    if constexpr (has_tensor_strides<T>) {
        return {traits::data(t), traits::element_type(t), shape, extents{traits::strides(t)},
                traits::where(t)};
    } else {
        return {traits::data(t), traits::element_type(t), shape, traits::where(t)};
    }
}

/// Any writable tensor as a view that may be written. @throws bad_input  for a layout that is none
template <WritableDeviceTensor T>
tensor_view<space_of<T>> writable_view_of(T& t) {
    using traits = tensor_traits<std::remove_cvref_t<T>>;
    extents const shape{traits::shape(t)};
    if constexpr (has_tensor_strides<T>) {
        return {traits::mutable_data(t), traits::element_type(t), shape,
                extents{traits::strides(t)}, traits::where(t)};
    } else {
        return {traits::mutable_data(t), traits::element_type(t), shape, traits::where(t)};
    }
}

/// A tensor with its checkpoint name: members `name` and `tensor`.
/// Models: named_view; near-miss: a pair, whose first and second do not say what they are.
template <class N>
concept NamedTensor = requires(N const& n) {
    { n.name } -> std::convertible_to<std::string_view>;
    requires DeviceTensor<decltype(n.tensor)>;
};

/// A named tensor whose bytes the host may read.
template <class N>
concept NamedHostTensor =
    NamedTensor<N> && std::same_as<space_of<decltype(std::declval<N const&>().tensor)>, host_space>;

/// Says in full sentences why T is no DeviceTensor; true when it is one.
template <class T>
consteval bool explain_device_tensor() {
    static_assert(
        has_tensor_space<T>,
        "DeviceTensor: tensor_traits<T> needs `using space`, one of host_space, cuda_space, "
        "dynamic_space");
    static_assert(has_tensor_data<T>,
                  "DeviceTensor: tensor_traits<T> needs data(t), convertible to void const*");
    static_assert(
        has_tensor_element_type<T>,
        "DeviceTensor: tensor_traits<T> needs element_type(t), returning weightcast::dtype");
    static_assert(has_tensor_device<T>,
                  "DeviceTensor: tensor_traits<T> needs where(t), returning weightcast::device");
    static_assert(has_tensor_shape<T>,
                  "DeviceTensor: tensor_traits<T> needs shape(t), a sized range of integers");
    return DeviceTensor<T>;
}

/// Says in full sentences why T is no WritableDeviceTensor; true when it is one.
template <class T>
consteval bool explain_writable_device_tensor() {
    static_assert(
        has_mutable_tensor_data<T>,
        "WritableDeviceTensor: tensor_traits<T> needs mutable_data(t), returning void*; a view "
        "of const elements may be sent, never received into");
    return explain_device_tensor<T>() && WritableDeviceTensor<T>;
}

}  // namespace weightcast
