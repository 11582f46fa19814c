// SPDX-License-Identifier: Apache-2.0
// One sender and several groups: the source is asked once, packed once a device, and a group that fails does not
// stop the others.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <support/says.hpp>
#include <support/test_source.hpp>

namespace weightcast::test {
namespace {

using namespace std::chrono_literals;

bool has(std::string const& text, std::initializer_list<std::string_view> words) {
    for (auto const word : words) {
        if (text.find(word) == std::string::npos) return false;
    }
    return true;
}

/// One of a sender's groups: a name, a device and its receivers.
struct receivers {
    std::string name;
    device where = cpu_device;
    int size = 2;
    std::vector<tensor_spec> held{};                               ///< none: as sent
    std::function<std::string(test_engine&, test_model&)> body{};  ///< none: one good update
    bool missing = false;                                          ///< its receivers never come
};

std::vector<tensor_spec> const specs{
    {"a", dtype::uint8, {300}},   {"b", dtype::float32, {40, 30}},  {"c", dtype::uint8, {0}},
    {"d", dtype::bfloat16, {77}}, {"e", dtype::float32, {30, 100}}, {"f", dtype::uint8, {500}}};
std::vector<tensor_spec> const strided{
    {"a", dtype::uint8, {300}},       {"b", dtype::float32, {40, 30}, {1, 40}},
    {"c", dtype::uint8, {0}},         {"d", dtype::bfloat16, {77}, {2}},
    {"e", dtype::float32, {30, 100}}, {"f", dtype::uint8, {500}}};

/// Runs `send(trainer)` against those groups; every receiver that is there gets `model`'s bytes.
class several_groups {
  public:
    explicit several_groups(std::vector<receivers> groups) : groups_{std::move(groups)} {
        for (auto const& g : groups_) {
            made_.emplace_back(g.size, local_group_options{.where = {g.where}, .grace = 10s});
        }
    }
    transfer_settings settings{.packing = {.chunk_bytes = 256, .direct_from = 1000}};
    transfer_limits sender_limits = patient_limits();
    transfer_limits receiver_limits = patient_limits();

    template <class Send>
    std::vector<std::string> run(test_model const& model, Send const& send) {
        auto const expected = model.values();
        std::vector<std::function<std::string()>> bodies;
        bodies.push_back([&] {
            test_trainer trainer{factory(), settings, sender_limits};
            std::vector<group_init> places;
            for (auto const& g : groups_)
                places.push_back({.name = g.name, .rank = 0, .size = g.size});
            trainer.init(places);
            return std::string{send(trainer)};
        });
        for (std::size_t g = 0; g < groups_.size(); ++g) {
            for (int rank = 1; rank < groups_[g].size && !groups_[g].missing; ++rank) {
                bodies.push_back([&, g, rank] { return receive(g, rank, expected); });
            }
        }
        return run_threads(bodies);
    }

