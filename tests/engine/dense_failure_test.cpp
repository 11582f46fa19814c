// SPDX-License-Identifier: Apache-2.0
// Dense updates that end in the middle: peers that never come, stop, leave or throw. Every rank gets an error
// within its limits, what was written is marked, and the group can be formed anew.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <support/says.hpp>
#include <support/test_model.hpp>

namespace weightcast::test {
namespace {

using namespace std::chrono_literals;

bool has(std::string const& text, std::initializer_list<std::string_view> words) {
    for (auto const word : words) {
        if (text.find(word) == std::string::npos) return false;
    }
    return true;
}

/// Within a generous margin of limits of well below a second.
class in_time {
  public:
    bool holds() const { return std::chrono::steady_clock::now() - began_ < 40s; }

  private:
    std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

std::vector<tensor_spec> const specs = tensors_of_bytes({300, 300, 5000, 300, 6000, 300});
transfer_settings const settings{.packing = {.chunk_bytes = 256, .direct_from = 1000}};

/// A sink that calls a function at the nth advance.
struct hooked_progress {
    int calls_left = 0;
    std::function<void()> hook{};
    void begin(phase, std::uint64_t) {}
    void advance(std::uint64_t, std::string_view) {
        if (calls_left-- == 0) hook();
    }
    void end() {}
};
using hooked_engine = dense_engine<local_communicator, parameter_tables<>, hooked_progress>;

BOOST_AUTO_TEST_SUITE(dense_failure)

BOOST_AUTO_TEST_CASE(a_receiver_that_never_comes_is_a_timeout_of_the_preflight_that_names_it) {
    test_model const model{cpu_device, specs, 1};
    in_time const clock;
    auto const group = std::make_shared<local_group>(3, local_group_options{.grace = 10s});
    check_ranks(run_threads({[&]() -> std::string {
                                 test_trainer trainer{joins(*group), settings, short_limits()};
                                 trainer.init({place(0, 3)});
                                 auto source = model.source();
                                 send_update(trainer, source, 1);
                                 auto const message = failure_of(trainer);
                                 return unless(has(message, {"preflight", "rank 2 has not joined",
                                                             "suspected rank 2"}),
                                               message);
                             },
                             [&]() -> std::string {
                                 parameter_tables<> tables;
                                 test_engine engine{joins(*group), tables, short_limits()};
                                 engine.init(place(1, 3));
                                 auto const message = message_of([&] { receive_update(engine); });
                                 return unless(has(message, {"preflight", "rank 2"}), message);
                             }}),
                "never comes");
    BOOST_TEST(clock.holds());
}

BOOST_AUTO_TEST_CASE(one_deadline_bounds_all_steps_of_an_update) {
    // One side comes to the vote when its time for the update is over, and the other does not come: it is not given
    // that time once more.
    using clock = std::chrono::steady_clock;
    auto limits = patient_limits();
    limits.update = std::chrono::milliseconds{3000};
    auto const specs = tensors_of_bytes({3000});
    for (bool const sender_votes : {true, false}) {
        local_group const group{2, {.grace = std::chrono::seconds{10}}};
        std::atomic<bool> over{false};
        auto const late_vote = [&](auto const& vote) {
            std::this_thread::sleep_for(std::chrono::milliseconds{3100});
            auto const began = clock::now();
            auto const message = vote();
            auto const took = clock::now() - began;
            over = true;
            if (message.empty()) return std::string{"it passed alone"};
            return unless(took < std::chrono::milliseconds{2000},
                          "it waited for another update's time");
        };
        auto const until_over = [&] {
            while (!over) std::this_thread::sleep_for(std::chrono::milliseconds{5});
            return std::string{};
        };
        check_ranks(run_threads({[&]() -> std::string {
                                     test_trainer trainer{joins(group), {}, limits};
                                     trainer.init({place(0, 2)});
                                     test_model const model{cpu_device, specs, 1};
                                     auto source = model.source();
                                     trainer.announce(source, {1, {}}, {});
                                     trainer.send(source);
                                     if (!sender_votes) return until_over();
                                     return late_vote([&] {
                                         trainer.vote();
                                         return failure_of(trainer);
                                     });
                                 },
                                 [&]() -> std::string {
                                     parameter_tables<> tables;
                                     test_model held{cpu_device, specs, 0};
                                     held.add_to(tables.main());
                                     test_engine engine{joins(group), tables, limits};
                                     engine.init(place(1, 2));
                                     auto const update = engine.next();
                                     engine.start(update.target());
                                     engine.receive(update);
                                     auto const said = sender_votes ? until_over() : late_vote([&] {
                                         return message_of([&] { engine.prepare(); });
                                     });
                                     engine.rollback();
                                     return said;
                                 }}),
                    sender_votes ? "the sender votes late" : "the receiver votes late");
    }
}

BOOST_AUTO_TEST_CASE(a_group_that_cannot_be_asked_keeps_no_other_waiting) {
    detail::packed_meeting meeting{3};
    meeting.leave();
    meeting.leave();
    detail::packed_meeting::seat seat{meeting};
    std::vector<std::uint8_t> flags{0, 1};
    seat.merge(flags, soon());
    BOOST_TEST(flags == (std::vector<std::uint8_t>{0, 1}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_trainer_that_announces_nothing_is_a_timeout_of_the_announcement) {
    in_time const clock;
    test_fleet fleet{.size = 3, .limits = short_limits()};
    fleet.limits.announcement = 200ms;
    check_ranks(fleet.run(
                    [](test_trainer&) {
                        std::this_thread::sleep_for(1500ms);
                        return "";
                    },
                    [](test_engine& engine, int) {
                        auto const message = message_of([&] { static_cast<void>(engine.next()); });
                        return unless(has(message, {"preflight", "suspected rank 0"}) ||
                                          has(message, {"gave up"}),
                                      message);
                    }),
                "no announcement");
    BOOST_TEST(clock.holds());
}

BOOST_AUTO_TEST_CASE(waiting_for_an_announcement_has_no_stall_timer) {
    test_model const model{cpu_device, specs, 1};
    test_fleet fleet{.size = 2, .settings = settings, .limits = patient_limits()};
    fleet.limits.stall = 2s;
    check_ranks(fleet.run(
                    [&](test_trainer& trainer) {
                        std::this_thread::sleep_for(3s);
                        auto source = model.source();
                        send_update(trainer, source, 1);
                        return failure_of(trainer);
                    },
                    [&](test_engine& engine, int) {
                        test_model held{cpu_device, specs, 0};
                        held.add_to(engine.target().main());
                        receive_update(engine);
                        return std::string{};
                    }),
                "between steps");
}

BOOST_AUTO_TEST_CASE(a_wait_for_an_announcement_can_be_interrupted) {
    local_group const group{2};
    auto const trainer = group.join(0);
    parameter_tables<> tables;
    test_engine engine{joins(group), tables, patient_limits()};
    engine.init(place(1, 2));
    in_time const clock;
    std::jthread const other{[&] {
        std::this_thread::sleep_for(50ms);
        engine.interrupt();
    }};
    BOOST_CHECK_THROW(static_cast<void>(engine.next()), group_aborted);
    BOOST_TEST(clock.holds());
}

BOOST_AUTO_TEST_CASE(a_receiver_that_stops_in_the_payload_is_named_with_the_tensor) {
    test_model const model{cpu_device, specs, 1};
    in_time const clock;
    local_group const group{3, {.grace = 10s}};
    std::atomic<bool> over{false};
    check_ranks(
        run_threads({[&]() -> std::string {
                         test_trainer trainer{joins(group), settings, short_limits()};
                         trainer.init({place(0, 3)});
                         auto source = model.source();
                         send_update(trainer, source, 1);
                         auto const message = failure_of(trainer);
                         over = true;
                         return unless(has(message, {"payload: tensor 't", "suspected rank 2"}),
                                       message);
                     },
                     [&]() -> std::string {
                         parameter_tables<> tables;
                         test_model held{cpu_device, specs, 0};
                         held.add_to(tables.main());
                         test_engine engine{joins(group), tables, short_limits()};
                         engine.init(place(1, 3));
                         auto const message = message_of([&] { receive_update(engine); });
                         if (!has(message, {"payload: tensor 't", "rank 2"})) return message;
                         return unless(tables.mixed(), "not mixed");
                     },
                     [&]() -> std::string {
                         parameter_tables<> tables;
                         test_model held{cpu_device, specs, 0};
                         held.add_to(tables.main());
                         hooked_progress const stuck{0, [&] {
                                                         while (!over)
                                                             std::this_thread::sleep_for(5ms);
                                                     }};
                         hooked_engine engine{joins(group), tables, short_limits(), stuck};
                         engine.init(place(2, 3));
                         auto const message = message_of([&] { receive_update(engine); });
                         return unless(!message.empty() && tables.mixed(), "nothing happened");
                     }}),
        "stops in the payload");
    BOOST_TEST(clock.holds());
}

BOOST_AUTO_TEST_CASE(a_receiver_that_leaves_ends_the_update_at_once) {
    test_model const model{cpu_device, specs, 1};
    enum class when { after_next, after_start, after_receive };
    for (auto const moment : {when::after_next, when::after_start, when::after_receive}) {
        in_time const clock;
        test_fleet const fleet{.size = 3, .settings = settings};
        check_ranks(
            fleet.run(
                [&](test_trainer& trainer) {
                    auto source = model.source();
                    send_update(trainer, source, 1);
                    auto const message = failure_of(trainer);
                    return unless(
                        has(message,
                            {moment == when::after_receive ? "vote" : "preflight", "rank 2"}),
                        message);
                },
                [&](test_engine& engine, int rank) -> std::string {
                    test_model held{cpu_device, specs, 0};
                    held.add_to(engine.target().main());
                    if (rank == 1) {
                        auto const message = message_of([&] { receive_update(engine); });
                        if (message.empty()) return "it passed";
                        return unless(engine.target().mixed() == (moment == when::after_receive),
                                      "another mark");
                    }
                    auto const update = engine.next();
                    if (moment == when::after_next) {
                        engine.shutdown();
                        return "";
                    }
                    engine.start(update.target());
                    if (moment == when::after_receive) engine.receive(update);
                    engine.rollback();
                    return unless(engine.target().mixed() == (moment == when::after_receive),
                                  "another mark");
                }),
            "leaves");
        BOOST_TEST(clock.holds());
    }
}

BOOST_AUTO_TEST_CASE(a_trainer_that_leaves_in_the_middle_leaves_nobody_waiting) {
    test_model const model{cpu_device, specs, 1};
    for (bool const after_payload : {false, true}) {
        in_time const clock;
        test_fleet const fleet{.size = 3, .settings = settings};
        check_ranks(
            fleet.run(
                [&](test_trainer& trainer) -> std::string {
                    auto source = model.source();
                    trainer.announce(source, {1, {}}, {});
                    if (after_payload) trainer.send(source);
                    trainer.shutdown();
                    return "";
                },
                [&](test_engine& engine, int) -> std::string {
                    test_model held{cpu_device, specs, 0};
                    held.add_to(engine.target().main());
                    auto const message = message_of([&] { receive_update(engine); });
                    if (!has(message, {after_payload ? "vote" : "payload", "suspected rank 0"}))
                        return message;
                    if (!engine.target().mixed()) return "not mixed";
                    return unless(!engine.target().version().is_set(), "a version");
                }),
            "the trainer leaves");
        BOOST_TEST(clock.holds());
    }
}

BOOST_AUTO_TEST_CASE(after_a_failure_the_group_is_formed_anew_and_a_full_update_repairs) {
    test_model const model{cpu_device, specs, 1};
    auto const expected = model.values();
    local_group const first{2};
    local_group const second{2};
    auto const by_generation =
        [&](std::atomic<int>& generation) -> communicator_factory<local_communicator> {
        return [&](group_init const& init) {
            return (generation == 0 ? first : second).join(init.rank);
        };
    };
    check_ranks(run_threads({[&]() -> std::string {
                                 std::atomic<int> generation{0};
                                 test_trainer trainer{by_generation(generation), settings,
                                                      patient_limits()};
                                 trainer.init({place(0, 2)});
                                 auto source = model.source();
                                 trainer.announce(source, {1, {}}, {});
                                 trainer.shutdown();
                                 generation = 1;
                                 trainer.init({place(0, 2)});
                                 send_update(trainer, source, 2);
                                 return failure_of(trainer);
                             },
                             [&]() -> std::string {
                                 std::atomic<int> generation{0};
                                 parameter_tables<> tables;
                                 test_model held{cpu_device, specs, 0};
                                 held.add_to(tables.main());
                                 test_engine engine{by_generation(generation), tables,
                                                    patient_limits()};
                                 engine.init(place(1, 2));
                                 if (message_of([&] { receive_update(engine); }).empty())
                                     return "it passed";
                                 if (!tables.mixed()) return "not mixed";
                                 if (message_of([&] { static_cast<void>(engine.next()); }).empty())
                                     return "still in it";
                                 generation = 1;
                                 engine.init(place(1, 2));
                                 if (!tables.mixed()) return "a new group is no repair";
                                 receive_update(engine);
                                 if (tables.mixed()) return "still mixed";
                                 if (tables.version().number != 2) return "another version";
                                 return first_difference(held, expected);
                             }}),
                "anew");
}

BOOST_AUTO_TEST_CASE(nothing_reads_or_writes_tensors_once_a_failed_update_has_returned) {
    // The address sanitizer, or the bytes, tell: sources and destinations go as soon as the call has thrown.
    auto const large = tensors_of_bytes({200'000, 300, 300'000, 300, 300'000});
    settings_scope const strict{{.poison_freed = true, .max_delay = 500us, .delay_seed = 3}};
    transfer_settings const coarse{.packing = {.chunk_bytes = 50'000, .direct_from = 1000}};
    for (auto const where : {cpu_device, host1}) {
        for (int const moment : {0, 1, 2}) {
            local_group const group{2, {.where = {where}, .grace = 10s}};
            check_ranks(
                run_threads({[&]() -> std::string {
                                 test_trainer trainer{joins(group), coarse, patient_limits()};
                                 trainer.init({place(0, 2)});
                                 {
                                     test_model const model{host0, large, 1};
                                     auto source = model.source();
                                     send_update(trainer, source, 1);
                                 }
                                 return unless(!failure_of(trainer).empty(), "it passed");
                             },
                             [&]() -> std::string {
                                 parameter_tables<> tables;
                                 auto held = std::make_unique<test_model>(where, large, 0);
                                 held->add_to(tables.main());
                                 hooked_engine* self = nullptr;
                                 hooked_progress const hook{moment, [&] { self->interrupt(); }};
                                 hooked_engine engine{joins(group), tables, patient_limits(), hook};
                                 self = &engine;
                                 engine.init(place(1, 2));
                                 auto const message = message_of([&] { receive_update(engine); });
                                 held.reset();
                                 return unless(!message.empty(), "it passed");
                             }}),
                "moment " + std::to_string(moment));
        }
    }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weightcast::test
