// SPDX-License-Identifier: Apache-2.0
// Layers whose own tensors are made of what arrives: quantised and repacked once, when all of a layer is there.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <support/test_model.hpp>
#include <weightcast/model/layer_group.hpp>
#include <weightcast/model/shadow.hpp>
#include <weightcast/session/update_result.hpp>
#include <weightcast/tensor/range_tensor.hpp>

namespace weightcast::test {
namespace {

constexpr std::int64_t rows = 6;
constexpr std::int64_t columns = 8;
constexpr std::int64_t group = 4;  // elements of a row that share a scale
constexpr int layers = 4;

std::string layer(int i) { return "model.layers." + std::to_string(i); }
std::vector<tensor_spec> checkpoint() {
    std::vector<tensor_spec> all{{"embed", dtype::float32, {5, columns}}};
    for (int i = 0; i < layers; ++i) {
        all.push_back({layer(i) + ".w", dtype::float32, {rows, columns}});
        all.push_back({layer(i) + ".v", dtype::float32, {rows, columns}});
        all.push_back({layer(i) + ".norm", dtype::float32, {columns}});
    }
    all.push_back({"head", dtype::float32, {5, columns}});
    return all;
}

/// int8 group-wise quantisation of one linear layer: what a kernel would do.
struct quantise {
    float const* w;
    std::int8_t* q;
    float* scales;
    void operator()() const noexcept {
        for (std::int64_t g = 0; g < rows * columns / group; ++g) {
            float largest = 0;
            for (std::int64_t k = 0; k < group; ++k)
                largest = std::max(largest, std::abs(w[g * group + k]));
            scales[g] = largest == 0 ? 1.0F : largest / 127.0F;
            for (std::int64_t k = 0; k < group; ++k)
                q[g * group + k] =
                    static_cast<std::int8_t>(std::lround(w[g * group + k] / scales[g]));
        }
    }
};
/// A repack: the transposed matrix.
struct transpose {
    float const* v;
    float* t;
    void operator()() const noexcept {
        for (std::int64_t i = 0; i < rows; ++i) {
            for (std::int64_t j = 0; j < columns; ++j) t[j * rows + i] = v[i * columns + j];
        }
    }
};

/// What an engine holds of a model: nothing as it was sent but embed, norms and head.
class quantised_engine {
  public:
    quantised_engine(device where, parameter_table<>& table) {
        for (auto const& s : checkpoint()) {
            if (s.name.ends_with(".w") || s.name.ends_with(".v")) continue;
            table.add(s.name, make(s.name, s.type, s.shape, where));
        }
        for (int i = 0; i < layers; ++i) add_layer(layer(i), where, table);
    }
    std::map<std::string, int> const& runs() const noexcept { return *runs_; }
    /// Throws in this layer's step.
    void fail_in(std::string name) { *failing_ = std::move(name); }

    std::string first_wrong(std::vector<contents> const& sent) const {
        auto const specs = checkpoint();
        for (std::size_t i = 0; i < specs.size(); ++i) {
            auto const& name = specs[i].name;
            if (name.ends_with(".w")   ? !is_quantised(name, sent[i])
                : name.ends_with(".v") ? !is_transposed(name, sent[i])
                                       : memory_.at(name)->read() != sent[i])
                return "'" + name + "' is wrong";
        }
        return "";
    }

