// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/io is host-only: include it from a .cpp file"
#endif
// Door: reading and writing models as safetensors files.

#include <weightcast/io/atomic_file.hpp>
#include <weightcast/io/mapped_file.hpp>
#include <weightcast/io/safetensors_dtype.hpp>
#include <weightcast/io/safetensors_file.hpp>
#include <weightcast/io/safetensors_header.hpp>
#include <weightcast/io/safetensors_index.hpp>
#include <weightcast/io/safetensors_model.hpp>
#include <weightcast/io/safetensors_writer.hpp>
