// SPDX-License-Identifier: Apache-2.0
// Models of made-up tensors, and the few lines that drive a dense engine and a dense trainer through an update.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <support/local_ranks.hpp>
#include <weightcast/engine/dense_engine.hpp>
#include <weightcast/engine/dense_trainer.hpp>
#include <weightcast/model/parameter_tables.hpp>
#include <weightcast/model/table_source.hpp>

namespace weightcast::test {

/// One tensor of a model; without strides it is contiguous.
struct tensor_spec {
    std::string name;
    dtype type = dtype::float32;
    extents shape{};
    extents strides{};
};

/// "t0", "t1", ... of one dimension, so many bytes each.
inline std::vector<tensor_spec> tensors_of_bytes(std::vector<std::int64_t> const& sizes) {
    std::vector<tensor_spec> all;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        all.push_back({"t" + std::to_string(i), dtype::uint8, {sizes[i]}});
    }
    return all;
}

/// Tensors on one device that own their memory, made of bytes of a seed; seed 0 is all zeroes.
class test_model {
  public:
    test_model(device where, std::vector<tensor_spec> specs, std::uint64_t seed)
        : where_{where}, specs_{std::move(specs)} {
        for (auto const& s : specs_) {
            tensor_layout layout{s.type, s.shape, s.strides};
            if (s.strides.empty()) layout.strides = contiguous_strides(s.shape);
            auto const bytes = bytes_spanned(layout);
            memory_.emplace_back(where, seed == 0 ? contents(bytes) : pattern(bytes, seed++));
            views_.push_back({memory_.back().data(), s.type, s.shape, layout.strides, where});
        }
    }
    test_model(test_model&&) = delete;

    std::size_t size() const noexcept { return specs_.size(); }
    std::string const& name(std::size_t i) const { return specs_[i].name; }
    tensor_view<> const& view(std::size_t i) const { return views_[i]; }
    placed_bytes& memory(std::size_t i) { return memory_[i]; }

    table_source<> source() const {
        table_source<> all;
        for (std::size_t i = 0; i < size(); ++i) all.add(specs_[i].name, views_[i]);
        return all;
    }
    void add_to(parameter_table<>& table) {
        for (std::size_t i = 0; i < size(); ++i) table.add(specs_[i].name, views_[i]);
    }
    /// The elements of each tensor, in row-major order.
    std::vector<contents> values() const {
        std::vector<contents> all;
        for (auto const& v : views_) all.push_back(gathered(v));
        return all;
    }
    /// New bytes of another seed.
    void refill(std::uint64_t seed) {
        for (auto& m : memory_) m.write(pattern(m.size(), seed++));
    }

  private:
    static std::size_t bytes_spanned(tensor_layout const& layout) {
        if (layout.elements() == 0) return 0;
        std::int64_t last = 0;
        for (std::size_t d = 0; d < layout.shape.size(); ++d)
            last += (layout.shape[d] - 1) * layout.strides[d];
        return (static_cast<std::size_t>(last) + 1) * item_size(layout.type);
    }
    device where_;
    std::vector<tensor_spec> specs_;
    std::deque<placed_bytes> memory_;
    std::vector<tensor_view<>> views_;
};

/// The first tensor whose bytes are others, or "".
inline std::string first_difference(test_model const& held, std::vector<contents> const& expected) {
    auto const values = held.values();
    for (std::size_t i = 0; i < expected.size(); ++i) {
        if (values[i] != expected[i]) return "tensor '" + held.name(i) + "' is wrong";
    }
    return "";
}

using test_engine = dense_engine<local_communicator, parameter_tables<>>;
using test_trainer = dense_trainer<local_communicator>;

/// Joins that group of threads.
inline communicator_factory<local_communicator> joins(local_group const& group) {
    return [group](group_init const& init) { return group.join(init.rank); };
}
inline group_init place(int rank, int size, std::vector<int> trainers = {0}) {
    return {.name = "weights", .rank = rank, .size = size, .trainers = std::move(trainers)};
}

/// Limits for updates that are expected to succeed, on a machine under any load.
inline transfer_limits patient_limits() {
    return {.announcement = std::chrono::seconds{240},
            .stall = std::chrono::seconds{120},
            .update = std::chrono::seconds{240}};
}
/// Limits for those who are expected to wait in vain.
inline transfer_limits short_limits() {
    return {.announcement = std::chrono::seconds{240},
            .stall = std::chrono::milliseconds{300},
            .update = std::chrono::seconds{60}};
}

