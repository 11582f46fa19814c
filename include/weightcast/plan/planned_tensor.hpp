// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/plan is host-only: include it from a .cpp file"
#endif
// What a plan needs to know of a tensor: metadata only, so that every rank can plan without the bytes.

#include <cstdint>
#include <string>
#include <string_view>

#include <weightcast/base/byte_count.hpp>
#include <weightcast/base/error.hpp>
#include <weightcast/tensor/dtype.hpp>
#include <weightcast/tensor/extents.hpp>

namespace weightcast {

/// One tensor of an update, in the order in which it is announced.
struct planned_tensor {
    std::string_view name{};  ///< checkpoint name; outlives the call that is given it
    dtype type = dtype::uint8;
    extents shape{};
    std::uint64_t bytes = 0;  ///< of its elements, gaps not counted
    bool contiguous =
        true;      ///< its bytes lie one after the other at the root and at every receiver
    int root = 0;  ///< the rank that holds it
};

/// Checks a tensor whose metadata may come from outside.
/// @throws bad_input  when the bytes are not those of dtype and shape, or the root is negative
inline void validate(planned_tensor const& tensor) {
    auto const expected = checked_multiply(element_count(tensor.shape), item_size(tensor.type));
    if (tensor.bytes != expected) {
        throw bad_input{"tensor '" + std::string{tensor.name} + "' has " +
                        std::to_string(tensor.bytes) + " bytes; " +
                        std::string{to_string(tensor.type)} + " of shape " +
                        to_string(tensor.shape) + " has " + std::to_string(expected)};
    }
    if (tensor.root < 0) {
        throw bad_input{"tensor '" + std::string{tensor.name} + "' names root " +
                        std::to_string(tensor.root) + ", which is no rank"};
    }
}

}  // namespace weightcast
