// SPDX-License-Identifier: Apache-2.0
#pragma once
// Door: element types, devices, views, and how other tensor types read as one.

#include <weightcast/tensor/concepts.hpp>
#include <weightcast/tensor/device.hpp>
#include <weightcast/tensor/dlpack.hpp>
#include <weightcast/tensor/dlpack_abi.hpp>
#include <weightcast/tensor/dtype.hpp>
#include <weightcast/tensor/extents.hpp>
#include <weightcast/tensor/named_view.hpp>
#include <weightcast/tensor/range_tensor.hpp>
#include <weightcast/tensor/space.hpp>
#include <weightcast/tensor/tensor_traits.hpp>
#include <weightcast/tensor/tensor_view.hpp>
