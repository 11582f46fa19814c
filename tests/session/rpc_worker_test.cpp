// SPDX-License-Identifier: Apache-2.0

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <session/recording_engine.hpp>
#include <support/plain_engine.hpp>
#include <support/says.hpp>
#include <weightcast/base/log.hpp>
#include <weightcast/engine/any_engine.hpp>
#include <weightcast/session/rpc_worker.hpp>

using namespace weightcast;
using test::bare_recording_engine;
using test::numbered_update;
using test::recording_engine;
using test::says;
using namespace std::chrono_literals;

namespace {

struct log_lines {
    std::vector<std::string> lines() {
        std::lock_guard const lock{mutex};
        return kept;
    }
    std::mutex mutex;
    std::vector<std::string> kept;
    scoped_log_sink sink{[this](std::string_view line) {
        std::lock_guard const lock{mutex};
        kept.emplace_back(line);
    }};
};

struct fixture {
    log_lines log;
    std::shared_ptr<test::record> notes = std::make_shared<test::record>();
    rpc_worker<recording_engine> worker{recording_engine{notes}};
};

/// What a call on a thread of its own ended with: "ok", or its error's message.
class background {
  public:
    template <class F>
    explicit background(F call)
        : thread_{[this, call] {
              try {
                  call();
                  outcome_ = "ok";
              } catch (std::exception const& e) {
                  outcome_ = e.what();
              }
          }} {}
    std::string join() {
        thread_.join();
        return outcome_;
    }

