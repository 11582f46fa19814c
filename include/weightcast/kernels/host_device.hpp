// SPDX-License-Identifier: Apache-2.0
#pragma once
// The mark of a kernel body: the same text is compiled for the CPU, by nvcc and by NVRTC. Bodies
// use builtin types and each other, and include nothing but this: NVRTC without headers has no
// uint64_t.

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define WEIGHTCAST_HOST_DEVICE __host__ __device__
#else
#define WEIGHTCAST_HOST_DEVICE
#endif
