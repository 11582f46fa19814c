// SPDX-License-Identifier: Apache-2.0
// What a trainer engine and a receiving engine keep to with each other, over any communicator.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <laws/group_maker.hpp>
#include <weightcast/engine/concepts.hpp>
#include <weightcast/model/parameter_tables.hpp>
#include <weightcast/model/table_source.hpp>
#include <weightcast/session/weight_sender.hpp>
#include <weightcast/session/weight_worker.hpp>

namespace weightcast::test {

/// Two engines that speak to each other: both join the group that the communicator is of, rank 0 sends.
/// `engine_over(communicator, target, hook)` calls the hook now and then while payload arrives; what it throws
/// is a failure of that rank's payload alone.
template <class P>
concept EnginePair =
    Communicator<typename P::communicator> && AnyTransferEngine<typename P::engine> &&
    TrainerEngine<typename P::trainer, typename P::trainer::init_type, table_source<>> &&
    has_announcements<typename P::engine> &&
    requires(typename P::communicator&& c, parameter_tables<>& target, std::function<void()> hook,
             bool verify) {
        { P::engine_over(std::move(c), target, hook) } -> std::same_as<typename P::engine>;
        { P::trainer_over(std::move(c), verify) } -> std::same_as<typename P::trainer>;
    };

/// A tensor of a law's model.
struct law_tensor {
    std::string name;
    dtype type = dtype::uint8;
    extents shape{};
    std::size_t bytes() const {
        return static_cast<std::size_t>(element_count(shape) * item_size(type));
    }
};

/// Every dtype with an odd number of elements, with 256 of them, and as a scalar; shapes without elements between
/// them; sizes around what goes packed and what goes direct.
inline std::vector<law_tensor> dtype_zoo() {
    std::vector<law_tensor> zoo;
    for (std::size_t i = 0; i < dtype_count; ++i) {
        auto const type = static_cast<dtype>(i);
        auto const name = std::string{to_string(type)};
        zoo.push_back({"odd." + name, type, {3}});
        zoo.push_back({"all." + name, type, {256}});
        zoo.push_back({"scalar." + name, type, {}});
        zoo.push_back({"empty." + name, type, {3, 0, 2}});
    }
    zoo.push_back({"empty.first", dtype::float32, {0}});
    for (std::int64_t const bytes : {1023, 1024, 1025, (1 << 20) - 1, 1 << 20, (1 << 20) + 1}) {
        zoo.push_back({"bytes." + std::to_string(bytes), dtype::uint8, {bytes}});
    }
    zoo.push_back({"empty.last", dtype::bfloat16, {0, 4}});
    return zoo;
}
inline std::vector<law_tensor> small_model() {
    return {{"embed", dtype::float32, {30, 8}},
            {"bias", dtype::bfloat16, {7}},
            {"scale", dtype::float32, {}}};
}

/// Tensors of one rank on its communicator's device, each between guards.
template <Communicator C>
class law_model {
  public:
    /// Seed 0 is the bytes before the first update.
    law_model(C& c, std::vector<law_tensor> tensors, std::uint64_t seed)
        : tensors_{std::move(tensors)} {
        for (std::size_t i = 0; i < tensors_.size(); ++i) {
            memory_.emplace_back(c, tensors_[i].bytes(), seed_of(seed, i));
        }
        where_ = c.where();
    }
    law_model(law_model&&) = delete;

