// SPDX-License-Identifier: Apache-2.0
// What every DeviceTensor keeps to, whatever its type.
#pragma once

#include <algorithm>
#include <cstddef>

#include <boost/test/unit_test.hpp>

#include <weightcast/tensor/concepts.hpp>

namespace weightcast::test {

/// The same call twice gives the same answer, and the view says what the traits say.
template <DeviceTensor T>
void check_tensor_laws(T const& t) {
    using traits = tensor_traits<T>;
    BOOST_TEST(traits::data(t) == traits::data(t));
    BOOST_TEST(traits::element_type(t) == traits::element_type(t));
    BOOST_TEST(traits::where(t) == traits::where(t));
    auto const view = view_of(t);
    BOOST_TEST(view.data() == traits::data(t));
    BOOST_TEST(view.type() == traits::element_type(t));
    BOOST_TEST(view.where() == traits::where(t));
    BOOST_TEST(view.shape() == extents{traits::shape(t)});
    if constexpr (has_tensor_strides<T>) {
        BOOST_TEST(view.strides() == extents{traits::strides(t)});
    } else {
        BOOST_TEST(view.contiguous());
        BOOST_TEST(view.strides() == contiguous_strides(view.shape()));
    }
    BOOST_TEST(view.bytes() == element_count(view.shape()) * item_size(view.type()));
}

/// What may be written is what is read.
template <WritableDeviceTensor T>
void check_writable_tensor_laws(T& t) {
    check_tensor_laws(t);
    auto const view = writable_view_of(t);
    BOOST_TEST(view.data() == view_of(t).data());
    BOOST_CHECK(view.layout() == view_of(t).layout());
    BOOST_TEST(view.where() == view_of(t).where());
}

}  // namespace weightcast::test
