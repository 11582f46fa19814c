// SPDX-License-Identifier: Apache-2.0
// Several trainers in one group: each sends its own parameters, as pipeline stages do.
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <support/says.hpp>
#include <support/test_source.hpp>

namespace weightcast::test {
namespace {

bool has(std::string const& text, std::initializer_list<std::string_view> words) {
    for (auto const word : words) {
        if (text.find(word) == std::string::npos) return false;
    }
    return true;
}

/// One trainer of the group: its rank and what it sends.
struct stage {
    int rank = 0;
    std::vector<tensor_spec> specs{};
    bool verify = false;
    std::function<std::string(test_trainer&, test_model&)> body{};  ///< none: one good update
};

/// The group: stages in the order of their parameters; every other rank receives.
class stages {
  public:
    int size = 4;
    device where = cpu_device;
    device from = cpu_device;
    packing_options packing{.chunk_bytes = 256, .direct_from = 1000};
    std::vector<stage> list{};
    transfer_limits receiver_limits = patient_limits();
    std::function<std::string(test_engine&, test_model&)>
        body{};  ///< of receivers; none: one good update

    std::vector<std::string> run() const {
        local_group const group{size, {.where = {where}, .grace = std::chrono::seconds{10}}};
        std::vector<int> trainers;
        std::vector<tensor_spec> all;
        std::vector<contents> expected;
        for (auto const& s : list) {
            trainers.push_back(s.rank);
            all.insert(all.end(), s.specs.begin(), s.specs.end());
            auto const values = test_model{from, s.specs, seed_of(s)}.values();
            expected.insert(expected.end(), values.begin(), values.end());
        }
        std::vector<std::function<std::string()>> bodies;
        for (auto const& s : list) {
            bodies.push_back([&] {
                test_trainer trainer{
                    joins(group), {.packing = packing, .verify = s.verify}, patient_limits()};
                trainer.init({place(s.rank, size, trainers)});
                test_model model{from, s.specs, seed_of(s)};
                if (s.body) return s.body(trainer, model);
                auto source = model.source();
                send_update(trainer, source, 1);
                return failure_of(trainer);
            });
        }
        for (int rank = 0; rank < size; ++rank) {
            if (std::ranges::count(trainers, rank) != 0) continue;
            bodies.push_back([&, rank] {
                parameter_tables<> tables;
                test_model held{where, all, 0};
                held.add_to(tables.main());
                test_engine engine{joins(group), tables, receiver_limits};
                engine.init(place(rank, size, trainers));
                if (body) return body(engine, held);
                receive_update(engine);
                return first_difference(held, expected);
            });
        }
        return run_threads(bodies);
    }

