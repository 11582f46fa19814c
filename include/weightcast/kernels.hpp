// SPDX-License-Identifier: Apache-2.0
#pragma once
// Door: packing, digests, and the launches of the host runtime.

#include <weightcast/kernels/concepts.hpp>
#include <weightcast/kernels/digest.hpp>
#include <weightcast/kernels/digest_body.hpp>
#include <weightcast/kernels/host_device.hpp>
#include <weightcast/kernels/host_launch.hpp>
#include <weightcast/kernels/launch.hpp>
#include <weightcast/kernels/model_digest.hpp>
#include <weightcast/kernels/pack.hpp>
#include <weightcast/kernels/pack_body.hpp>
#include <weightcast/kernels/strided_region.hpp>
#include <weightcast/kernels/tensor_copy.hpp>
#include <weightcast/kernels/xxh3_body.hpp>