  private:
    communicator_factory<local_communicator> factory() const {
        return [this](group_init const& init) {
            for (std::size_t g = 0; g < groups_.size(); ++g) {
                if (groups_[g].name == init.name) return made_[g].join(init.rank);
            }
            throw bad_argument{"no group '" + init.name + "'"};
        };
    }
    std::string receive(std::size_t g, int rank, std::vector<contents> const& expected) {
        auto const& group = groups_[g];
        parameter_tables<> tables;
        test_model held{group.where, group.held.empty() ? specs : group.held, 0};
        held.add_to(tables.main());
        test_engine engine{factory(), tables, receiver_limits};
        engine.init({.name = group.name, .rank = rank, .size = group.size});
        if (group.body) return group.body(engine, held);
        receive_update(engine);
        return first_difference(held, expected);
    }
    std::vector<receivers> groups_;
    std::vector<local_group> made_;
};

/// Each of its tensors is read on the stream before it is handed out.
struct working_source : recording_source {
    working_source(test_model const& model, std::atomic<std::size_t>& count)
        : recording_source{model}, read{&count} {}
    source_tensor<const_tensor_view<>> tensor(std::size_t index, host_stream_ref stream) {
        runtime::enqueue(stream, [count = read]() noexcept { ++*count; });
        return recording_source::tensor(index, stream);
    }
    std::atomic<std::size_t>* read;
};

BOOST_AUTO_TEST_SUITE(dense_groups)

BOOST_AUTO_TEST_CASE(groups_on_different_devices_get_the_same_bytes) {
    for (auto const from : {cpu_device, host0, host1}) {
        for (bool const verify : {false, true}) {
            test_model const model{from, specs, 1};
            several_groups fleet{{{.name = "on cpu", .size = 3},
                                  {.name = "on host:1", .where = host1},
                                  {.name = "on host:2", .where = host2},
                                  {.name = "also on cpu"}}};
            fleet.settings.verify = verify;
            check_ranks(fleet.run(model,
                                  [&](test_trainer& trainer) -> std::string {
                                      auto source = model.source();
                                      send_update(trainer, source, 1);
                                      for (std::size_t g = 0; g < trainer.group_count(); ++g) {
                                          if (auto f = failure_of(trainer, g); !f.empty()) return f;
                                      }
                                      return unless(trainer.acknowledged().number == 1,
                                                    "not acknowledged");
                                  }),
                        "from " + to_string(from));
        }
    }
}

BOOST_AUTO_TEST_CASE(what_one_group_has_to_pack_is_packed_for_all) {
    test_model const model{cpu_device, specs, 1};
    several_groups fleet{{{.name = "dense", .size = 3},
                          {.name = "strided", .held = strided},
                          {.name = "dense too"}}};
    std::uint64_t wire = 0;
    check_ranks(fleet.run(model,
                          [&](test_trainer& trainer) {
                              auto source = model.source();
                              send_update(trainer, source, 1);
                              wire = trainer.wire_bytes();
                              return failure_of(trainer, 0) + failure_of(trainer, 1) +
                                     failure_of(trainer, 2);
                          }),
                "one group is strided");
    // "b" (4800 bytes) is packed, "e" (12000 bytes) is not
    BOOST_TEST(wire > 300U + 4800U + 154U + 12'000U + 500U);
}

BOOST_AUTO_TEST_CASE(a_source_is_asked_once_in_order_and_its_devices_are_waited_for_once) {
    test_model const model{host2, specs, 1};
    several_groups fleet{
        {{.name = "one"}, {.name = "two", .where = host1}, {.name = "three", .held = strided}}};
    std::uint64_t waits = 0;
    check_ranks(fleet.run(model,
                          [&](test_trainer& trainer) {
                              recording_source source{model};
                              auto const before = runtime::device_wait_count(2);
                              trainer.announce(source, {1, {}}, {});
                              waits = runtime::device_wait_count(2) - before;
                              if (!source.asked.empty())
                                  return std::string{"asked before all have agreed"};
                              trainer.send(source);
                              trainer.vote();
                              return unless(source.asked == each_once(specs.size()),
                                            "asked in another order");
                          }),
                "asked once");
    BOOST_TEST(waits == 1U);
}

BOOST_AUTO_TEST_CASE(a_group_that_refuses_does_not_stop_the_others) {
    test_model const model{cpu_device, specs, 1};
    auto other = specs;
    other[1].type = dtype::int32;
    auto const refused = [](test_engine& engine, test_model&) {
        auto const message = message_of([&] { receive_update(engine); });
        return unless(has(message, {"refused by rank 1", "tensor 'b'"}), message);
    };
    several_groups fleet{{{.name = "good"},
                          {.name = "bad", .size = 3, .held = other, .body = refused},
                          {.name = "good too", .where = host1}}};
    check_ranks(
        fleet.run(model,
                  [&](test_trainer& trainer) -> std::string {
                      auto source = model.source();
                      send_update(trainer, source, 1);
                      if (!failure_of(trainer, 0).empty()) return failure_of(trainer, 0);
                      if (!failure_of(trainer, 2).empty()) return failure_of(trainer, 2);
                      if (!has(failure_of(trainer, 1), {"refused by rank 1", "tensor 'b'"})) {
                          return "the bad group: " + failure_of(trainer, 1);
                      }
                      return unless(!trainer.acknowledged().is_set(), "not every group holds it");
                  }),
        "one refuses");
}

BOOST_AUTO_TEST_CASE(a_group_that_is_dead_does_not_stop_the_others) {
    test_model const model{cpu_device, specs, 1};
    for (std::size_t dead : {0U, 1U, 2U}) {
        std::vector<receivers> groups{
            {.name = "one"}, {.name = "two", .where = host1}, {.name = "three", .held = strided}};
        groups[dead].missing = true;
        several_groups fleet{groups};
        fleet.sender_limits = short_limits();
        // what the receivers of a shared sender wait is twice their own limit: as long as the dead group's stall
        fleet.receiver_limits.stall = 10s;
        check_ranks(fleet.run(model,
                              [&](test_trainer& trainer) -> std::string {
                                  auto source = model.source();
                                  send_update(trainer, source, 1);
                                  for (std::size_t g = 0; g < 3; ++g) {
                                      auto const f = failure_of(trainer, g);
                                      if (f.empty() == (g == dead))
                                          return "group " + std::to_string(g) + ": " + f;
                                  }
                                  return "";
                              }),
                    "group " + std::to_string(dead) + " is dead");
    }
}

BOOST_AUTO_TEST_CASE(a_group_that_dies_in_the_payload_does_not_stop_the_others) {
    std::vector<tensor_spec> const large =
        tensors_of_bytes({300, 30'000, 200, 40'000, 10'000, 300, 900});
    for (std::uint64_t const direct_from : {std::uint64_t{1} << 40U, std::uint64_t{1000}}) {
        for (auto const where : {cpu_device, host1}) {
            test_model const model{cpu_device, large, 1};
            auto const dies = [&](test_engine& engine, test_model&) {
                auto const update = engine.next();
                engine.start(update.target());
                // takes part in the preflight and no more
                auto& m = engine.member();
                static_cast<void>(m.mailbox().agree(std::nullopt, patient(), phase::preflight));
                auto announced = update.announced;
                m.agree_on_packed(announced, patient(), [](auto&) {});
                engine.shutdown();
                return "";
            };
            several_groups fleet{{{.name = "dies", .where = where, .held = large, .body = dies},
                                  {.name = "good", .where = where, .size = 3, .held = large},
                                  {.name = "good too", .where = host2, .held = large}}};
            fleet.settings.packing.direct_from = direct_from;
            check_ranks(fleet.run(model,
                                  [&](test_trainer& trainer) -> std::string {
                                      recording_source source{model};
                                      send_update(trainer, source, 1);
                                      if (!has(failure_of(trainer, 0), {"payload", "rank 1"}))
                                          return failure_of(trainer, 0);
                                      if (source.asked != each_once(large.size()))
                                          return "asked in another order";
                                      return failure_of(trainer, 1) + failure_of(trainer, 2);
                                  }),
                        "one dies");
        }
    }
}

BOOST_AUTO_TEST_CASE(a_group_voted_down_does_not_stop_the_others_and_takes_part_again) {
    test_model const model{cpu_device, specs, 1};
    auto const doubtful = [&](test_engine& engine, test_model& held) {
        auto const update = engine.next();
        engine.start(update.target());
        engine.receive(update);
        held.memory(0).write(contents(300));
        auto const message = message_of([&] { engine.prepare(); });
        engine.rollback();
        if (!has(message, {"tensor 'a'"})) return message;
        receive_update(engine);
        return first_difference(held, model.values());
    };
    auto const twice = [&](test_engine& engine, test_model& held) {
        receive_update(engine);
        receive_update(engine);
        return first_difference(held, model.values());
    };
    several_groups fleet{
        {{.name = "good", .body = twice}, {.name = "doubtful", .where = host1, .body = doubtful}}};
    fleet.settings.verify = true;
    check_ranks(fleet.run(model,
                          [&](test_trainer& trainer) -> std::string {
                              auto source = model.source();
                              send_update(trainer, source, 1);
                              if (!failure_of(trainer, 0).empty()) return failure_of(trainer, 0);
                              if (!has(failure_of(trainer, 1), {"vote: refused by rank 1"}))
                                  return failure_of(trainer, 1);
                              if (trainer.acknowledged().is_set()) return "acknowledged by half";
                              send_update(trainer, source, 2);
                              if (trainer.acknowledged().number != 2) return "not acknowledged";
                              return failure_of(trainer, 0) + failure_of(trainer, 1);
                          }),
                "voted down");
}

BOOST_AUTO_TEST_CASE(a_source_that_fails_ends_every_group_and_is_thrown) {
    test_model const model{cpu_device, specs, 1};
    auto const hears = [](test_engine& engine, test_model&) -> std::string {
        auto const message = message_of([&] { receive_update(engine); });
        if (!has(message, {"payload", "rank 0 aborted"})) return message;
        return unless(engine.target().mixed(), "not mixed");
    };
    several_groups fleet{{{.name = "one", .size = 3, .body = hears},
                          {.name = "two", .where = host1, .body = hears}}};
    check_ranks(fleet.run(model,
                          [&](test_trainer& trainer) -> std::string {
                              recording_source source{model};
                              source.before = [](std::size_t i) {
                                  if (i == 3) throw std::runtime_error{"the gather failed"};
                              };
                              auto const message =
                                  message_of([&] { send_update(trainer, source, 1); });
                              if (message != "the gather failed") return message;
                              return unless(failure_of(trainer, 0) == message &&
                                                failure_of(trainer, 1) == message,
                                            "the groups do not tell");
                          }),
                "the source fails");
}

BOOST_AUTO_TEST_CASE(no_group_is_joined_when_one_cannot_be) {
    local_group const first{2};
    test_trainer trainer{[&](group_init const& init) {
        if (init.name == "second") throw bad_argument{"no such group"};
        return first.join(init.rank);
    }};
    BOOST_CHECK_THROW(trainer.init({{.name = "first", .rank = 0, .size = 2},
                                    {.name = "second", .rank = 0, .size = 2}}),
                      bad_argument);
    BOOST_TEST(trainer.group_count() == 0U);
    auto receiver = first.join(1);
    placed_bytes target{cpu_device, contents(10)};
    auto view = target.view();
    BOOST_CHECK_EXCEPTION(receive_into(receiver, view, 0, patiently()), peer_error,
                          says("rank 0 left"));
}

BOOST_AUTO_TEST_CASE(a_trainer_outside_every_group_walks_its_source_in_the_same_order) {
    // inside: a strided receiver has "b" packed; outside, nobody hears of that
    test_model const model{cpu_device, specs, 1};
    std::vector<std::size_t> inside;
    several_groups fleet{{{.name = "strided", .held = strided}}};
    check_ranks(fleet.run(model,
                          [&](test_trainer& trainer) {
                              recording_source source{model};
                              send_update(trainer, source, 1);
                              inside = source.asked;
                              return failure_of(trainer);
                          }),
                "inside");
    test_trainer outside{joins(local_group{1})};
    outside.init({});
    recording_source source{model};
    send_update(outside, source, 1);
    BOOST_TEST(source.asked == inside, boost::test_tools::per_element());
    momentary_source made{model};
    send_update(outside, made, 2);
    BOOST_TEST(made.asked == inside, boost::test_tools::per_element());
    BOOST_TEST(made.released == inside, boost::test_tools::per_element());
    BOOST_TEST(made.most_held == 1U);
    BOOST_TEST(outside.group_count() == 0U);
}

BOOST_AUTO_TEST_CASE(a_walk_returns_when_the_source_has_left_its_tensors) {
    // outside every group too: the caller may change its masters as soon as the update returns
    settings_scope const delayed{{.max_delay = std::chrono::milliseconds{2}, .delay_seed = 3}};
    test_model const model{host0, specs, 1};
    std::atomic<std::size_t> read{0};
    working_source source{model, read};
    test_trainer outside{joins(local_group{1})};
    outside.init({});
    send_update(outside, source, 1);
    BOOST_TEST(read == specs.size());
    source.before = [](std::size_t i) {
        if (i == specs.size() - 1) throw std::runtime_error{"the gather failed"};
    };
    BOOST_TEST(message_of([&] { send_update(outside, source, 2); }) == "the gather failed");
    BOOST_TEST(read == 2 * specs.size());
}

BOOST_AUTO_TEST_CASE(trainer_ranks_whose_source_meets_the_others_end_together) {
    // Each tensor is made in a collective of all trainer ranks: rank 0 sends, the others only walk.
    constexpr int trainers = 4;
    test_model const model{cpu_device, tensors_of_bytes(std::vector<std::int64_t>(50, 700)), 1};
    auto const expected = model.values();
    local_group const gatherers{trainers};
    local_group const engines{2};
    std::vector<std::function<std::string()>> bodies;
    for (int rank = 0; rank < trainers; ++rank) {
        bodies.push_back([&, rank] {
            auto gather = gatherers.join(rank);
            recording_source source{model};
            source.before = [&](std::size_t i) {
                placed_bytes memory{cpu_device, contents(8)};
                auto view = memory.view(dtype::int64, {1});
                alignment_scope<local_communicator> scope{gather};
                auto const op = patiently("gather " + std::to_string(i));
                gather.all_reduce(scope.require(view), reduction::sum, op);
                finish(gather, op);
            };
            test_trainer trainer{joins(engines),
                                 {.packing = {.chunk_bytes = 2048, .direct_from = 500}},
                                 patient_limits()};
            if (rank == 0) trainer.init({place(0, 2)});
            send_update(trainer, source, 1);
            return rank == 0 ? failure_of(trainer) : std::string{};
        });
    }
    bodies.push_back([&] {
        parameter_tables<> tables;
        test_model held{cpu_device, tensors_of_bytes(std::vector<std::int64_t>(50, 700)), 0};
        held.add_to(tables.main());
        test_engine engine{joins(engines), tables, patient_limits()};
        engine.init(place(1, 2));
        receive_update(engine);
        return first_difference(held, expected);
    });
    check_ranks(run_threads(bodies), "4 trainer ranks x 50 tensors");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weightcast::test
