// SPDX-License-Identifier: Apache-2.0
#pragma once
// Models in files, as every command opens them: what cannot be read is the user's bad input.

#include <span>
#include <string>

#include <program/weight_memory.hpp>

#include <weightcast/io/safetensors_model.hpp>
#include <weightcast/tensor/named_view.hpp>

namespace weightcast::program {

/// @throws bad_usage  when there is no such file, or it holds no model
safetensors_model open_model(std::string const& path);

/// A copy that may be written.
weight_memory copy_of(safetensors_model const& model);

/// Replaces the file as a whole. @throws system_failure
void write_weights(std::span<named_view<> const> tensors, std::string const& path);

}  // namespace weightcast::program
