// SPDX-License-Identifier: Apache-2.0
#pragma once
// Door: everything that nvcc may read; needs nothing but the standard library.

#include <weightcast/align.hpp>
#include <weightcast/base.hpp>
#include <weightcast/comm.hpp>
#include <weightcast/kernels.hpp>
#include <weightcast/runtime.hpp>
#include <weightcast/tensor.hpp>