  private:
    std::string outcome_;
    std::jthread thread_;  // last: starts when the rest is there
};

/// Polls until the condition holds; false after 60 s.
template <class F>
bool eventually(F const& condition) {
    auto const end = deadline::after(60s);
    while (!condition()) {
        if (end.expired()) return false;
        std::this_thread::sleep_for(1ms);
    }
    return true;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(rpc_worker_suite)

BOOST_FIXTURE_TEST_CASE(the_lifecycle_by_requests, fixture) {
    worker.init("weights");
    BOOST_TEST(!worker.status().open);
    worker.start(target_id::draft());
    BOOST_TEST(worker.status().open);
    BOOST_TEST(to_string(worker.status().target) == "draft");
    BOOST_TEST(worker.status().running == "");
    worker.receive({.number = 1});
    worker.receive({.number = 2});
    auto const report = worker.finish();
    BOOST_TEST(notes->calls() == "init(weights) start(draft) receive(1) receive(2) prepare commit");
    BOOST_TEST((report.status == update_status::updated));
    BOOST_TEST(!worker.status().open);
    BOOST_TEST(worker.status().failure == "");
    BOOST_REQUIRE(worker.status().last.has_value());
    BOOST_TEST(to_string(worker.status().last->target) == "draft");
    BOOST_TEST(log.lines().empty());
}

// Any order from outside: each wrong step is a lifecycle_error, and the worker goes on.
BOOST_FIXTURE_TEST_CASE(b24_every_wrong_order_is_a_typed_error, fixture) {
    BOOST_CHECK_EXCEPTION(worker.finish(), lifecycle_error, (says{"finish", "no update is open"}));
    BOOST_CHECK_EXCEPTION(worker.receive({}), lifecycle_error,
                          (says{"receive", "no update is open"}));
    worker.roll_back();
    worker.start();
    BOOST_CHECK_EXCEPTION(worker.start(target_id::draft()), lifecycle_error,
                          (says{"start", "of 'main' is already open"}));
    BOOST_TEST(to_string(worker.status().target) == "main");
    worker.receive({.number = 1});
    worker.finish();
    BOOST_CHECK_EXCEPTION(worker.finish(), lifecycle_error, (says{"finish", "finished already"}));
    BOOST_CHECK_EXCEPTION(worker.receive({}), lifecycle_error,
                          (says{"receive", "finished already"}));
    worker.start();
    worker.roll_back();
    worker.roll_back();
    BOOST_CHECK_EXCEPTION(worker.finish(), lifecycle_error,
                          (says{"finish", "rolled back", "asked for"}));
    worker.start();
    worker.receive({.number = 2});
    worker.finish();
    BOOST_TEST(
        notes->calls() ==
        "start(main) receive(1) prepare commit start(main) rollback start(main) receive(2) prepare commit");
}

BOOST_FIXTURE_TEST_CASE(a_failed_receive_is_rolled_back_and_closed_at_once, fixture) {
    worker.start();
    notes->fail_in("receive");
    BOOST_CHECK_EXCEPTION(worker.receive({.number = 1}), std::runtime_error,
                          says{"receive failed"});
    BOOST_TEST(notes->calls() == "start(main) receive(1) rollback");
    BOOST_TEST(!worker.status().open);
    BOOST_TEST(worker.status().failure == "receive failed");
    BOOST_CHECK_EXCEPTION(
        worker.finish(), lifecycle_error,
        (says{"finish", "of 'main' was rolled back", "receive failed", "start a new one"}));
    BOOST_CHECK_THROW(worker.receive({.number = 2}), lifecycle_error);
    worker.roll_back();
    worker.start(target_id::draft());
    BOOST_TEST(worker.status().failure == "");
    worker.receive({.number = 3});
    worker.finish();
    BOOST_TEST(notes->calls() ==
               "start(main) receive(1) rollback start(draft) receive(3) prepare commit");
}

BOOST_FIXTURE_TEST_CASE(a_receive_out_of_turn_leaves_the_update_open, fixture) {
    worker.start();
    worker.receive({.number = 1});
    notes->refuse_in("receive");
    BOOST_CHECK_EXCEPTION(worker.receive({.number = 2}), lifecycle_error, (says{"out of turn"}));
    BOOST_TEST(worker.status().open);
    BOOST_TEST((worker.finish().status == update_status::updated));
    BOOST_TEST(notes->calls() == "start(main) receive(1) receive(2) prepare commit");
}

BOOST_FIXTURE_TEST_CASE(a_failed_vote_is_rolled_back_and_closed_at_once, fixture) {
    worker.start();
    worker.receive({.number = 1});
    notes->fail_in("prepare");
    BOOST_CHECK_EXCEPTION(worker.finish(), std::runtime_error, says{"prepare failed"});
    BOOST_TEST(notes->calls() == "start(main) receive(1) prepare rollback");
    BOOST_CHECK_EXCEPTION(worker.finish(), lifecycle_error,
                          (says{"rolled back", "prepare failed"}));
    BOOST_TEST(!worker.status().last.has_value());
    worker.start();
    worker.receive({.number = 2});
    worker.finish();
}

BOOST_FIXTURE_TEST_CASE(a_start_that_fails_opens_nothing, fixture) {
    notes->fail_in("start");
    BOOST_CHECK_THROW(worker.start(), std::runtime_error);
    BOOST_TEST(!worker.status().open);
    BOOST_CHECK_EXCEPTION(worker.finish(), lifecycle_error, says{"no update is open"});
    worker.start();
}

BOOST_FIXTURE_TEST_CASE(b42_finish_without_payload_updates_nothing, fixture) {
    worker.start();
    BOOST_TEST((worker.finish().status == update_status::nothing_updated));
    BOOST_TEST(notes->calls() == "start(main) rollback");
}

// --- what is remembered ---

BOOST_FIXTURE_TEST_CASE(metadata_as_last_time_is_kept_for_each_target, fixture) {
    worker.init("weights");
    worker.start();
    BOOST_CHECK_EXCEPTION(worker.receive(), lifecycle_error,
                          (says{"as last time", "of 'main'", "since init"}));
    BOOST_TEST(worker.status().open);  // the request was wrong, not the update
    worker.receive({.number = 1});
    worker.finish();
    worker.start(target_id::draft());
    BOOST_CHECK_THROW(worker.receive(), lifecycle_error);
    worker.receive({.number = 2});
    worker.finish();
    notes->forget();
    for (auto const& target : {target_id::main(), target_id::draft(), target_id::main()}) {
        worker.start(target);
        worker.receive();
        worker.finish();
    }
    BOOST_TEST(
        notes->calls() ==
        "start(main) receive(1) prepare commit start(draft) receive(2) prepare commit start(main) receive(1) "
        "prepare commit");
}

BOOST_FIXTURE_TEST_CASE(only_a_finished_update_is_remembered, fixture) {
    worker.start();
    worker.receive({.number = 1});
    worker.roll_back();
    worker.start();
    BOOST_CHECK_THROW(worker.receive(), lifecycle_error);
    worker.receive({.number = 2});
    notes->fail_in("prepare");
    BOOST_CHECK_THROW(worker.finish(), std::runtime_error);
    worker.start();
    BOOST_CHECK_THROW(worker.receive(), lifecycle_error);
    worker.receive({.number = 3});
    worker.finish();
    worker.start();
    notes->fail_in("receive");
    BOOST_CHECK_THROW(worker.receive({.number = 4}), std::runtime_error);
    notes->forget();
    worker.start();
    worker.receive();
    worker.finish();
    BOOST_TEST(notes->calls() == "start(main) receive(3) prepare commit");
}

BOOST_FIXTURE_TEST_CASE(init_forgets_metadata, fixture) {
    worker.start();
    worker.receive({.number = 1});
    worker.finish();
    worker.init("weights");
    worker.start();
    BOOST_CHECK_THROW(worker.receive(), lifecycle_error);
}

// --- init in the middle ---

BOOST_FIXTURE_TEST_CASE(b12_b21_init_rolls_back_an_open_update_and_says_so, fixture) {
    worker.init("weights");
    worker.start(target_id::draft());
    worker.receive({.number = 1});
    worker.init("weights");
    BOOST_TEST(notes->calls() == "init(weights) start(draft) receive(1) rollback init(weights)");
    BOOST_REQUIRE(log.lines().size() == 1U);
    BOOST_TEST(log.lines()[0] ==
               "the open update of 'draft' was rolled back: a new init replaced its group");
    BOOST_CHECK_EXCEPTION(worker.finish(), lifecycle_error, (says{"rolled back", "a new init"}));
    worker.start();
    worker.receive({.number = 2});
    worker.finish();
}

BOOST_FIXTURE_TEST_CASE(an_init_that_fails_leaves_a_worker_that_can_be_initialised, fixture) {
    notes->fail_in("init");
    BOOST_CHECK_THROW(worker.init("weights"), std::runtime_error);
    worker.init("weights");
    BOOST_TEST(notes->calls() == "init(weights) init(weights)");
}

BOOST_FIXTURE_TEST_CASE(shutdown_rolls_back_and_leaves, fixture) {
    worker.start();
    worker.shutdown();
    BOOST_TEST(notes->calls() == "start(main) rollback shutdown");
    BOOST_TEST(log.lines().size() == 1U);
    BOOST_TEST(!worker.status().open);
}

// --- several at once ---

BOOST_FIXTURE_TEST_CASE(a_request_while_one_runs_is_refused_and_changes_nothing, fixture) {
    worker.start();
    notes->block_in("receive");
    background receiving{[this] { worker.receive({.number = 1}); }};
    BOOST_REQUIRE(notes->wait_until_blocked());
    BOOST_TEST(worker.status().running == "receive");
    BOOST_TEST(worker.status().open);
    BOOST_CHECK_EXCEPTION(worker.start(), lifecycle_error,
                          (says{"start: another request (receive) is running"}));
    BOOST_CHECK_EXCEPTION(worker.receive({.number = 2}), lifecycle_error,
                          (says{"receive: another request"}));
    BOOST_CHECK_EXCEPTION(worker.receive(), lifecycle_error, (says{"receive: another request"}));
    BOOST_CHECK_EXCEPTION(worker.finish(), lifecycle_error, (says{"finish: another request"}));
    BOOST_CHECK_EXCEPTION(worker.roll_back(), lifecycle_error,
                          (says{"roll_back: another request"}));
    BOOST_CHECK_EXCEPTION(worker.shutdown(), lifecycle_error, (says{"shutdown: another request"}));
    BOOST_CHECK_EXCEPTION(worker.serve_one(), lifecycle_error,
                          (says{"serve_one: another request"}));
    notes->release();
    BOOST_TEST(receiving.join() == "ok");
    worker.finish();
    BOOST_TEST(notes->calls() == "start(main) receive(1) prepare commit");
}

BOOST_FIXTURE_TEST_CASE(cancel_ends_the_request_that_runs, fixture) {
    worker.cancel();  // nothing runs
    worker.start();
    notes->block_in("receive");
    background receiving{[this] { worker.receive({.number = 1}); }};
    BOOST_REQUIRE(notes->wait_until_blocked());
    worker.cancel();
    BOOST_TEST(receiving.join() == "interrupted");
    BOOST_TEST(notes->calls() == "start(main) receive(1) rollback");
    notes->release();
    worker.init("weights");
    worker.start();
    worker.receive({.number = 2});
    worker.finish();
}

BOOST_FIXTURE_TEST_CASE(b21_init_interrupts_what_runs, fixture) {
    worker.init("weights");
    worker.start();
    notes->block_in("receive");
    background receiving{[this] { worker.receive({.number = 1}); }};
    BOOST_REQUIRE(notes->wait_until_blocked());
    worker.init("weights");
    BOOST_TEST(receiving.join() == "interrupted");
    BOOST_TEST(notes->calls() == "init(weights) start(main) receive(1) rollback init(weights)");
}

BOOST_FIXTURE_TEST_CASE(an_init_does_not_interrupt_another, fixture) {
    notes->block_in("init");
    background joining{[this] { worker.init("first"); }};
    BOOST_REQUIRE(notes->wait_until_blocked());
    BOOST_CHECK_EXCEPTION(worker.init("second"), lifecycle_error,
                          (says{"init: another request (init) is running"}));
    notes->release();
    BOOST_TEST(joining.join() == "ok");
    BOOST_TEST(notes->calls() == "init(first)");
}

// An engine that cannot be interrupted: init is refused like any other request.
BOOST_AUTO_TEST_CASE(init_is_refused_where_nothing_can_be_interrupted) {
    auto const notes = std::make_shared<test::record>();
    rpc_worker<bare_recording_engine> worker{bare_recording_engine{notes}};
    worker.start();
    notes->block_in("receive");
    background receiving{[&] { worker.receive({.number = 1}); }};
    BOOST_REQUIRE(notes->wait_until_blocked());
    BOOST_CHECK_EXCEPTION(worker.init("weights"), lifecycle_error,
                          (says{"init: another request (receive) is running"}));
    notes->release();
    BOOST_TEST(receiving.join() == "ok");
    worker.finish();
}

// What does not end when it is interrupted: init gives up after its setting.
BOOST_AUTO_TEST_CASE(init_waits_for_the_interrupted_request_no_longer_than_set) {
    struct deaf_engine : bare_recording_engine {
        using bare_recording_engine::bare_recording_engine;
        void interrupt() noexcept {}
    };
    auto const notes = std::make_shared<test::record>();
    rpc_worker<deaf_engine> worker{deaf_engine{notes}, {.open_update = 300s, .interrupt = 10ms}};
    worker.start();
    notes->block_in("receive");
    background receiving{[&] { worker.receive({.number = 1}); }};
    BOOST_REQUIRE(notes->wait_until_blocked());
    BOOST_CHECK_EXCEPTION(worker.init("weights"), lifecycle_error,
                          (says{"another request (receive) is running"}));
    notes->release();
    BOOST_TEST(receiving.join() == "ok");
    worker.finish();
    BOOST_TEST(notes->calls() == "start(main) receive(1) prepare commit");
}

BOOST_FIXTURE_TEST_CASE(many_threads_get_one_update_or_a_lifecycle_error, fixture) {
    constexpr int threads = 8;
    constexpr int rounds = 100;
    std::atomic<int> finished{0};
    std::atomic<int> refused{0};
    std::atomic<int> surprises{0};
    {
        std::vector<std::jthread> crowd;
        for (int t = 0; t < threads; ++t) {
            crowd.emplace_back([&, t] {
                for (int i = 0; i < rounds; ++i) {
                    try {
                        switch ((i + t) % 4) {
                            case 0: worker.start(); break;
                            case 1: worker.receive({.number = i}); break;
                            case 2: worker.finish(), ++finished; break;
                            default: worker.roll_back(); break;
                        }
                        static_cast<void>(worker.status());
                    } catch (lifecycle_error const&) {
                        ++refused;
                    } catch (...) {
                        ++surprises;
                    }
                }
            });
        }
    }
    BOOST_TEST(surprises.load() == 0);
    BOOST_TEST(finished.load() + refused.load() > 0);
    // The engine saw a proper lifecycle: each start is followed by its receives, and one end.
    std::string state = "idle";
    bool proper = true;
    std::string const calls = notes->calls() + " ";
    for (std::size_t i = 0; i < calls.size();) {
        auto const end = calls.find(' ', i);
        auto const call = calls.substr(i, calls.find_first_of("( ", i) - i);
        i = end + 1;
        if (call.empty()) continue;
        if (call == "start")
            proper = proper && std::exchange(state, "open") == "idle";
        else if (call == "receive")
            proper = proper && state == "open";
        else if (call == "prepare")
            proper = proper && std::exchange(state, "voted") == "open";
        else if (call == "commit")
            proper = proper && std::exchange(state, "idle") == "voted";
        else if (call == "rollback")
            proper = proper && std::exchange(state, "idle") == "open";
        else
            proper = false;
    }
    BOOST_TEST(proper, "the engine saw: " << calls);
}

// --- the deadline of an open update ---

struct impatient {
    log_lines log;
    std::shared_ptr<test::record> notes = std::make_shared<test::record>();
    rpc_worker<recording_engine> worker{recording_engine{notes},
                                        {.open_update = 30ms, .interrupt = 10s}};
};

BOOST_FIXTURE_TEST_CASE(an_open_update_without_requests_is_rolled_back, impatient) {
    worker.start(target_id::draft());
    BOOST_REQUIRE(notes->wait_for_call("rollback"));
    BOOST_REQUIRE(eventually([&] { return !worker.status().open && !log.lines().empty(); }));
    BOOST_TEST(log.lines()[0] ==
               "the open update of 'draft' was rolled back: no request came within 30 ms");
    BOOST_CHECK_EXCEPTION(worker.finish(), lifecycle_error,
                          (says{"rolled back", "no request came within 30 ms"}));
    BOOST_CHECK_THROW(worker.receive({}), lifecycle_error);
    BOOST_TEST(notes->calls() == "start(draft) rollback");
}

BOOST_AUTO_TEST_CASE(a_deadline_without_end_rolls_nothing_back) {
    auto const notes = std::make_shared<test::record>();
    constexpr auto endless = std::chrono::milliseconds::max();
    rpc_worker<recording_engine> worker{recording_engine{notes},
                                        {.open_update = endless, .interrupt = endless}};
    worker.start();
    std::this_thread::sleep_for(30ms);
    BOOST_TEST(worker.status().open);
    worker.receive({.number = 1});
    BOOST_TEST((worker.finish().status == update_status::updated));
}

BOOST_FIXTURE_TEST_CASE(the_watcher_watches_every_update, impatient) {
    for (int i = 0; i < 3; ++i) {
        notes->forget();
        worker.start();
        BOOST_REQUIRE(notes->wait_for_call("rollback"));
        BOOST_REQUIRE(eventually([&] { return !worker.status().open; }));
    }
}

// A request that runs longer than the deadline is no idle update; the time counts from its end.
BOOST_FIXTURE_TEST_CASE(a_running_request_is_not_rolled_back, impatient) {
    notes->block_in("receive");
    background receiving{[this] {
        for (;;) {  // on a slow machine the deadline may come between the two
            try {
                worker.start();
                return worker.receive({.number = 1});
            } catch (lifecycle_error const&) {}
        }
    }};
    BOOST_REQUIRE(notes->wait_until_blocked());
    notes->forget();
    std::this_thread::sleep_for(200ms);
    BOOST_TEST(notes->calls() == "");
    BOOST_TEST(worker.status().open);
    notes->release();
    BOOST_TEST(receiving.join() == "ok");
    BOOST_TEST(notes->wait_for_call("rollback"));
}

BOOST_FIXTURE_TEST_CASE(no_update_is_open_so_nothing_is_rolled_back, impatient) {
    worker.start();
    worker.roll_back();
    notes->forget();
    std::this_thread::sleep_for(100ms);
    BOOST_TEST(notes->calls() == "");
}

BOOST_AUTO_TEST_CASE(the_destructor_rolls_back_and_does_not_wait_for_the_deadline) {
    auto const notes = std::make_shared<test::record>();
    auto const begin = std::chrono::steady_clock::now();
    {
        rpc_worker<recording_engine> worker{recording_engine{notes},
                                            {.open_update = 1h, .interrupt = 1s}};
        worker.start();
    }
    BOOST_TEST((std::chrono::steady_clock::now() - begin < 60s));
    BOOST_TEST(notes->calls() == "start(main) rollback shutdown");
}

// --- announcements ---

BOOST_FIXTURE_TEST_CASE(receive_next_takes_what_the_trainers_announce, fixture) {
    BOOST_CHECK_EXCEPTION(worker.receive_next(), lifecycle_error,
                          (says{"receive_next", "no update is open"}));
    worker.start();
    worker.receive_next();
    worker.finish();
    BOOST_TEST(notes->calls() == "start(main) next receive(1) prepare commit");
    worker.start();
    notes->fail_in("next");
    BOOST_CHECK_THROW(worker.receive_next(), std::runtime_error);
    BOOST_TEST(!worker.status().open);
}

BOOST_FIXTURE_TEST_CASE(serve_one_is_one_request, fixture) {
    auto const report = worker.serve_one();
    BOOST_TEST((report.status == update_status::updated));
    BOOST_TEST(worker.status().last.has_value());
    BOOST_TEST(notes->calls() == "next start(main) receive(1) prepare commit");
    worker.start();
    BOOST_CHECK_EXCEPTION(worker.serve_one(), lifecycle_error, (says{"serve_one", "already open"}));
    BOOST_TEST(worker.status().open);
}

BOOST_FIXTURE_TEST_CASE(a_wait_for_an_announcement_can_be_cancelled, fixture) {
    notes->block_in("next");
    background serving{[this] { worker.serve_one(); }};
    BOOST_REQUIRE(notes->wait_until_blocked());
    BOOST_TEST(worker.status().running == "serve_one");
    worker.cancel();
    BOOST_TEST(serving.join() == "interrupted");
}

BOOST_AUTO_TEST_CASE(any_engine_is_driven_by_requests) {
    auto const notes = std::make_shared<test::record>();
    rpc_worker<any_engine> worker{any_engine{recording_engine{notes}}};
    worker.init(std::string{"weights"});
    worker.start();
    worker.receive(numbered_update{4});
    worker.finish();
    worker.start();
    BOOST_CHECK_EXCEPTION(worker.receive(3), bad_argument,
                          (says{"receive", "numbered_update", "got int"}));
    BOOST_CHECK_EXCEPTION(worker.finish(), lifecycle_error, (says{"rolled back", "got int"}));
    BOOST_TEST(notes->calls() ==
               "init(weights) start(main) receive(4) prepare commit start(main) rollback");
}

BOOST_AUTO_TEST_SUITE_END()
