// SPDX-License-Identifier: Apache-2.0
#include <program/tensor_parallel.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <weightcast/model/attention_layout.hpp>
#include <weightcast/model/fused_layout.hpp>
#include <weightcast/model/stored_layout.hpp>
#include <weightcast/tensor/dtype.hpp>

namespace weightcast::program {

namespace {

using cut = own_tensor::cut;

std::int64_t rounded_up(std::int64_t count, std::int64_t to) { return (count + to - 1) / to; }

/// "model.layers.0.self_attn.", "q_proj", ".weight".
struct name_parts {
    std::string prefix;
    std::string module;
    std::string suffix;
};
std::optional<name_parts> parts_of(std::string const& name) {
    for (std::string_view const suffix : {".weight", ".bias"}) {
        if (!name.ends_with(suffix)) continue;
        auto const path = name.substr(0, name.size() - suffix.size());
        auto const dot = path.rfind('.');
        auto const begin = dot == std::string::npos ? 0 : dot + 1;
        return name_parts{path.substr(0, begin), path.substr(begin), std::string{suffix}};
    }
    return std::nullopt;
}

bool divides(parameter const& p, std::size_t dim, std::int64_t ranks) {
    return dim < p.shape.size() && p.shape[dim] > 0 && p.shape[dim] % ranks == 0;
}

/// Finds what goes together by name.
class cutter {
  public:
    cutter(std::span<parameter const> checkpoint, std::int64_t ranks) : ranks_{ranks} {
        for (auto const& p : checkpoint) by_name_.emplace(p.name, &p);
    }
    /// The tensor that begins with this one; nothing for one that is in another already.
    std::optional<own_tensor> take(parameter const& p) {
        if (taken_.contains(p.name)) return std::nullopt;
        auto const parts = parts_of(p.name);
        if (ranks_ == 1 || !parts) return alone(p, cut::replicated);
        if (auto own = fused(*parts, {"q_proj", "k_proj", "v_proj"}, "qkv_proj", cut::qkv))
            return own;
        if (auto own = fused(*parts, {"gate_proj", "up_proj"}, "gate_up_proj", cut::gate_up))
            return own;
        return alone(p, cut_of(p, *parts));
    }

  private:
    static own_tensor alone(parameter const& p, cut how) { return {p.name, how, {p}}; }
    cut cut_of(parameter const& p, name_parts const& parts) const {
        auto const is = [&](std::string_view module) { return parts.module == module; };
        if (is("o_proj") || is("down_proj"))
            return divides(p, 1, ranks_) ? cut::columns : cut::replicated;
        bool const vocabulary = is("embed_tokens") || is("lm_head");
        return vocabulary && divides(p, 0, 1) ? cut::rows : cut::replicated;
    }
    std::optional<own_tensor> fused(name_parts const& parts, std::vector<std::string> modules,
                                    std::string const& as, cut how) {
        if (std::ranges::find(modules, parts.module) == modules.end()) return std::nullopt;
        own_tensor own{parts.prefix + as + parts.suffix, how, {}};
        for (auto const& module : modules) {
            auto const found = by_name_.find(parts.prefix + module + parts.suffix);
            if (found == by_name_.end()) return std::nullopt;
            own.sources.push_back(*found->second);
        }
        if (by_name_.contains(own.name) || !fits(own)) return std::nullopt;
        for (auto const& p : own.sources) taken_.insert(p.name);
        return own;
    }
    bool fits(own_tensor const& own) const {
        auto const& first = own.sources.front();
        for (auto const& p : own.sources) {
            bool const alike = p.type == first.type && p.shape.size() == first.shape.size() &&
                               divides(p, 0, ranks_) &&
                               std::equal(p.shape.begin() + 1, p.shape.end(),
                                          first.shape.begin() + 1, first.shape.end());
            if (!alike) return false;
        }
        auto const rows = [&](std::size_t i) { return own.sources[i].shape[0]; };
        return own.how != cut::qkv || (rows(1) == rows(2) && rows(0) % rows(1) == 0);
    }

