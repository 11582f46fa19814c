// SPDX-License-Identifier: Apache-2.0
// An engine that serves while its weights change: a transformer block answers from snapshots on one thread, updates
// arrive on another, and each answer is that of exactly one version of the trainer's checkpoint.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <iostream>
#include <map>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include <weightcast/model/shadow.hpp>
#include <weightcast/weightcast.hpp>

using namespace weightcast;

namespace {

constexpr std::size_t hidden = 16, heads = 4, kv_heads = 2, head = 4, inner = 24, tokens = 6;
constexpr std::size_t q_rows = heads * head, kv_rows = kv_heads * head;
constexpr std::uint64_t versions = 5, passes_a_version = 200;

using vec = std::vector<float>;
using checkpoint = std::map<std::string, vec>;  // what the trainer has, by checkpoint name

std::map<std::string, extents> const shapes{
    {"input_layernorm", {hidden}},  {"post_attention_layernorm", {hidden}},
    {"q_proj", {q_rows, hidden}},   {"k_proj", {kv_rows, hidden}},
    {"v_proj", {kv_rows, hidden}},  {"o_proj", {hidden, q_rows}},
    {"gate_proj", {inner, hidden}}, {"up_proj", {inner, hidden}},
    {"down_proj", {hidden, inner}}};

/// Every element differs from version to version.
checkpoint checkpoint_of(std::uint64_t version) {
    checkpoint all;
    for (auto const& [name, shape] : shapes) {
        for (std::size_t i = 0; i < element_count(shape); ++i)
            all[name].push_back(0.4F * std::sin(static_cast<float>(i * i + 31 * version) +
                                                static_cast<float>(name.front())));
    }
    return all;
}

vec input(std::size_t token) {
    vec x(hidden);
    for (std::size_t i = 0; i < hidden; ++i) x[i] = std::cos(static_cast<float>(3 * token + i));
    return x;
}
float dot(float const* a, float const* b, std::size_t count) {
    return std::inner_product(a, a + count, b, 0.0F);
}
vec multiply(float const* matrix, std::size_t rows, vec const& x) {
    vec y(rows);
    for (std::size_t r = 0; r < rows; ++r) y[r] = dot(matrix + r * x.size(), x.data(), x.size());
    return y;
}
vec rms_norm(float const* weight, vec x) {
    auto const mean = dot(x.data(), x.data(), x.size()) / static_cast<float>(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) x[i] *= weight[i] / std::sqrt(mean + 1e-6F);
    return x;
}
vec sum_of(vec x, vec const& y) {
    for (std::size_t i = 0; i < x.size(); ++i) x[i] += y[i];
    return x;
}
vec gated(float const* gate, float const* up) {
    vec x(inner);
    for (std::size_t i = 0; i < inner; ++i) x[i] = gate[i] / (1 + std::exp(-gate[i])) * up[i];
    return x;
}
/// The last token's query over all keys and values; each key head serves two query heads.
vec attention(vec const& query, std::vector<vec> const& keys, std::vector<vec> const& values) {
    vec out(q_rows);
    for (std::size_t h = 0; h < heads; ++h) {
        auto const kv = h / (heads / kv_heads) * head;
        float all = 0;
        for (std::size_t t = 0; t < keys.size(); ++t) {
            auto const score = std::exp(dot(&query[h * head], &keys[t][kv], head) / 2);
            for (std::size_t i = 0; i < head; ++i) out[h * head + i] += score * values[t][kv + i];
            all += score;
        }
        for (std::size_t i = 0; i < head; ++i) out[h * head + i] /= all;
    }
    return out;
}

/// The block as the checkpoint has it, tensor by tensor: what a version's answer must be.
vec reference(checkpoint const& c) {
    auto const of = [&](char const* name) { return c.at(name).data(); };
    vec x, query;
    std::vector<vec> keys, values;
    for (std::size_t t = 0; t < tokens; ++t) {
        auto const normed = rms_norm(of("input_layernorm"), x = input(t));
        query = multiply(of("q_proj"), q_rows, normed);
        keys.push_back(multiply(of("k_proj"), kv_rows, normed));
        values.push_back(multiply(of("v_proj"), kv_rows, normed));
    }
    x = sum_of(x, multiply(of("o_proj"), hidden, attention(query, keys, values)));
    auto const normed = rms_norm(of("post_attention_layernorm"), x);
    auto const gate = multiply(of("gate_proj"), inner, normed);
    auto const up = multiply(of("up_proj"), inner, normed);
    return sum_of(x, multiply(of("down_proj"), hidden, gated(gate.data(), up.data())));
}

/// An engine with tensors of its own, fused, in two sets: one is served, an update writes the other.
struct engine {
    parameter_tables<host_runtime, shadow> tables{};
    std::map<std::string, vec> memory{};