  private:
    tensor_view<> make(std::string const& name, dtype type, extents const& shape, device where) {
        auto const bytes = static_cast<std::size_t>(element_count(shape) * item_size(type));
        memory_[name] = std::make_unique<placed_bytes>(where, contents(bytes));
        return {memory_[name]->data(), type, shape, where};
    }
    void add_layer(std::string const& name, device where, parameter_table<>& table) {
        table.add_output(name + ".q", make(name + ".q", dtype::int8, {rows, columns}, where));
        table.add_output(name + ".scales",
                         make(name + ".scales", dtype::float32, {rows, columns / group}, where));
        table.add_output(name + ".vt", make(name + ".vt", dtype::float32, {columns, rows}, where));
        auto const addresses = std::vector<void const*>{table.find(name + ".q")->data(),
                                                        table.find(name + ".scales")->data(),
                                                        table.find(name + ".vt")->data()};
        table.add_layer(
            {.name = name,
             .inputs = {{name + ".w", dtype::float32, {rows, columns}},
                        {name + ".v", dtype::float32, {rows, columns}}},
             .after = {name + ".norm"},
             .outputs = {name + ".q", name + ".scales", name + ".vt"},
             .run = [=, runs = runs_, failing = failing_](layer_tensors<host_runtime> const& t,
                                                          host_runtime::stream_ref stream) {
                 if (*failing == name) throw std::runtime_error{"no memory for it"};
                 ++(*runs)[name];
                 auto const q = t.output(name + ".q");
                 auto const scales = t.output(name + ".scales");
                 auto const vt = t.output(name + ".vt");
                 // b84: results go into the storage that was registered
                 if (addresses != std::vector<void const*>{q.data(), scales.data(), vt.data()})
                     throw std::runtime_error{"storage has moved"};
                 host_runtime::enqueue(
                     stream, quantise{static_cast<float const*>(t.input(name + ".w").data()),
                                      static_cast<std::int8_t*>(q.data()),
                                      static_cast<float*>(scales.data())});
                 host_runtime::enqueue(
                     stream, transpose{static_cast<float const*>(t.input(name + ".v").data()),
                                       static_cast<float*>(vt.data())});
             }});
    }
    bool is_quantised(std::string const& name, contents const& sent) const {
        auto const own = name.substr(0, name.size() - 2);
        std::vector<float> w(rows * columns);
        std::memcpy(w.data(), sent.data(), sent.size());
        std::vector<std::int8_t> q(rows * columns);
        std::vector<float> scales(rows * columns / group);
        quantise{w.data(), q.data(), scales.data()}();
        auto const held_q = memory_.at(own + ".q")->read();
        auto const held_scales = memory_.at(own + ".scales")->read();
        return std::memcmp(held_q.data(), q.data(), q.size()) == 0 &&
               std::memcmp(held_scales.data(), scales.data(), scales.size() * 4) == 0;
    }
    bool is_transposed(std::string const& name, contents const& sent) const {
        std::vector<float> v(rows * columns);
        std::memcpy(v.data(), sent.data(), sent.size());
        std::vector<float> t(rows * columns);
        transpose{v.data(), t.data()}();
        auto const held = memory_.at(name + "t")->read();
        return std::memcmp(held.data(), t.data(), held.size()) == 0;
    }
    std::map<std::string, std::unique_ptr<placed_bytes>> memory_;
    std::shared_ptr<std::map<std::string, int>> runs_ =
        std::make_shared<std::map<std::string, int>>();
    std::shared_ptr<std::string> failing_ = std::make_shared<std::string>();
};

constexpr std::uint64_t layer_bytes = 2 * rows * columns * 4;

/// Finite floats: a quantisation of NaN would say little.
void fill(test_model& model, std::uint64_t seed) {
    for (std::size_t i = 0; i < model.size(); ++i) {
        contents bytes(model.memory(i).size());
        for (std::size_t k = 0; k < bytes.size() / 4; ++k) {
            auto const word = (k + 1) * 2654435761U + seed * 97U + i * 1009U;
            auto const value = static_cast<float>(word % 20011U) / 1000.0F - 10.0F;
            std::memcpy(bytes.data() + 4 * k, &value, 4);
        }
        model.memory(i).write(bytes);
    }
}

/// Names of the checkpoint in another order.
std::vector<tensor_spec> ordered(std::string const& how) {
    auto all = checkpoint();
    if (how == "reversed") std::reverse(all.begin(), all.end());
    if (how == "by kind") {  // every layer stays open until the end
        std::stable_sort(all.begin(), all.end(), [](auto const& a, auto const& b) {
            return a.name.substr(a.name.rfind('.') + 1) < b.name.substr(b.name.rfind('.') + 1);
        });
    }
    return all;
}

struct run_options {
    device where = cpu_device;
    std::string order{};
    packing_options packing{};
    bool verify = false;
};
std::vector<std::string> update_layers(run_options const& o) {
    auto const specs = ordered(o.order);
    test_fleet const fleet{
        .size = 3, .where = o.where, .settings = {.packing = o.packing, .verify = o.verify}};
    auto const by_name = [&](test_model const& model) {
        std::vector<contents> values;
        auto const all = model.values();
        for (auto const& s : checkpoint()) {
            for (std::size_t i = 0; i < model.size(); ++i) {
                if (model.name(i) == s.name) values.push_back(all[i]);
            }
        }
        return values;
    };
    return fleet.run(
        [&](test_trainer& trainer) -> std::string {
            for (std::uint64_t round = 1; round <= 3; ++round) {
                test_model model{cpu_device, specs, 1};
                fill(model, round);
                auto source = model.source();
                send_update(trainer, source, round);
                if (auto failure = failure_of(trainer); !failure.empty()) return failure;
            }
            return "";
        },
        [&](test_engine& engine, int) -> std::string {
            quantised_engine const held{o.where, engine.target().main()};
            for (std::uint64_t round = 1; round <= 3; ++round) {
                test_model model{cpu_device, specs, 1};
                fill(model, round);
                auto const update = engine.next();
                engine.start(update.target());
                engine.receive(update);
                engine.prepare();
                update_report report;
                engine.describe(report);
                engine.commit();
                if (!report.not_covered.empty()) return "left out " + report.not_covered.front();
                if (auto wrong = held.first_wrong(by_name(model)); !wrong.empty()) return wrong;
                for (int i = 0; i < layers; ++i) {
                    if (held.runs().at(layer(i)) != static_cast<int>(round))
                        return layer(i) + " ran " + std::to_string(held.runs().at(layer(i)));
                }
                // direct tensors come after the chunk that holds all else: every layer waits for its norm
                bool const all = o.order == "by kind" || o.packing.direct_from == 1;
                auto const most = all ? layers * layer_bytes : layer_bytes;
                if (report.held_bytes == 0 || report.held_bytes > most)
                    return "held " + std::to_string(report.held_bytes);
            }
            return "";
        });
}

BOOST_AUTO_TEST_SUITE(layerwise)

BOOST_AUTO_TEST_CASE(
    b84_a_layers_step_runs_once_when_its_last_byte_is_there_into_the_same_storage) {
    for (auto const where : {cpu_device, host1}) {
        for (std::string const order : {"as it is", "reversed", "by kind"}) {
            for (std::uint64_t const chunk : {64U, 200U, 1U << 20U}) {
                check_ranks(
                    update_layers({where, order, {.chunk_bytes = chunk}, chunk == 200U}),
                    to_string(where) + ", " + order + ", chunks of " + std::to_string(chunk));
            }
            check_ranks(update_layers({where, order, {.direct_from = 1}, false}), "large direct");
        }
    }
}

/// One update of that model; what the trainer and the receiver said.
std::vector<std::string> one_update(
    std::vector<tensor_spec> const& specs,
    std::function<std::string(test_engine&, quantised_engine&)> const& receive,
    transfer_limits const& limits = patient_limits(),
    update_coverage coverage = update_coverage::parameters) {
    test_fleet const fleet{.size = 2, .settings = {.coverage = coverage}, .limits = limits};
    return fleet.run(
        [&](test_trainer& trainer) {
            test_model model{cpu_device, specs, 1};
            fill(model, 1);
            auto source = model.source();
            send_update(trainer, source, 1);
            return failure_of(trainer);
        },
        [&](test_engine& engine, int) {
            quantised_engine held{cpu_device, engine.target().main()};
            return receive(engine, held);
        });
}
bool has(std::string const& text, std::vector<std::string> const& parts) {
    return std::all_of(parts.begin(), parts.end(), [&](std::string const& part) {
        return text.find(part) != std::string::npos;
    });
}

BOOST_AUTO_TEST_CASE(b83_a_tensor_of_an_opened_layer_that_does_not_come_is_refused) {
    auto specs = checkpoint();
    std::erase_if(specs, [](tensor_spec const& s) { return s.name == layer(2) + ".v"; });
    for (auto const promised : {update_coverage::parameters, update_coverage::members}) {
        auto const said = one_update(
            specs,
            [&](test_engine& engine, quantised_engine& held) {
                auto const message = message_of([&] { receive_update(engine); });
                if (!held.runs().empty()) return std::string{"a step ran"};
                return engine.target().mixed() ? "mixed" : message;
            },
            patient_limits(), promised);
        for (auto const& message : said) {
            BOOST_TEST(has(message, {"refused by rank 1", "layer '" + layer(2) + "'",
                                     "brings '" + layer(2) + ".w' without '" + layer(2) + ".v'"}),
                       message);
        }
    }
}

BOOST_AUTO_TEST_CASE(whole_layers_may_come_alone) {
    auto specs = checkpoint();
    std::erase_if(specs, [](tensor_spec const& s) { return layer_group_of(s.name) != layer(1); });
    auto const said = one_update(
        specs,
        [&](test_engine& engine, quantised_engine& held) -> std::string {
            receive_update(engine);
            return held.runs().size() == 1 && held.runs().at(layer(1)) == 1 ? "" : "other steps";
        },
        patient_limits(), update_coverage::partial);
    check_ranks(said, "one layer");
}

BOOST_AUTO_TEST_CASE(a_step_that_throws_is_this_ranks_no_at_the_vote) {
    auto const said = one_update(checkpoint(), [&](test_engine& engine, quantised_engine& held) {
        held.fail_in(layer(1));
        auto const message = message_of([&] { receive_update(engine); });
        if (!engine.target().mixed()) return std::string{"not mixed"};
        if (engine.target().version().is_set()) return std::string{"published"};
        return message;
    });
    for (auto const& message : said) {
        BOOST_TEST(has(message, {"vote", "refused by rank 1",
                                 "the step of layer '" + layer(1) + "'", "no memory for it"}),
                   message);
    }
}

/// Writes its input times two.
struct doubled {
    float const* in;
    float* out;
    void operator()() const noexcept {
        for (int i = 0; i < 4; ++i) out[i] = 2 * in[i];
    }
};

BOOST_AUTO_TEST_CASE(under_shadow_a_step_writes_the_set_that_will_be_served) {
    using tables_type = parameter_tables<host_runtime, shadow>;
    local_group const group_of_two{2};
    check_ranks(
        run_threads(
            {[&]() -> std::string {
                 test_trainer trainer{joins(group_of_two), {}, patient_limits()};
                 trainer.init({place(0, 2)});
                 for (std::uint64_t v = 1; v <= 3; ++v) {
                     std::vector<float> const w(4, static_cast<float>(v));
                     table_source<> source;
                     source.add("w", w);
                     send_update(trainer, source, v);
                     if (auto failure = failure_of(trainer); !failure.empty()) return failure;
                 }
                 return "";
             },
             [&]() -> std::string {
                 std::vector<float> twice(4);
                 tables_type tables;
                 tables.main().add_output("twice", twice);
                 tables.main().add_layer(
                     {.name = "layer",
                      .inputs = {{"w", dtype::float32, {4}}},
                      .outputs = {"twice"},
                      .run = [](auto const& t, host_runtime::stream_ref stream) {
                          host_runtime::enqueue(
                              stream, doubled{static_cast<float const*>(t.input("w").data()),
                                              static_cast<float*>(t.output("twice").data())});
                      }});
                 dense_engine<local_communicator, tables_type> engine{joins(group_of_two), tables,
                                                                      patient_limits()};
                 engine.init(place(1, 2));
                 for (std::uint64_t v = 1; v <= 3; ++v) {
                     auto const old = tables.snapshot(deadline::after(std::chrono::seconds{5}));
                     receive_update(engine);
                     auto const now = tables.snapshot(deadline::after(std::chrono::seconds{5}));
                     auto const value = [](auto const& snapshot) {
                         return static_cast<float const*>(snapshot.tensor("twice").data())[3];
                     };
                     if (value(now) != 2 * static_cast<float>(v)) return "another value";
                     if (value(old) != 2 * static_cast<float>(v - 1)) return "the old one changed";
                     if (now.tensor("twice").data() == old.tensor("twice").data())
                         return "in place";
                 }
                 return "";
             }}),
        "shadow");
}

BOOST_AUTO_TEST_CASE(what_is_held_is_bounded) {
    auto limits = patient_limits();
    limits.held_bytes = layer_bytes;
    check_ranks(one_update(
                    checkpoint(),
                    [](test_engine& engine, quantised_engine&) -> std::string {
                        receive_update(engine);
                        return "";
                    },
                    limits),
                "one layer at a time");
    auto const said = one_update(
        ordered("by kind"),
        [](test_engine& engine, quantised_engine&) {
            return message_of([&] { receive_update(engine); });
        },
        limits);
    for (auto const& message : said) {
        BOOST_TEST(has(message, {"refused by rank 1", "held for layers that are not complete",
                                 "the limit is " + std::to_string(layer_bytes)}),
                   message);
    }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weightcast::test