    std::int64_t ranks_;
    std::map<std::string, parameter const*> by_name_;
    std::set<std::string> taken_;
};

/// What one element of dimension 0 takes, and how many there are.
struct row_view {
    std::span<std::byte const> bytes;
    std::int64_t rows = 1;
    std::size_t row_bytes() const { return bytes.size() / static_cast<std::size_t>(rows); }
};
row_view rows_of(std::span<std::byte const> bytes, parameter const& p) {
    return {bytes, p.shape.empty() ? 1 : p.shape[0]};
}

/// Writes one own tensor, from its first byte to its last.
class shard_writer {
  public:
    shard_writer(std::span<std::byte> to, shard_position at) : to_{to}, at_{at} {}
    /// The rank's stretch of rows; where the source ends before, what is left stays as it is.
    void rows(row_view const& from) {
        auto const each = rounded_up(from.rows, at_.ranks);
        for (std::int64_t r = at_.rank * each; r < (at_.rank + 1) * each; ++r) {
            if (r < from.rows)
                put(from.bytes.subspan(index(r) * from.row_bytes(), from.row_bytes()));
        }
    }
    /// Of each row, the rank's stretch.
    void columns(row_view const& from) {
        auto const part = from.row_bytes() / index(at_.ranks);
        for (std::int64_t r = 0; r < from.rows; ++r)
            put(from.bytes.subspan(index(r) * from.row_bytes() + index(at_.rank) * part, part));
    }
    void put(std::span<std::byte const> bytes) {
        if (!bytes.empty()) std::memcpy(to_.data() + written_, bytes.data(), bytes.size());
        written_ += bytes.size();
    }

  private:
    static std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }
    std::span<std::byte> to_;
    shard_position at_;
    std::size_t written_ = 0;
};

parameter shape_of_shard(own_tensor const& own, std::int64_t ranks) {
    auto p = own.sources.front();
    p.name = own.name;
    for (std::size_t i = 1; i < own.sources.size(); ++i) p.shape[0] += own.sources[i].shape[0];
    if (own.how == cut::columns) {
        p.shape[1] /= ranks;
    } else if (own.how != cut::replicated) {
        p.shape[0] = rounded_up(p.shape[0], ranks);
    }
    return p;
}

}  // namespace

std::vector<own_tensor> own_tensors(std::span<parameter const> checkpoint, std::int64_t ranks) {
    cutter cut_up{checkpoint, ranks};
    std::vector<own_tensor> all;
    for (auto const& p : checkpoint) {
        if (auto own = cut_up.take(p)) all.push_back(std::move(*own));
    }
    return all;
}

layout layout_of(own_tensor const& own, shard_position at) {
    std::vector<layout> parts;
    for (auto const& p : own.sources) parts.push_back(layouts::whole(p));
    switch (own.how) {
        case cut::replicated: break;
        case cut::columns: return layouts::sharded(parts[0], 1, at);
        case cut::rows: {
            auto const size = rounded_up(parts[0].shape()[0], at.ranks) * at.ranks;
            return layouts::sharded(layouts::padded(parts[0], 0, size), 0, at);
        }
        case cut::qkv: {  // a key and value head a rank: where several are, they lie together
            auto const query = parts[0].shape()[0];
            auto const key = parts[1].shape()[0];
            return layouts::fused_qkv(parts[0], parts[1], parts[2],
                                      {query / key * at.ranks, at.ranks, key / at.ranks}, at);
        }
        case cut::gate_up:
            return layouts::fused(
                0, {layouts::sharded(parts[0], 0, at), layouts::sharded(parts[1], 0, at)});
    }
    return parts[0];
}

std::vector<parameter> parameters_of(std::span<own_tensor const> own, shard_position at) {
    std::vector<parameter> all;
    for (auto const& o : own) {
        auto const made_of = layout_of(o, at);
        all.push_back({o.name, made_of.type(), made_of.shape()});
    }
    return all;
}

weight_memory shard_of(weight_memory const& weights, std::span<own_tensor const> own,
                       shard_position at) {
    std::map<std::string_view, std::size_t> index;
    for (std::size_t i = 0; i < weights.size(); ++i) index[weights.parameters()[i].name] = i;
    std::vector<parameter> parameters;
    for (auto const& o : own) parameters.push_back(shape_of_shard(o, at.ranks));
    weight_memory shard{std::move(parameters)};
    for (std::size_t i = 0; i < own.size(); ++i) {
        shard_writer to{shard.bytes_of(i), at};
        for (auto const& source : own[i].sources) {
            auto const from = weights.bytes_of(index.at(source.name));
            if (own[i].how == cut::replicated) {
                to.put(from);
            } else if (own[i].how == cut::columns) {
                to.columns(rows_of(from, source));
            } else {
                to.rows(rows_of(from, source));
            }
        }
    }
    return shard;
}

}  // namespace weightcast::program
