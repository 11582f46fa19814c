// SPDX-License-Identifier: Apache-2.0
// Compiled only: kernel bodies include nothing of the standard library, so that NVRTC can read
// them.

#include <weightcast/kernels/digest_body.hpp>
#include <weightcast/kernels/host_device.hpp>
#include <weightcast/kernels/pack_body.hpp>
#include <weightcast/kernels/xxh3_body.hpp>

#if defined(__GLIBCXX__) || defined(_LIBCPP_VERSION) || defined(_FEATURES_H) || defined(_STDDEF_H)
#error "a kernel body includes a header of the standard library; NVRTC has none"
#endif
