// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a tensor says of its place, against what the runtime knows of its memory.

#include <string>
#include <utility>

#include <weightcast/base/error.hpp>
#include <weightcast/base/operation.hpp>
#include <weightcast/runtime/concepts.hpp>
#include <weightcast/tensor/device.hpp>
#include <weightcast/tensor/tensor_view.hpp>

namespace weightcast {

/// Throws device_mismatch about the tensor of that label.
[[noreturn]] inline void fail_device_mismatch(operation_label const& label, int rank,
                                              std::string expected, std::string actual) {
    fail<device_mismatch>("the tensor is not where it has to be",
                          failure_facts{.where = label.where(),
                                        .tensor = std::string{label.tensor()},
                                        .rank = rank,
                                        .expected = std::move(expected),
                                        .actual = std::move(actual)});
}

/// The view in R's own space; a device without an index gets `ambient`, the caller's current one.
/// @throws device_mismatch  for a device of another kind, or one that its memory is not on; `rank` reports it
/// Cost: one pointer look-up.
template <DeviceRuntime R, class Space, class Byte>
basic_tensor_view<typename R::space, Byte> located(basic_tensor_view<Space, Byte> const& view,
                                                   int ambient, operation_label const& label,
                                                   int rank) {
    device const where =
        view.where().is_accelerator() ? view.where().resolved_to(ambient) : view.where();
    if (where.is_accelerator() && where.kind != R::kind) {
        fail_device_mismatch(label, rank,
                             "a device of kind " + std::string{to_string(R::kind)} + " or cpu",
                             to_string(where));
    }
    if (view.bytes() != 0) {
        device const actual = R::locate(view.data());
        if (actual != where) {
            fail_device_mismatch(label, rank,
                                 "memory of " + to_string(where) + ", as the tensor says",
                                 "a pointer to memory of " + to_string(actual));
        }
    }
    return view.template relabelled<typename R::space>(where);
}

}  // namespace weightcast
