// SPDX-License-Identifier: Apache-2.0
#pragma once
// Door: every concept with its explanation, and nothing that runs: to check one's own types at compile time.

#include <weightcast/align/concepts.hpp>
#include <weightcast/base/concepts.hpp>
#include <weightcast/comm/concepts.hpp>
#include <weightcast/engine/concepts.hpp>
#include <weightcast/kernels/concepts.hpp>
#include <weightcast/model/concepts.hpp>
#include <weightcast/runtime/concepts.hpp>
#include <weightcast/tensor/concepts.hpp>