    void fill(std::uint64_t seed) {
        for (std::size_t i = 0; i < tensors_.size(); ++i) memory_[i].write(bytes_of(seed, i));
    }
    /// "" when all tensors have the bytes of that seed and nothing around them changed.
    std::string difference(std::uint64_t seed) {
        for (std::size_t i = 0; i < tensors_.size(); ++i) {
            if (!memory_[i].holds(bytes_of(seed, i)))
                return "tensor '" + tensors_[i].name + "' is wrong";
        }
        return "";
    }
    tensor_view<> view(std::size_t i) const {
        return {memory_[i].view().data(), tensors_[i].type, tensors_[i].shape, where_};
    }
    table_source<> source() const {
        table_source<> all;
        for (std::size_t i = 0; i < tensors_.size(); ++i) all.add(tensors_[i].name, view(i));
        return all;
    }
    void add_to(parameter_table<>& table) const {
        for (std::size_t i = 0; i < tensors_.size(); ++i) table.add(tensors_[i].name, view(i));
    }
    std::vector<law_tensor> const& tensors() const noexcept { return tensors_; }

  private:
    static std::uint64_t seed_of(std::uint64_t seed, std::size_t tensor) {
        return seed * 1'000'003 + tensor;
    }
    contents bytes_of(std::uint64_t seed, std::size_t tensor) const {
        return pattern(tensors_[tensor].bytes(), seed_of(seed, tensor));
    }
    std::vector<law_tensor> tensors_;
    std::deque<rank_memory<C>> memory_;
    device where_{};
};

/// The sender and the workers of a law; each in its rank's body.
template <EnginePair P>
using law_sender = weight_sender<typename P::trainer>;
template <EnginePair P>
using law_worker = weight_worker<typename P::engine>;

/// What an update that must pass says of itself when it does not.
inline std::string unless_updated(update_result const& result) {
    if (result.ok()) return "";
    std::string said = "the sender says: " + std::string{to_string(result.status)};
    for (auto const& g : result.groups) said += "; " + g.message;
    return said;
}
/// What a refusal must say.
template <class F>
std::string unless_refused(F const& update, std::vector<std::string_view> const& words) {
    try {
        update();
    } catch (refused_update const& e) {
        for (auto const word : words) {
            if (std::string_view{e.what()}.find(word) == std::string_view::npos) {
                return std::string{"the refusal is: "} + e.what();
            }
        }
        return "";
    }
    return "nobody refused";
}

/// Receivers hold the sent bytes, exactly and within their bounds, after each update; versions count.
template <EnginePair P, GroupMaker M>
void law_exact_bytes(M& maker, int size, std::vector<device> const& where, bool verify) {
    using C = typename P::communicator;
    constexpr std::uint64_t rounds = 2;
    check_ranks(maker.run({.size = size, .where = where},
                          [verify](C& c) -> std::string {
                              law_model<C> model{c, dtype_zoo(), 0};
                              if (c.rank() == 0) {
                                  auto source = model.source();
                                  law_sender<P> sender{P::trainer_over(std::move(c), verify)};
                                  for (std::uint64_t r = 1; r <= rounds; ++r) {
                                      model.fill(r);
                                      auto const result = sender.update(source);
                                      if (auto said = unless_updated(result); !said.empty())
                                          return said;
                                      if (sender.acknowledged().number != r)
                                          return "the version is not acknowledged";
                                  }
                                  return "";
                              }
                              parameter_tables<> tables;
                              model.add_to(tables.main());
                              law_worker<P> worker{P::engine_over(std::move(c), tables, [] {})};
                              for (std::uint64_t r = 1; r <= rounds; ++r) {
                                  auto const report = worker.serve_one();
                                  if (auto wrong = model.difference(r); !wrong.empty())
                                      return wrong;
                                  if (report.tensors != model.tensors().size())
                                      return "another number of tensors";
                                  if (report.version.number != r || tables.version().number != r)
                                      return "another version";
                                  if (!report.not_covered.empty())
                                      return "'" + report.not_covered[0] + "' is not covered";
                              }
                              return "";
                          }),
                "exact bytes, " + std::to_string(size) + " ranks" + (verify ? ", verified" : ""));
}

/// One rank refuses before the payload: every rank hears who and why, nothing is written anywhere, and the same
/// group goes on with the next update. The last rank holds the first tensor as bytes in the odd rounds.
template <EnginePair P, GroupMaker M>
void law_refusal_writes_nothing(M& maker, int size, std::vector<device> const& where) {
    using C = typename P::communicator;
    constexpr std::uint64_t rounds = 6;
    check_ranks(
        maker.run({.size = size, .where = where},
                  [size](C& c) -> std::string {
                      int const rank = c.rank();
                      law_model<C> model{c, small_model(), 0};
                      auto const refuser = "refused by rank " + std::to_string(size - 1);
                      if (rank == 0) {
                          auto source = model.source();
                          law_sender<P> sender{P::trainer_over(std::move(c), false)};
                          for (std::uint64_t r = 1; r <= rounds; ++r) {
                              model.fill(r);
                              auto const result = sender.update(source);
                              if (r % 2 == 0) {
                                  if (auto said = unless_updated(result); !said.empty())
                                      return said;
                                  continue;
                              }
                              auto said = unless_refused(
                                  [&] { static_cast<void>(result.or_throw()); },
                                  {refuser, "tensor 'embed'", "float32[30, 8]", "uint8[960]"});
                              if (!said.empty()) return said;
                              if (result.groups.at(0).ranks.back() != rank_status::refused)
                                  return "wrong statuses";
                          }
                          return "";
                      }
                      parameter_tables<> tables;
                      model.add_to(tables.main());
                      auto const right = tables.main();
                      parameter_table<> wrong;
                      wrong.add("embed", tensor_view<>{
                                             model.view(0).data(), dtype::uint8, {960}, c.where()});
                      for (std::size_t i = 1; i < 3; ++i)
                          wrong.add(model.tensors()[i].name, model.view(i));
                      law_worker<P> worker{P::engine_over(std::move(c), tables, [] {})};
                      std::uint64_t held = 0;
                      for (std::uint64_t r = 1; r <= rounds; ++r) {
                          if (r % 2 == 0) {
                              static_cast<void>(worker.serve_one());
                              held = r;
                          } else {
                              if (rank == size - 1) tables.main() = wrong;
                              auto said =
                                  unless_refused([&] { static_cast<void>(worker.serve_one()); },
                                                 {refuser, "tensor 'embed'"});
                              if (!said.empty()) return said;
                              if (tables.mixed()) return "a refused update marks the target mixed";
                              if (rank == size - 1) tables.main() = right;
                          }
                          if (auto other = model.difference(held); !other.empty()) return other;
                      }
                      return "";
                  }),
        "a refusal writes nothing, " + std::to_string(size) + " ranks");
}

/// The payload fails on one rank alone: no rank publishes, every target is mixed at its old version, a partial
/// update is refused, and a full one repairs it.
template <EnginePair P, GroupMaker M>
void law_full_update_repairs_a_mixed_target(M& maker, int size, std::vector<device> const& where) {
    using C = typename P::communicator;
    check_ranks(
        maker.run({.size = size, .where = where},
                  [size](C& c) -> std::string {
                      int const rank = c.rank();
                      law_model<C> model{c, small_model(), 0};
                      auto const mixed = [](auto const& update) {
                          return unless_refused(update,
                                                {"is mixed: only a full update repairs it"});
                      };
                      if (rank == 0) {
                          auto source = model.source();
                          table_source<> part;
                          part.add("bias", model.view(1));
                          law_sender<P> sender{P::trainer_over(std::move(c), false)};
                          model.fill(1);
                          auto said = unless_updated(sender.update(source));
                          if (!said.empty()) return said;
                          model.fill(2);
                          auto const failed = sender.update(source);
                          said = unless_refused(
                              [&] { static_cast<void>(failed.or_throw()); },
                              {"refused by rank " + std::to_string(size - 1), "out of luck"});
                          if (!said.empty()) return said;
                          if (failed.groups.at(0).ranks.at(0) != rank_status::rolled_back)
                              return "wrong statuses";
                          if (sender.acknowledged().number != 1)
                              return "a failed update is acknowledged";
                          auto const partial = sender.update(part);
                          said = mixed([&] { static_cast<void>(partial.or_throw()); });
                          if (!said.empty()) return said;
                          model.fill(4);
                          return unless_updated(sender.update(source));
                      }
                      bool unlucky = false;
                      parameter_tables<> tables;
                      model.add_to(tables.main());
                      law_worker<P> worker{P::engine_over(std::move(c), tables, [&] {
                          if (std::exchange(unlucky, false))
                              throw std::runtime_error{"out of luck"};
                      })};
                      static_cast<void>(worker.serve_one());
                      unlucky = rank == size - 1;
                      auto said = unless_refused([&] { static_cast<void>(worker.serve_one()); },
                                                 {"out of luck"});
                      if (!said.empty()) return said;
                      if (!tables.mixed()) return "a half-written target is not mixed";
                      if (tables.version().number != 1)
                          return "the version of a failed update is published";
                      said = mixed([&] { static_cast<void>(worker.serve_one()); });
                      if (!said.empty()) return said;
                      if (!tables.mixed()) return "a refused update repairs a mixed target";
                      static_cast<void>(worker.serve_one());
                      if (tables.mixed()) return "a full update does not repair";
                      if (tables.version().number != 4) return "another version";
                      return model.difference(4);
                  }),
        "a full update repairs a mixed target, " + std::to_string(size) + " ranks");
}

/// Each target has its own table and version; an update of one leaves the others alone, also one that brings
/// nothing.
template <EnginePair P, GroupMaker M>
void law_targets_are_apart(M& maker, std::vector<device> const& where) {
    using C = typename P::communicator;
    static constexpr auto targets = [] {
        return std::vector{target_id::main(), target_id::draft(), target_id::adapter("a")};
    };
    check_ranks(
        maker.run({.size = 2, .where = where},
                  [](C& c) -> std::string {
                      std::deque<law_model<C>> models;
                      for (std::size_t t = 0; t < 3; ++t) models.emplace_back(c, small_model(), 0);
                      if (c.rank() == 0) {
                          law_sender<P> sender{P::trainer_over(std::move(c), false)};
                          for (std::size_t t = 0; t < 3; ++t) {
                              models[t].fill(t + 1);
                              auto source = models[t].source();
                              auto const result =
                                  sender.update(source, {.target = targets()[t], .label = "v"});
                              if (auto said = unless_updated(result); !said.empty()) return said;
                          }
                          table_source<> empty;
                          auto const nothing = sender.update(empty, {.target = target_id::draft()});
                          if (nothing.status != update_status::nothing_updated)
                              return "an empty update updates";
                          return sender.acknowledged().number == 3
                                     ? ""
                                     : "an empty update is acknowledged";
                      }
                      parameter_tables<> tables;
                      for (std::size_t t = 0; t < 3; ++t)
                          models[t].add_to(tables.table(targets()[t]));
                      law_worker<P> worker{P::engine_over(std::move(c), tables, [] {})};
                      for (std::size_t t = 0; t < 3; ++t) {
                          if (tables.version(targets()[t]).is_set())
                              return "a version before its update";
                          auto const report = worker.serve_one();
                          if (report.target != targets()[t]) return "another target";
                          for (std::size_t other = 0; other < 3; ++other) {
                              auto wrong = models[other].difference(other <= t ? other + 1 : 0);
                              if (!wrong.empty()) return to_string(targets()[other]) + ": " + wrong;
                          }
                      }
                      if (worker.serve_one().status != update_status::nothing_updated)
                          return "not nothing";
                      for (std::size_t t = 0; t < 3; ++t) {
                          if (tables.version(targets()[t]).number != t + 1)
                              return "another version at the end";
                          if (tables.mixed(targets()[t])) return "mixed at the end";
                      }
                      return "";
                  }),
        "targets are apart");
}

}  // namespace weightcast::test
