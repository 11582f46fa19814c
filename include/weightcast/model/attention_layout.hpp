// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/model is host-only: include it from a .cpp file"
#endif
// Fused query, key and value of a rank, with fewer key and value heads than query heads, and than ranks.

#include <cstddef>
#include <cstdint>
#include <string>

#include <weightcast/base/error.hpp>
#include <weightcast/model/fused_layout.hpp>
#include <weightcast/model/layout.hpp>
#include <weightcast/model/sliced_layout.hpp>
#include <weightcast/model/tensor_region.hpp>

namespace weightcast {

/// Heads of an attention layer; each key and value head serves query / key_value query heads.
struct attention_heads {
    std::int64_t query = 1;
    std::int64_t key_value = 1;
    std::int64_t size = 1;  ///< rows a head
};

/// The heads of one rank.
struct head_bounds {
    index_range query{};
    index_range key_value{};
};

/// Heads are split by key and value heads, so that each query head lies with its own; where there are fewer of these
/// than ranks, each is held by ranks / key_value ranks, which share its query heads.
/// @throws bad_argument  for a rank outside, head counts below 1, or counts of which neither divides the other
inline head_bounds head_bounds_of(attention_heads heads, shard_position at) {
    detail::check_position(at);
    auto const kv = heads.key_value;
    if (heads.query < 1 || kv < 1 || heads.size < 1 || heads.query % kv != 0) {
        throw bad_argument{"attention: " + std::to_string(heads.query) + " query heads and " +
                           std::to_string(kv) + " key and value heads of " +
                           std::to_string(heads.size) + " rows"};
    }
    auto const group = heads.query / kv;
    if (kv >= at.ranks) {
        auto const own = shard_bounds(kv, at);
        return {{own.first * group, own.last * group}, own};
    }
    if (at.ranks % kv != 0) {
        throw bad_argument{"attention: " + std::to_string(kv) + " key and value heads on " +
                           std::to_string(at.ranks) + " ranks"};
    }
    auto const replicas = at.ranks / kv;
    auto const head = at.rank / replicas;
    auto const part = shard_bounds(group, {at.rank % replicas, replicas});
    return {{head * group + part.first, head * group + part.last}, {head, head + 1}};
}

namespace layouts {

/// A rank's query, key and value rows, fused in this order along dimension 0. The parts are layouts of all heads'
/// rows, [heads * size, ...]: weights, biases or scales with a row each.
/// @throws bad_argument  for parts of other sizes than the heads', and what `head_bounds_of` and `fused` throw
inline layout fused_qkv(layout const& query, layout const& key, layout const& value,
                        attention_heads heads, shard_position at) {
    auto const own = head_bounds_of(heads, at);
    auto const rows = [&](layout const& part, std::int64_t count, index_range of) {
        detail::check_dim(part, 0);
        if (part.shape()[0] % heads.size != 0 || part.shape()[0] / heads.size != count) {
            throw bad_argument{describe(part) + ": dimension 0 is not " + std::to_string(count) +
                               " heads of " + std::to_string(heads.size) + " rows"};
        }
        return sliced(part, 0, {of.first * heads.size, of.last * heads.size});
    };
    return fused(0, {rows(query, heads.query, own.query), rows(key, heads.key_value, own.key_value),
                     rows(value, heads.key_value, own.key_value)});
}

}  // namespace layouts

}  // namespace weightcast
