// SPDX-License-Identifier: Apache-2.0
// Dense updates that some rank refuses: before the payload nothing is written, every rank hears the reason, and
// the group goes on.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <support/says.hpp>
#include <support/test_model.hpp>

namespace weightcast::test {
namespace {

bool has(std::string const& text, std::initializer_list<std::string_view> words) {
    for (auto const word : words) {
        if (text.find(word) == std::string::npos) return false;
    }
    return true;
}

std::vector<tensor_spec> const good{{"a", dtype::float32, {10}}, {"b", dtype::float16, {3, 4}}};

/// Receivers hold `held` on rank 2 and `good` elsewhere; what is sent first is refused, and then `good` arrives.
std::vector<std::string> refuse_then_update(test_fleet const& fleet,
                                            std::vector<tensor_spec> const& sent,
                                            std::vector<tensor_spec> const& held, device held_on,
                                            std::string const& reason) {
    auto const wrong = [&](std::string const& message, int suspect) {
        return !has(message, {"preflight: refused by rank " + std::to_string(suspect) + ": ",
                              reason, "suspected rank " + std::to_string(suspect)});
    };
    int const suspect = sent.size() == good.size() && sent[0].name == "a" &&
                                sent[0].type == dtype::float32 && sent[0].shape == good[0].shape &&
                                sent[1].shape == good[1].shape
                            ? 2
                            : 1;  // the lowest rank that objects
    test_model const first{cpu_device, sent, 10};
    test_model const second{cpu_device, good, 20};
    auto const expected = second.values();
    return fleet.run(
        [&](test_trainer& trainer) -> std::string {
            auto source = first.source();
            send_update(trainer, source, 1);
            auto const message = failure_of(trainer);
            if (wrong(message, suspect)) return "the sender heard: " + message;
            if (trainer.acknowledged().is_set()) return "a refused update was acknowledged";
            if (suspect == 2) return "";  // rank 2 cannot take the good one either
            auto next = second.source();
            send_update(trainer, next, 2);
            return failure_of(trainer);
        },
        [&](test_engine& engine, int rank) -> std::string {
            bool const odd = rank == 2 && suspect == 2;
            test_model model{odd ? held_on : fleet.where, odd ? held : good, 0};
            auto const before = model.values();
            model.add_to(engine.target().main());
            auto const message = message_of([&] { receive_update(engine); });
            if (wrong(message, suspect)) return "this rank heard: " + message;
            if (!first_difference(model, before).empty()) return "bytes were written";
            if (engine.target().mixed()) return "a refused update left the target mixed";
            if (engine.target().version().is_set()) return "a refused update has a version";
            if (suspect == 2) return "";
            receive_update(engine);
            return first_difference(model, expected);
        });
}

/// A fake trainer on rank 0, which says what it likes in the preflight.
using fake = engine_group<local_communicator>;

std::vector<std::string> against_a_fake_trainer(
    std::function<std::string(fake&, op_limits const&)> const& play, std::string const& reason) {
    local_group const group{2};
    return run_threads({[&]() -> std::string {
                            fake trainer{joins(group), place(0, 2)};
                            return play(trainer, patient());
                        },
                        [&]() -> std::string {
                            parameter_tables<> tables;
                            test_model model{cpu_device, good, 0};
                            auto const before = model.values();
                            model.add_to(tables.main());
                            test_engine engine{joins(group), tables, patient_limits()};
                            engine.init(place(1, 2));
                            auto const message = message_of([&] { receive_update(engine); });
                            if (!has(message, {"refused by rank 1", reason}))
                                return "it heard: " + message;
                            return unless(first_difference(model, before).empty(),
                                          "bytes were written");
                        }});
}

/// What an honest trainer would announce.
announcement honest() {
    announcement a;
    a.epoch = 1;
    a.version.number = 1;
    for (auto const& s : good) a.parameters.push_back({s.name, s.type, s.shape});
    a.roots = {0, 0};
    a.packed = {0, 0};
    a.plan_digest = packing_plan{planned_tensors(a), a.options}.digest();
    return a;
}
std::string announce_and_hear(fake& trainer, std::span<std::byte const> message,
                              op_limits const& limits) {
    static_cast<void>(trainer.mailbox().broadcast(message, 0, limits, phase::preflight));
    auto const refused = trainer.mailbox().agree(std::nullopt, limits, phase::preflight);
    return unless(refused && refused->rank == 1, "nobody objected");
}
std::string announce_and_hear(fake& trainer, announcement const& a, op_limits const& limits) {
    auto const message = encode(a);
    return announce_and_hear(trainer, message, limits);
}

BOOST_AUTO_TEST_SUITE(dense_refusal)

// --- what the receivers do not hold ---

BOOST_AUTO_TEST_CASE(another_dtype) {
    check_ranks(
        refuse_then_update({.size = 3}, {{"a", dtype::int32, {10}}, good[1]}, good, cpu_device,
                           "tensor 'a' is announced as int32[10], held as float32[10]"),
        "dtype");
}

BOOST_AUTO_TEST_CASE(another_shape_of_as_many_elements) {
    check_ranks(
        refuse_then_update({.size = 3}, {good[0], {"b", dtype::float16, {4, 3}}}, good, cpu_device,
                           "tensor 'b' is announced as float16[4, 3], held as float16[3, 4]"),
        "shape");
}

BOOST_AUTO_TEST_CASE(unknown_names) {
    check_ranks(
        refuse_then_update({.size = 3}, {{"model.a", dtype::float32, {10}}, good[1]}, good,
                           cpu_device, "1 of 2 announced names are unknown here: 'model.a'"),
        "names");
}

BOOST_AUTO_TEST_CASE(a_name_twice) {
    check_ranks(refuse_then_update({.size = 3}, {good[0], good[1], good[0]}, good, cpu_device,
                                   "'a' is announced twice"),
                "twice");
}

BOOST_AUTO_TEST_CASE(one_rank_alone_refuses_for_all) {
    check_ranks(
        refuse_then_update({.size = 4}, good, {good[0], {"b", dtype::float32, {3, 4}}}, cpu_device,
                           "tensor 'b' is announced as float16[3, 4], held as float32[3, 4]"),
        "one rank");
}

BOOST_AUTO_TEST_CASE(a_destination_on_another_device) {
    check_ranks(refuse_then_update({.size = 3}, good, good, host1, "receiving never stages"),
                "device");
    check_ranks(refuse_then_update({.size = 3, .where = host1}, good, good, cpu_device,
                                   "receiving never stages"),
                "device");
}

BOOST_AUTO_TEST_CASE(a_destination_whose_elements_overlap) {
    check_ranks(refuse_then_update({.size = 3}, good, {{"a", dtype::float32, {10}, {0}}, good[1]},
                                   cpu_device, "overlap"),
                "overlap");
}

BOOST_AUTO_TEST_CASE(another_target_than_the_started_one) {
    test_fleet const fleet{};
    check_ranks(fleet.run(
                    [&](test_trainer& trainer) {
                        test_model const model{cpu_device, good, 10};
                        auto source = model.source();
                        send_update(trainer, source, 1, target_id::draft());
                        return unless(has(failure_of(trainer),
                                          {"refused by rank 1", "'draft'", "'main' was started"}),
                                      failure_of(trainer));
                    },
                    [&](test_engine& engine, int) {
                        test_model model{cpu_device, good, 0};
                        model.add_to(engine.target().main());
                        auto const update = engine.next();
                        engine.start(target_id::main());
                        if (message_of([&] { engine.receive(update); }).empty())
                            return std::string{"it was received"};
                        engine.rollback();
                        return unless(!engine.target().mixed(), "mixed");
                    }),
                "target");
}

BOOST_AUTO_TEST_CASE(a_target_that_cannot_be_started_is_refused_on_request) {
    test_fleet const fleet{.size = 3};
    check_ranks(fleet.run(
                    [&](test_trainer& trainer) -> std::string {
                        test_model const model{cpu_device, good, 10};
                        auto source = model.source();
                        send_update(trainer, source, 1, target_id::adapter("nobody's"));
                        if (!has(failure_of(trainer), {"refused by rank 1", "nobody's"}))
                            return failure_of(trainer);
                        send_update(trainer, source, 2);
                        return failure_of(trainer);
                    },
                    [&](test_engine& engine, int rank) -> std::string {
                        test_model model{cpu_device, good, 0};
                        model.add_to(engine.target().main());
                        if (rank == 2) model.add_to(engine.target().adapter("nobody's"));
                        auto const update = engine.next();
                        auto const message = message_of([&] {
                            try {
                                engine.start(update.target());
                            } catch (bad_argument const& e) {
                                engine.refuse(update, e.what());
                            }
                            engine.receive(update);
                        });
                        engine.rollback();
                        if (!has(message, {"refused by rank 1", "nobody's"})) return message;
                        receive_update(engine);
                        return "";
                    }),
                "no such target");
}

// --- sizes ---

BOOST_AUTO_TEST_CASE(a_ring_over_the_receivers_limit) {
    transfer_limits limits = patient_limits();
    limits.ring_bytes = 1000;
    struct attempt {
        packing_options packing;
        std::string reason;
    };
    for (auto const& [packing, reason] :
         {attempt{{.chunk_bytes = 512},
                  "a ring of 2 chunks of 512 bytes is over this rank's limit of 1000"},
          attempt{{.chunk_bytes = std::uint64_t{1} << 62U, .ring = 2}, "over this rank's limit"},
          attempt{{.chunk_bytes = 128, .ring = 8}, "a ring of 8 chunks"},
          // vllm: a buffer grows to the largest tensor
          attempt{{.layout = packing_layout::vllm, .chunk_bytes = 64, .ring = 2},
                  "chunks of 600 bytes"}}) {
        test_fleet const fleet{.size = 3, .settings = {.packing = packing}, .limits = limits};
        check_ranks(fleet.run(
                        [&](test_trainer& trainer) {
                            test_model const model{cpu_device, tensors_of_bytes({600}), 10};
                            auto source = model.source();
                            send_update(trainer, source, 1);
                            return unless(has(failure_of(trainer), {"refused by rank 1", reason}),
                                          failure_of(trainer));
                        },
                        [&](test_engine& engine, int) {
                            test_model model{cpu_device, tensors_of_bytes({600}), 0};
                            model.add_to(engine.target().main());
                            auto const message = message_of([&] { receive_update(engine); });
                            return unless(has(message, {"refused by rank 1", reason}), message);
                        }),
                    reason);
    }
}

BOOST_AUTO_TEST_CASE(settings_that_no_plan_can_be_made_with) {
    local_group const group{1};
    for (packing_options const& packing :
         {packing_options{.chunk_bytes = 0}, packing_options{.alignment = 3},
          packing_options{.ring = 0}, packing_options{.ring = 9},
          packing_options{.chunk_bytes = 8}}) {
        BOOST_CHECK_THROW((test_trainer{joins(group), {.packing = packing}}), bad_argument);
    }
    // set later, they are found before anybody hears of the update
    test_trainer trainer{joins(group)};
    trainer.init({place(0, 1)});
    trainer.settings().packing.alignment = 3;
    test_model const model{cpu_device, good, 10};
    auto source = model.source();
    BOOST_CHECK_THROW(trainer.announce(source, {1, {}}, {}), bad_argument);
    trainer.settings().packing.alignment = 64;
    send_update(trainer, source, 1);
    BOOST_TEST(failure_of(trainer) == "");
}

// --- messages that are none ---

BOOST_AUTO_TEST_CASE(bytes_that_are_no_announcement) {
    auto const whole = encode(honest());
    check_ranks(against_a_fake_trainer(
                    [&](fake& trainer, op_limits const& limits) {
                        return announce_and_hear(trainer, std::span{whole}.first(whole.size() - 1),
                                                 limits);
                    },
                    "message: field"),
                "cut short");
    check_ranks(against_a_fake_trainer(
                    [&](fake& trainer, op_limits const& limits) {
                        return announce_and_hear(trainer, pattern(300, 1), limits);
                    },
                    "magic"),
                "noise");
    check_ranks(against_a_fake_trainer(
                    [&](fake& trainer, op_limits const& limits) {
                        return announce_and_hear(trainer, std::span<std::byte const>{}, limits);
                    },
                    "magic"),
                "nothing");
}

BOOST_AUTO_TEST_CASE(announcements_that_do_not_hold) {
    struct lie {
        std::function<void(announcement&)> tell;
        std::string reason;
    };
    auto const replan = [](announcement& a) {
        a.plan_digest = packing_plan{planned_tensors(a), a.options}.digest();
    };
    std::vector<lie> const lies{
        {[](announcement& a) { a.plan_digest ^= 1U; }, "plans the announced update differently"},
        {[](announcement& a) { a.options.chunk_bytes /= 2; },
         "plans the announced update differently"},
        {[](announcement& a) { a.options.ring = 0; }, "ring"},
        {[](announcement& a) { a.options.ring = 9; }, "ring of 9"},
        {[](announcement& a) { a.epoch = 7; }, "announcement 7 came where 1 was expected"},
        {[&](announcement& a) {
             a.roots = {0, 1};
             replan(a);
         },
         "trainer rank 0 announces tensors of another rank"},
        {[&](announcement& a) {
             a.roots = {1000, 1000};
             replan(a);
         },
         "announces tensors of another rank"},
    };
    for (auto const& [tell, reason] : lies) {
        check_ranks(against_a_fake_trainer(
                        [&](fake& trainer, op_limits const& limits) {
                            auto a = honest();
                            tell(a);
                            return announce_and_hear(trainer, a, limits);
                        },
                        reason),
                    reason);
    }
}

// --- trainers that fail first ---

BOOST_AUTO_TEST_CASE(an_announced_failure_leaves_nobody_waiting_and_the_group_usable) {
    test_model const model{cpu_device, good, 10};
    auto const expected = model.values();
    test_fleet const fleet{.size = 3};
    check_ranks(
        fleet.run(
            [&](test_trainer& trainer) -> std::string {
                trainer.announce_failure("the optimizer diverged");
                if (!has(failure_of(trainer), {"the optimizer diverged"}))
                    return failure_of(trainer);
                trainer.announce_failure("once more");
                auto source = model.source();
                send_update(trainer, source, 5);
                return failure_of(trainer);
            },
            [&](test_engine& engine, int) -> std::string {
                test_model held{cpu_device, good, 0};
                held.add_to(engine.target().main());
                for (auto const* reason : {"the optimizer diverged", "once more"}) {
                    try {
                        static_cast<void>(engine.next());
                        return "the failure did not arrive";
                    } catch (refused_update const& e) {
                        if (!has(e.what(), {"trainer rank 0 failed before it sent", reason}))
                            return e.what();
                        if (e.facts().suspect != 0) return "another suspect";
                    }
                }
                receive_update(engine);
                if (engine.target().version().number != 5) return "another version";
                return first_difference(held, expected);
            }),
        "announced failure");
}

// --- after the payload ---

BOOST_AUTO_TEST_CASE(a_corrupted_byte_is_a_no_at_the_vote_that_names_the_tensor) {
    for (auto const where : {cpu_device, host1}) {
        test_model const first{cpu_device, tensors_of_bytes({100, 5000, 300}), 10};
        test_model const second{cpu_device, tensors_of_bytes({100, 5000, 300}), 50};
        test_model const part{cpu_device, tensors_of_bytes({100}), 90};
        auto const expected = second.values();
        test_fleet const fleet{
            .size = 3,
            .where = where,
            .settings = {.packing = {.chunk_bytes = 256, .direct_from = 1000}, .verify = true}};
        check_ranks(fleet.run(
                        [&](test_trainer& trainer) -> std::string {
                            auto source = first.source();
                            send_update(trainer, source, 1);
                            if (!has(failure_of(trainer), {"vote: refused by rank 2",
                                                           "tensor 't1' arrived with digest"})) {
                                return failure_of(trainer);
                            }
                            if (trainer.acknowledged().is_set()) return "acknowledged";
                            auto half = part.source();
                            send_update(trainer, half, 2);
                            if (!has(failure_of(trainer), {"mixed: only a full update repairs it"}))
                                return failure_of(trainer);
                            auto whole = second.source();
                            send_update(trainer, whole, 3);
                            return failure_of(trainer);
                        },
                        [&](test_engine& engine, int rank) -> std::string {
                            test_model held{where, tensors_of_bytes({100, 5000, 300}), 0};
                            held.add_to(engine.target().main());
                            auto const update = engine.next();
                            engine.start(update.target());
                            engine.receive(update);
                            if (rank == 2) {
                                auto bytes = held.memory(1).read();
                                bytes[4999] ^= std::byte{1};
                                held.memory(1).write(bytes);
                            }
                            auto const message = message_of([&] { engine.prepare(); });
                            engine.rollback();
                            if (!has(message, {"vote: refused by rank 2", "tensor 't1'"}))
                                return message;
                            if (!engine.target().mixed())
                                return "bytes were written, and the target is not mixed";
                            if (engine.target().version().is_set())
                                return "a version that was voted down";
                            if (!has(message_of([&] { receive_update(engine); }), {"mixed"}))
                                return "a part was taken";
                            receive_update(engine);
                            if (engine.target().mixed()) return "mixed after a full update";
                            if (engine.target().version().number != 3) return "another version";
                            return first_difference(held, expected);
                        }),
                    "corrupted byte on " + to_string(where));
    }
}

BOOST_AUTO_TEST_CASE(without_verification_nothing_is_compared) {
    test_model const model{cpu_device, good, 10};
    test_fleet const fleet{};
    check_ranks(fleet.run(
                    [&](test_trainer& trainer) {
                        auto source = model.source();
                        send_update(trainer, source, 1);
                        return failure_of(trainer);
                    },
                    [&](test_engine& engine, int) {
                        test_model held{cpu_device, good, 0};
                        held.add_to(engine.target().main());
                        auto const update = engine.next();
                        engine.start(update.target());
                        engine.receive(update);
                        held.memory(0).write(contents(40));
                        engine.prepare();
                        engine.commit();
                        return std::string{};
                    }),
                "no verification");
}

/// Fails at the nth call of advance.
struct failing_progress {
    int calls_left = 0;
    void begin(phase, std::uint64_t) {}
    void advance(std::uint64_t, std::string_view) {
        if (--calls_left < 0) throw std::runtime_error{"the progress sink's own failure"};
    }
    void end() {}
};

BOOST_AUTO_TEST_CASE(a_failure_of_one_rank_alone_in_the_payload_is_its_no_and_the_group_goes_on) {
    auto const specs = tensors_of_bytes({300, 300, 5000, 300, 6000});
    for (int const when : {0, 1, 2, 4}) {
        test_model const first{cpu_device, specs, 10};
        test_model const second{cpu_device, specs, 50};
        auto const expected = second.values();
        local_group const group{3};
        transfer_settings const settings{.packing = {.chunk_bytes = 256, .direct_from = 1000}};
        auto const receive = [&](int rank) -> std::string {
            parameter_tables<> tables;
            test_model held{cpu_device, specs, 0};
            held.add_to(tables.main());
            dense_engine<local_communicator, parameter_tables<>, failing_progress> engine{
                joins(group), tables, patient_limits(), failing_progress{rank == 2 ? when : 1000}};
            engine.init(place(rank, 3));
            auto const message = message_of([&] { receive_update(engine); });
            if (!has(message, {"vote: refused by rank 2: the progress sink's own failure"}))
                return message;
            if (!tables.mixed()) return "not mixed";
            engine.shutdown();
            return "";
        };
        check_ranks(run_threads({[&]() -> std::string {
                                     test_trainer trainer{joins(group), settings, patient_limits()};
                                     trainer.init({place(0, 3)});
                                     auto source = first.source();
                                     send_update(trainer, source, 1);
                                     return unless(
                                         has(failure_of(trainer), {"vote: refused by rank 2"}),
                                         failure_of(trainer));
                                 },
                                 [&] { return receive(1); }, [&] { return receive(2); }}),
                    "local failure");
    }
}

BOOST_AUTO_TEST_CASE(an_empty_update_that_is_voted_down_leaves_nothing_mixed) {
    test_fleet const fleet{};
    check_ranks(fleet.run(
                    [&](test_trainer& trainer) {
                        table_source<> source;
                        trainer.announce(source, {1, {}}, {});
                        trainer.send(source);
                        trainer.shutdown();  // gone before the vote
                        return std::string{};
                    },
                    [&](test_engine& engine, int) {
                        test_model held{cpu_device, good, 0};
                        held.add_to(engine.target().main());
                        auto const message = message_of([&] { receive_update(engine); });
                        if (message.empty()) return std::string{"it passed without its trainer"};
                        return unless(!engine.target().mixed(), "mixed by nothing");
                    }),
                "empty update");
}

// --- the lifecycle ---

BOOST_AUTO_TEST_CASE(calls_in_the_wrong_order) {
    parameter_tables<> tables;
    test_model model{cpu_device, good, 0};
    model.add_to(tables.main());
    local_group const group{2};
    test_engine engine{joins(group), tables, patient_limits()};
    BOOST_CHECK_THROW(static_cast<void>(engine.next()), lifecycle_error);
    BOOST_CHECK_THROW(engine.receive({}), lifecycle_error);
    BOOST_CHECK_THROW(engine.prepare(), contract_violation);
    BOOST_CHECK_THROW(engine.start(target_id::draft()), bad_argument);
    engine.rollback();
    engine.commit();
    BOOST_TEST(!tables.mixed());
    BOOST_TEST(!tables.version().is_set());
    BOOST_CHECK_THROW(engine.init({.rank = 1, .size = 2, .trainers = {}}), bad_argument);
    BOOST_CHECK_THROW(engine.init({.rank = 1, .size = 2, .trainers = {2}}), bad_argument);
    BOOST_CHECK_THROW(engine.init({.rank = 1, .size = 2, .trainers = {0, 0}}), bad_argument);
    engine.init(place(1, 2));  // none of those joined
}

BOOST_AUTO_TEST_CASE(a_second_receive_in_one_update_is_refused_on_the_spot) {
    test_model const model{cpu_device, good, 10};
    auto const expected = model.values();
    test_fleet const fleet{};
    check_ranks(fleet.run(
                    [&](test_trainer& trainer) {
                        auto source = model.source();
                        send_update(trainer, source, 1);
                        return failure_of(trainer);
                    },
                    [&](test_engine& engine, int) {
                        test_model held{cpu_device, good, 0};
                        held.add_to(engine.target().main());
                        auto const update = engine.next();
                        engine.start(update.target());
                        engine.receive(update);
                        auto const message = message_of([&] { engine.receive(update); });
                        if (!has(message, {"its vote comes next"})) return message;
                        engine.prepare();
                        engine.commit();
                        return first_difference(held, expected);
                    }),
                "second receive");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weightcast::test
