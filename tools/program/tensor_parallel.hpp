// SPDX-License-Identifier: Apache-2.0
#pragma once
// How tensor-parallel workers cut a model with the names of llama and qwen: which tensors are fused, and along which
// dimension each is sharded.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <program/weight_memory.hpp>

#include <weightcast/model/layout.hpp>
#include <weightcast/model/parameter.hpp>
#include <weightcast/model/sliced_layout.hpp>

namespace weightcast::program {

/// One tensor of a worker, and the checkpoint tensors that it is made of.
struct own_tensor {
    enum class cut : std::uint8_t {
        replicated,  ///< whole, on every rank
        rows,        ///< dimension 0; padded with zeros where it does not divide
        columns,     ///< dimension 1
        qkv,         ///< query, key and value rows of a rank, one after the other
        gate_up      ///< gate and up rows of a rank, one after the other
    };
    std::string name;
    cut how = cut::replicated;
    std::vector<parameter> sources{};
};

/// A worker's tensors, in the order of the checkpoint's; fused ones where the first of their parts stands. The same on
/// every rank. Fused: q_proj, k_proj and v_proj, gate_proj and up_proj, of one layer, with one dtype and with sizes that
/// divide. o_proj and down_proj are cut into columns, embeddings and lm_head into rows; the rest, and what does not
/// divide, is replicated. With one rank all is.
std::vector<own_tensor> own_tensors(std::span<parameter const> checkpoint, std::int64_t ranks);

/// How that tensor of a rank is made.
layout layout_of(own_tensor const& own, shard_position at);

/// Name, dtype and shape of each of a rank's tensors.
std::vector<parameter> parameters_of(std::span<own_tensor const> own, shard_position at);

/// What a rank must hold of these weights, cut by plain loops over rows: shares nothing with layouts.
/// @pre  `own` are the tensors of the weights' parameters
weight_memory shard_of(weight_memory const& weights, std::span<own_tensor const> own,
                       shard_position at);

}  // namespace weightcast::program