/// A receiver's whole update. @throws what the engine throws; rolled back by then
template <class Engine>
void receive_update(Engine& engine) {
    auto const update = engine.next();
    engine.start(update.target());
    try {
        engine.receive(update);
        engine.prepare();
    } catch (...) {
        engine.rollback();
        throw;
    }
    engine.commit();
}
/// A sender's whole update.
template <class Trainer, class Source>
void send_update(Trainer& trainer, Source& source, std::uint64_t number,
                 target_id const& target = {}) {
    trainer.announce(source, weight_version{number, {}}, target);
    trainer.send(source);
    trainer.vote();
}
/// What became of a group's update at its sender: "" or the message.
template <class Trainer>
std::string failure_of(Trainer const& trainer, std::size_t group = 0) {
    auto const failure = trainer.failure(group);
    if (!failure) return "";
    try {
        std::rethrow_exception(failure);
    } catch (std::exception const& e) {
        return e.what();
    }
}
template <class F>
std::string message_of(F const& f) {
    try {
        f();
        return "";
    } catch (std::exception const& e) {
        return e.what();
    }
}

/// Runs each function on a thread of its own; what each said, an exception as its text.
inline std::vector<std::string> run_threads(
    std::vector<std::function<std::string()>> const& bodies) {
    std::vector<std::string> said(bodies.size());
    {
        std::vector<std::jthread> threads;
        for (std::size_t i = 0; i < bodies.size(); ++i) {
            threads.emplace_back([&, i] {
                try {
                    said[i] = bodies[i]();
                } catch (...) {
                    said[i] = describe_exception();
                }
            });
        }
    }
    return said;
}

/// Ranks as threads over a local group.
struct local_ranks {
    using communicator = local_communicator;
    static std::function<communicator_factory<communicator>(int rank)> factories(int size,
                                                                                 device where) {
        local_group const group{size, {.where = {where}, .grace = std::chrono::seconds{10}}};
        return [group](int) { return joins(group); };
    }
};

/// A trainer (rank 0) and receivers over one group on that device. Each body gets its engine, in its group.
template <class Ranks>
class fleet_over {
  public:
    using communicator = typename Ranks::communicator;
    using trainer_type = dense_trainer<communicator>;
    using engine_type = dense_engine<communicator, parameter_tables<>>;

    int size = 2;
    device where = cpu_device;
    transfer_settings settings{};
    transfer_limits limits = patient_limits();

    template <class Send, class Receive>
    std::vector<std::string> run(Send const& send, Receive const& receive) const {
        auto const factories = Ranks::factories(size, where);
        std::vector<std::function<std::string()>> bodies;
        bodies.push_back([&] {
            trainer_type trainer{factories(0), settings, limits};
            trainer.init({place(0, size)});
            return std::string{send(trainer)};
        });
        for (int rank = 1; rank < size; ++rank) {
            bodies.push_back([&, rank] {
                parameter_tables<> tables;
                engine_type engine{factories(rank), tables, limits};
                engine.init(place(rank, size));
                return std::string{receive(engine, rank)};
            });
        }
        return run_threads(bodies);
    }

    /// Sends `specs` of `from` to receivers that hold them as `held` on this fleet's device, `rounds` times.
    std::vector<std::string> exchange(std::vector<tensor_spec> const& sent, device from,
                                      std::vector<tensor_spec> const& held, int rounds = 2) const {
        std::vector<std::vector<contents>> expected;
        for (int r = 0; r < rounds; ++r) {
            test_model const model{from, sent, 1000 + 100 * static_cast<std::uint64_t>(r)};
            expected.push_back(model.values());
        }
        return run(
            [&](trainer_type& trainer) -> std::string {
                for (int r = 0; r < rounds; ++r) {
                    test_model const model{from, sent, 1000 + 100 * static_cast<std::uint64_t>(r)};
                    auto source = model.source();
                    send_update(trainer, source, static_cast<std::uint64_t>(r) + 1);
                    if (auto failure = failure_of(trainer); !failure.empty()) return failure;
                }
                return "";
            },
            [&](engine_type& engine, int) -> std::string {
                test_model model{where, held, 0};
                model.add_to(engine.target().main());
                for (int r = 0; r < rounds; ++r) {
                    receive_update(engine);
                    auto const wrong =
                        first_difference(model, expected[static_cast<std::size_t>(r)]);
                    if (!wrong.empty()) return "round " + std::to_string(r) + ": " + wrong;
                    if (engine.target().version().number != static_cast<std::uint64_t>(r) + 1) {
                        return "version " + to_string(engine.target().version());
                    }
                }
                return "";
            });
    }
    std::vector<std::string> exchange(std::vector<tensor_spec> const& specs, device from,
                                      int rounds = 2) const {
        return exchange(specs, from, specs, rounds);
    }
};
using test_fleet = fleet_over<local_ranks>;

}  // namespace weightcast::test