  private:
    static std::uint64_t seed_of(stage const& s) {
        return 100 * static_cast<std::uint64_t>(s.rank + 1);
    }
};

std::vector<tensor_spec> layer(std::string const& prefix) {
    return {{prefix + ".a", dtype::float32, {30, 20}},
            {prefix + ".b", dtype::bfloat16, {7}},
            {prefix + ".c", dtype::uint8, {0}},
            {prefix + ".d", dtype::uint8, {300}}};
}

BOOST_AUTO_TEST_SUITE(dense_trainers)

BOOST_AUTO_TEST_CASE(pipeline_stages_send_their_own_parameters) {
    for (auto const where : {cpu_device, host1}) {
        for (auto const from : {cpu_device, host1}) {
            for (bool const verify : {false, true}) {
                stages const group{.where = where,
                                   .from = from,
                                   .list = {{.rank = 0, .specs = layer("0"), .verify = verify},
                                            {.rank = 2, .specs = layer("1"), .verify = verify}}};
                check_ranks(group.run(),
                            "two stages from " + to_string(from) + " to " + to_string(where));
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(three_stages_in_any_order_of_ranks) {
    stages const group{.size = 5,
                       .list = {{.rank = 4, .specs = layer("0")},
                                {.rank = 0, .specs = layer("1")},
                                {.rank = 2, .specs = layer("2")}}};
    check_ranks(group.run(), "three stages");
}

BOOST_AUTO_TEST_CASE(b49_a_trainer_with_nothing_to_send) {
    for (int const empty : {0, 1, 2}) {
        stages group{.size = 4,
                     .list = {{.rank = 0, .specs = layer("0")},
                              {.rank = 1, .specs = layer("1")},
                              {.rank = 3, .specs = layer("2")}}};
        group.list[static_cast<std::size_t>(empty)].specs.clear();
        check_ranks(group.run(), "stage " + std::to_string(empty) + " has nothing");
    }
    stages const nobody{
        .list = {{.rank = 0}, {.rank = 1}}, .body = [](test_engine& engine, test_model&) {
            receive_update(engine);
            return unless(!engine.target().version().is_set(), "a version of nothing");
        }};
    check_ranks(nobody.run(), "nobody has anything");
}

BOOST_AUTO_TEST_CASE(one_that_wants_verification_gets_it_for_all) {
    stages const group{.list = {{.rank = 0, .specs = layer("0")},
                                {.rank = 1, .specs = layer("1"), .verify = true}}};
    check_ranks(group.run(), "one verifies");
}

BOOST_AUTO_TEST_CASE(a_corrupted_tensor_of_the_second_stage_is_named) {
    auto const heard = [](std::string const& message) {
        return unless(has(message, {"vote: refused by rank 1", "tensor '1.d'"}), message);
    };
    auto const sends = [&](test_trainer& trainer, test_model& model) {
        auto source = model.source();
        send_update(trainer, source, 1);
        return heard(failure_of(trainer));
    };
    stages const group{.size = 3,
                       .list = {{.rank = 0, .specs = layer("0"), .verify = true, .body = sends},
                                {.rank = 2, .specs = layer("1"), .verify = true, .body = sends}},
                       .body = [&](test_engine& engine, test_model& held) {
                           auto const update = engine.next();
                           engine.start(update.target());
                           engine.receive(update);
                           held.memory(7).write(contents(300));
                           auto const message = message_of([&] { engine.prepare(); });
                           engine.rollback();
                           return heard(message);
                       }};
    check_ranks(group.run(), "corrupted");
}

BOOST_AUTO_TEST_CASE(a_wait_for_announcements_longer_than_an_update_is_no_failure) {
    // Receivers may wait for 30 minutes; the time of an update begins with the first announcement.
    auto limits = patient_limits();
    limits.update = std::chrono::milliseconds{1500};
    auto const late = [](test_trainer& trainer, test_model& model) {
        std::this_thread::sleep_for(std::chrono::milliseconds{2000});
        auto source = model.source();
        send_update(trainer, source, 1);
        return failure_of(trainer);
    };
    stages const group{.list = {{.rank = 0, .specs = layer("0"), .body = late},
                                {.rank = 1, .specs = layer("1"), .body = late}},
                       .receiver_limits = limits};
    check_ranks(group.run(), "late");
}

BOOST_AUTO_TEST_CASE(roles_that_contradict_the_list_of_trainers_are_refused_before_joining) {
    local_group const ranks{2};
    parameter_tables<> tables;
    test_engine engine{joins(ranks), tables};
    BOOST_CHECK_EXCEPTION(engine.init(place(0, 2)), bad_argument,
                          (says{"rank 0", "is a trainer", "group_init::trainers"}));
    test_trainer trainer{joins(ranks)};
    BOOST_CHECK_EXCEPTION(trainer.init({place(1, 2)}), bad_argument,
                          (says{"rank 1", "none of its trainers", "group_init::trainers"}));
    trainer.init({place(0, 2)});  // nothing was joined by the others
    engine.init(place(1, 2));
}

BOOST_AUTO_TEST_CASE(stages_that_announce_different_updates_are_refused) {
    auto const version = [](std::uint64_t number, target_id target) {
        return [=](test_trainer& trainer, test_model& model) {
            auto source = model.source();
            send_update(trainer, source, number, target);
            return unless(has(failure_of(trainer), {"refused", "different updates"}),
                          failure_of(trainer));
        };
    };
    auto const refused = [](test_engine& engine, test_model&) {
        auto const message = message_of([&] { receive_update(engine); });
        return unless(has(message, {"refused", "different updates"}), message);
    };
    stages group{.list = {{.rank = 0, .specs = layer("0"), .body = version(1, {})},
                          {.rank = 1, .specs = layer("1"), .body = version(2, {})}},
                 .body = refused};
    check_ranks(group.run(), "versions");
    group.list[1].body = version(1, target_id::draft());
    check_ranks(group.run(), "targets");
    group.list[1].body = [](test_trainer& trainer, test_model& model) {
        trainer.settings().packing.chunk_bytes = 512;
        auto source = model.source();
        send_update(trainer, source, 1);
        return unless(has(failure_of(trainer), {"refused", "different updates"}),
                      failure_of(trainer));
    };
    group.list[0].body = version(1, {});
    check_ranks(group.run(), "options");
}

BOOST_AUTO_TEST_CASE(two_stages_with_one_name_are_refused) {
    auto const refused = [](test_trainer& trainer, test_model& model) {
        auto source = model.source();
        send_update(trainer, source, 1);
        return unless(has(failure_of(trainer), {"refused by rank 2", "'0.a' is announced twice"}),
                      failure_of(trainer));
    };
    auto const hears = [](test_engine& engine) {
        auto const message = message_of([&] { receive_update(engine); });
        return unless(has(message, {"refused by rank 2", "'0.a' is announced twice"}), message);
    };
    local_group const ranks{4};
    std::vector<int> const trainers{0, 1};
    std::vector<std::function<std::string()>> bodies;
    for (int const rank : trainers) {
        bodies.push_back([&, rank] {
            test_trainer trainer{joins(ranks), {}, patient_limits()};
            trainer.init({place(rank, 4, trainers)});
            test_model model{cpu_device, {{"0.a", dtype::uint8, {5}}}, 1};
            return refused(trainer, model);
        });
    }
    for (int const rank : {2, 3}) {
        bodies.push_back([&, rank] {
            parameter_tables<> tables;
            test_model held{cpu_device, {{"0.a", dtype::uint8, {5}}}, 0};
            held.add_to(tables.main());
            test_engine engine{joins(ranks), tables, patient_limits()};
            engine.init(place(rank, 4, trainers));
            return hears(engine);
        });
    }
    check_ranks(run_threads(bodies), "one name");
}

BOOST_AUTO_TEST_CASE(one_stage_that_fails_first_ends_the_update_for_all_and_the_group_goes_on) {
    auto const fails = [](test_trainer& trainer, test_model& model) -> std::string {
        trainer.announce_failure("stage 1 has no weights");
        if (!has(failure_of(trainer), {"trainer rank 1 failed", "stage 1 has no weights"}))
            return failure_of(trainer);
        auto source = model.source();
        send_update(trainer, source, 2);
        return failure_of(trainer);
    };
    auto const goes_on = [](test_trainer& trainer, test_model& model) -> std::string {
        auto source = model.source();
        send_update(trainer, source, 1);
        if (!has(failure_of(trainer), {"trainer rank 1 failed", "stage 1 has no weights"}))
            return failure_of(trainer);
        send_update(trainer, source, 2);
        return failure_of(trainer);
    };
    stages const group{.list = {{.rank = 0, .specs = layer("0"), .body = goes_on},
                                {.rank = 1, .specs = layer("1"), .body = fails}},
                       .body = [](test_engine& engine, test_model&) -> std::string {
                           auto const message =
                               message_of([&] { static_cast<void>(engine.next()); });
                           if (!has(message, {"trainer rank 1 failed", "stage 1 has no weights"}))
                               return message;
                           receive_update(engine);
                           return unless(engine.target().version().number == 2, "another version");
                       }};
    check_ranks(group.run(), "fails first");
}

BOOST_AUTO_TEST_CASE(a_stage_that_fails_in_the_payload_is_named_by_all) {
    auto const dies = [](test_trainer& trainer, test_model& model) -> std::string {
        recording_source source{model};
        source.before = [](std::size_t i) {
            if (i == 1) throw std::runtime_error{"out of luck"};
        };
        trainer.announce(source, {1, {}}, {});
        return unless(message_of([&] { trainer.send(source); }) == "out of luck", "it was sent");
    };
    auto const hears = [](test_trainer& trainer, test_model& model) -> std::string {
        auto source = model.source();
        send_update(trainer, source, 1);
        return unless(has(failure_of(trainer), {"payload", "rank 1 aborted the group"}),
                      failure_of(trainer));
    };
    stages const group{.list = {{.rank = 0, .specs = layer("0"), .body = hears},
                                {.rank = 1, .specs = layer("1"), .body = dies}},
                       .body = [](test_engine& engine, test_model&) {
                           auto const message = message_of([&] { receive_update(engine); });
                           return unless(has(message, {"payload", "rank 1 aborted the group"}),
                                         message);
                       }};
    check_ranks(group.run(), "dies");
}

BOOST_AUTO_TEST_CASE(a_sender_may_be_alone_in_one_group_and_one_of_two_in_another) {
    local_group const alone{2};
    local_group const shared{4, {.where = {host1}}};
    auto const first = layer("0");
    auto const second = layer("1");
    std::vector<int> const both{0, 1};
    test_model const a{cpu_device, first, 1};
    test_model const b{cpu_device, second, 50};
    auto const by_name = [&](group_init const& init) {
        return (init.name == "alone" ? alone : shared).join(init.rank);
    };
    auto const holds = [&](group_init const& init, device where, bool with_second) {
        parameter_tables<> tables;
        test_model held_first{where, first, 0};
        test_model held_second{where, second, 0};
        held_first.add_to(tables.main());
        if (with_second) held_second.add_to(tables.main());
        test_engine engine{by_name, tables, patient_limits()};
        engine.init(init);
        receive_update(engine);
        return first_difference(held_first, a.values()) +
               (with_second ? first_difference(held_second, b.values()) : std::string{});
    };
    transfer_settings const settings{.packing = {.chunk_bytes = 256, .direct_from = 1000}};
    group_init const in_shared{.name = "shared", .rank = 0, .size = 4, .trainers = both};
    auto at = [&](int rank) {
        auto init = in_shared;
        init.rank = rank;
        return init;
    };
    check_ranks(
        run_threads(
            {[&] {
                 test_trainer trainer{by_name, settings, patient_limits()};
                 trainer.init({{.name = "alone", .rank = 0, .size = 2}, at(0)});
                 auto source = a.source();
                 send_update(trainer, source, 1);
                 return failure_of(trainer, 0) + failure_of(trainer, 1);
             },
             [&] {
                 test_trainer trainer{by_name, settings, patient_limits()};
                 trainer.init({at(1)});
                 auto source = b.source();
                 send_update(trainer, source, 1);
                 return failure_of(trainer);
             },
             [&] { return holds({.name = "alone", .rank = 1, .size = 2}, cpu_device, false); },
             [&] { return holds(at(2), host1, true); }, [&] { return holds(at(3), host1, true); }}),
        "alone and not");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weightcast::test
