// SPDX-License-Identifier: Apache-2.0
#pragma once
// Digests of many ranges of memory at once: one range a work item.

#include <weightcast/kernels/xxh3_body.hpp>

namespace weightcast::kernels {

/// `count` ranges of memory, and where their digests go.
struct digest_arguments {
    unsigned char const* const* data;
    unsigned long long const* bytes;
    unsigned long long* digests;
    unsigned long long count;
};

/// XXH3_64bits of ranges index, index + stride, ... Cost: each byte read once.
WEIGHTCAST_HOST_DEVICE inline void digest_body(digest_arguments const& a, unsigned long long index,
                                               unsigned long long stride) {
    for (unsigned long long i = index; i < a.count; i += stride) {
        a.digests[i] = xxh3_64_of(a.data[i], a.bytes[i]);
    }
}

}  // namespace weightcast::kernels
