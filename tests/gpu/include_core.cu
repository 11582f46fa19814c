// SPDX-License-Identifier: Apache-2.0
// nvcc reads everything that promises to be safe for it.

#include <weightcast/concepts.hpp>
#include <weightcast/core.hpp>

__global__ void nothing() {}

int main() { nothing<<<1, 1>>>(); }