    engine() {
        auto const sent = [](auto const& name) {
            return layouts::whole({name, dtype::float32, shapes.at(name)});
        };
        hold("qkv", layouts::fused_qkv(sent("q_proj"), sent("k_proj"), sent("v_proj"),
                                       {heads, kv_heads, head}, {.rank = 0, .ranks = 1}));
        hold("gate_up", layouts::fused(0, {sent("gate_proj"), sent("up_proj")}));
        for (auto const* own :
             {"input_layernorm", "post_attention_layernorm", "o_proj", "down_proj"})
            hold(own, sent(own));
    }
    void hold(std::string const& own, layout const& made_of) {
        auto& bytes = memory[own] = vec(element_count(made_of.shape()));
        tables.main().add(own, made_of,
                          tensor_view<>{bytes.data(), made_of.type(), made_of.shape()});
    }
    /// A forward pass; all that it reads of the weights comes through one snapshot.
    static vec forward(auto const& snapshot) {
        auto const of = [&](char const* own) {
            return static_cast<float const*>(snapshot.tensor(own).data());
        };
        vec x, query;
        std::vector<vec> keys, values;
        for (std::size_t t = 0; t < tokens; ++t) {
            auto const normed = rms_norm(of("input_layernorm"), x = input(t));
            auto const qkv = multiply(of("qkv"), q_rows + 2 * kv_rows, normed);
            auto const* const key = qkv.data() + q_rows;
            query.assign(qkv.data(), key);
            keys.emplace_back(key, key + kv_rows);
            values.emplace_back(key + kv_rows, key + 2 * kv_rows);
        }
        x = sum_of(x, multiply(of("o_proj"), hidden, attention(query, keys, values)));
        auto const both =
            multiply(of("gate_up"), 2 * inner, rms_norm(of("post_attention_layernorm"), x));
        return sum_of(x, multiply(of("down_proj"), hidden, gated(&both[0], &both[inner])));
    }
};

/// Sends a version when the one before has served its passes; passes go on meanwhile.
void train(local_group const& group, std::atomic<std::uint64_t> const& served) {
    weight_sender sender{dense_trainer{already_joined(group.join(0))}, {{.rank = 0, .size = 2}}};
    for (std::uint64_t v = 1; v <= versions; ++v) {
        while (served < v - 1) std::this_thread::sleep_for(std::chrono::milliseconds{1});
        auto weights = checkpoint_of(v);
        table_source<> model;
        for (auto const& [name, shape] : shapes)
            model.add(name, tensor_view<>{weights.at(name).data(), dtype::float32, shape});
        sender.update(model).or_throw();
    }
}
void receive(local_group const& group, engine& into) {
    weight_worker worker{dense_engine{already_joined(group.join(1)), into.tables},
                         group_init{.rank = 1, .size = 2}};
    for (std::uint64_t v = 1; v <= versions; ++v) worker.serve_one();
}
bool is_close(float a, float b) { return std::abs(a - b) < 1e-5F; }

}  // namespace

int main() {
    local_group const group{2};
    engine own;
    std::atomic<std::uint64_t> served{0};  // the version that has served its passes
    std::jthread const trainer{[&] { train(group, served); }};
    std::jthread const receiver{[&] { receive(group, own); }};
    version_spans request;  // one long request: each pass makes a token of it
    std::vector<vec> expected(versions + 1), outputs(versions + 1);
    std::uint64_t mixes = 0;
    while (served < versions) {
        auto const snapshot = own.tables.snapshot(deadline::after(std::chrono::seconds{10}));
        auto const v = snapshot.version().number;
        if (v == 0) continue;  // no update has come yet
        if (expected[v].empty()) expected[v] = reference(checkpoint_of(v));
        outputs[v] = engine::forward(snapshot);
        mixes += std::ranges::equal(outputs[v], expected[v], is_close) ? 0 : 1;
        request.add(snapshot.version());
        auto const& span = request.spans().back();
        if (span.last - span.first == passes_a_version) served = v;
    }
    for (auto const& [version, first, last] : request.spans())
        std::cout << "version " << to_string(version) << ": " << last - first << " passes, tokens ["
                  << first << ", " << last << "), output " << outputs[version.number][0] << '\n';
    if (mixes != 0) std::cerr << mixes << " passes had weights of more than one version\n";
    return mixes == 0 && request.spans().size() == versions ? 0 : 1;
}
