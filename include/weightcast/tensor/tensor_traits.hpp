// SPDX-License-Identifier: Apache-2.0
#pragma once
// The customisation point: how weightcast reads your tensor type.

#include <cstddef>
#include <type_traits>

#include <weightcast/tensor/tensor_view.hpp>

namespace weightcast {

/// How a tensor type reads. Specialise it for your own type with
/// `space`, `data(t)`, `element_type(t)`, `where(t)`, `shape(t)`;
/// `mutable_data(t)` where it may be written, `strides(t)` (in elements) where it may be strided.
template <class T>
struct tensor_traits;

template <class Space, class Byte>
struct tensor_traits<basic_tensor_view<Space, Byte>> {
    using view = basic_tensor_view<Space, Byte>;
    using space = Space;
    static void const* data(view const& t) noexcept { return t.data(); }
    static void* mutable_data(view const& t) noexcept
        requires(!std::is_const_v<Byte>)
    {
        return t.data();
    }
    static dtype element_type(view const& t) noexcept { return t.type(); }
    static device where(view const& t) noexcept { return t.where(); }
    static extents const& shape(view const& t) noexcept { return t.shape(); }
    static extents const& strides(view const& t) noexcept { return t.strides(); }
};

}  // namespace weightcast
