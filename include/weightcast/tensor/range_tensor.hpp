// SPDX-License-Identifier: Apache-2.0
#pragma once
// A vector, an array or a span of numbers is a tensor of one dimension in host memory.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <ranges>
#include <type_traits>

#include <weightcast/tensor/tensor_traits.hpp>

namespace weightcast {

namespace detail {

template <class T>
concept character_type =
    std::same_as<T, char> || std::same_as<T, wchar_t> || std::same_as<T, char8_t> ||
    std::same_as<T, char16_t> || std::same_as<T, char32_t>;

template <class T>
consteval std::optional<dtype> integer_dtype() {
    constexpr bool negative = std::is_signed_v<T>;
    switch (sizeof(T)) {
        case 1: return negative ? dtype::int8 : dtype::uint8;
        case 2: return negative ? dtype::int16 : dtype::uint16;
        case 4: return negative ? dtype::int32 : dtype::uint32;
        case 8: return negative ? dtype::int64 : dtype::uint64;
        default: return std::nullopt;
    }
}

template <class T>
consteval std::optional<dtype> arithmetic_dtype() {
    if constexpr (std::same_as<T, bool>) {
        return dtype::bool_;
    } else if constexpr (std::same_as<T, float>) {
        return dtype::float32;
    } else if constexpr (std::same_as<T, double>) {
        return dtype::float64;
    } else if constexpr (std::integral<T> && !character_type<T>) {
        return integer_dtype<T>();
    } else {
        return std::nullopt;  // text and long double are no weights
    }
}

}  // namespace detail

/// The dtype of a C++ element type, or nothing. Specialise it for your own 16-bit or 8-bit floats:
/// `template <> inline constexpr std::optional<dtype> weightcast::dtype_of<half> = dtype::float16;`
template <class T>
inline constexpr std::optional<dtype> dtype_of = detail::arithmetic_dtype<T>();

namespace detail {

template <class T>
consteval bool is_tensor_element() {
    if constexpr (dtype_of<T>.has_value()) {
        return std::is_trivially_copyable_v<T> && sizeof(T) == item_size(*dtype_of<T>);
    } else {
        return false;
    }
}

}  // namespace detail

/// A type whose values are elements of a tensor, bit by bit.
template <class T>
concept TensorElement = std::is_object_v<T> && detail::is_tensor_element<std::remove_cv_t<T>>();

/// A range that is a tensor of one dimension: contiguous, of known size, of tensor elements.
/// Near-misses: std::list (not contiguous), std::vector<bool> (bits), std::string (text).
template <class R>
concept ElementRange =
    std::ranges::contiguous_range<R const> && std::ranges::sized_range<R const> &&
    TensorElement<std::remove_reference_t<std::ranges::range_reference_t<R const>>>;

/// Contiguous ranges of numbers: shape [n], on device `cpu`. Views of const elements and const
/// containers are read-only.
template <ElementRange R>
struct tensor_traits<R> {
    using space = host_space;
    using element = std::ranges::range_value_t<R const>;

    static void const* data(R const& range) noexcept {
        return std::to_address(std::ranges::data(range));
    }
    /// Self is R or R const: a const vector may not be written, a const span of floats may.
    template <class Self>
        requires std::same_as<std::remove_const_t<Self>, R> &&
                 (!std::is_const_v<std::remove_reference_t<std::ranges::range_reference_t<Self>>>)
    static void* mutable_data(Self& range) noexcept {
        return std::to_address(std::ranges::data(range));
    }
    static constexpr dtype element_type(R const&) noexcept { return *dtype_of<element>; }
    static constexpr device where(R const&) noexcept { return cpu_device; }
    static constexpr extents shape(R const& range) {
        return {static_cast<std::int64_t>(std::ranges::size(range))};
    }
};

}  // namespace weightcast
