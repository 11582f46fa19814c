// SPDX-License-Identifier: Apache-2.0

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include <boost/test/unit_test.hpp>

#include <session/recording_engine.hpp>
#include <support/plain_engine.hpp>
#include <support/says.hpp>
#include <weightcast/session/weight_worker.hpp>

using namespace weightcast;
using test::bare_recording_engine;
using test::numbered_update;
using test::recording_engine;
using test::says;

namespace {

struct fixture {
    std::shared_ptr<test::record> notes = std::make_shared<test::record>();
    weight_worker<recording_engine> worker{recording_engine{notes}};
};

}  // namespace

BOOST_AUTO_TEST_SUITE(weight_worker_suite)

BOOST_AUTO_TEST_CASE(init_in_the_constructor_joins) {
    auto const notes = std::make_shared<test::record>();
    weight_worker worker{bare_recording_engine{notes}, std::string{"weights"}};
    BOOST_TEST(notes->calls() == "init(weights)");
    worker.init("others");
    BOOST_TEST(notes->calls() == "init(weights) init(others)");
}

BOOST_FIXTURE_TEST_CASE(finish_votes_then_commits, fixture) {
    auto update = worker.start(target_id::draft());
    BOOST_TEST(worker.open());
    BOOST_TEST(update.open());
    update.receive(numbered_update{1});
    update.receive(numbered_update{2});
    auto const report = std::move(update).finish();
    BOOST_TEST(notes->calls() == "start(draft) receive(1) receive(2) prepare commit");
    BOOST_TEST(!worker.open());
    BOOST_TEST((report.status == update_status::updated));
    BOOST_TEST(to_string(report.target) == "draft");
    BOOST_TEST(report.seconds.total() >= 0);
}

BOOST_FIXTURE_TEST_CASE(leaving_the_scope_rolls_back_once, fixture) {
    {
        auto update = worker.start();
        update.receive(numbered_update{1});
    }
    BOOST_TEST(notes->calls() == "start(main) receive(1) rollback");
    BOOST_TEST(!worker.open());
}

BOOST_FIXTURE_TEST_CASE(an_exception_of_the_caller_rolls_back, fixture) {
    auto const update_and_fail = [&] {
        auto update = worker.start();
        update.receive(numbered_update{1});
        throw std::logic_error{"the caller's own"};
    };
    BOOST_CHECK_THROW(update_and_fail(), std::logic_error);
    BOOST_TEST(notes->calls() == "start(main) receive(1) rollback");
}

BOOST_FIXTURE_TEST_CASE(a_moved_update_is_finished_for_its_old_name, fixture) {
    auto first = worker.start();
    auto second = std::move(first);
    BOOST_TEST(!first.open());  // NOLINT(bugprone-use-after-move): what it says is the point
    BOOST_CHECK_EXCEPTION(first.receive(numbered_update{1}), lifecycle_error,
                          (says{"receive", "finished or rolled back already"}));
    BOOST_CHECK_EXCEPTION(static_cast<void>(std::move(first).finish()), lifecycle_error,
                          (says{"finish", "finished or rolled back already"}));
    first.roll_back();
    second.receive(numbered_update{2});
    static_cast<void>(std::move(second).finish());
    BOOST_TEST(notes->calls() == "start(main) receive(2) prepare commit");
}

BOOST_FIXTURE_TEST_CASE(an_update_moved_out_of_its_scope_stays_open, fixture) {
    std::optional<weight_update<recording_engine>> kept;
    {
        auto update = worker.start();
        kept.emplace(std::move(update));
    }
    BOOST_TEST(notes->calls() == "start(main)");
    kept->receive(numbered_update{7});
    kept.reset();
    BOOST_TEST(notes->calls() == "start(main) receive(7) rollback");
}

BOOST_FIXTURE_TEST_CASE(b24_second_start_is_refused_and_the_first_goes_on, fixture) {
    auto update = worker.start();
    BOOST_CHECK_EXCEPTION(static_cast<void>(worker.start(target_id::draft())), lifecycle_error,
                          (says{"start", "already open"}));
    update.receive(numbered_update{1});
    static_cast<void>(std::move(update).finish());
    BOOST_TEST(notes->calls() == "start(main) receive(1) prepare commit");
}

BOOST_FIXTURE_TEST_CASE(b24_start_after_a_failure_works, fixture) {
    {
        auto update = worker.start();
        notes->fail_in("receive");
        BOOST_CHECK_THROW(update.receive(numbered_update{1}), std::runtime_error);
    }
    auto update = worker.start();
    update.receive(numbered_update{2});
    static_cast<void>(std::move(update).finish());
    BOOST_TEST(notes->calls() ==
               "start(main) receive(1) rollback start(main) receive(2) prepare commit");
}

BOOST_FIXTURE_TEST_CASE(after_a_failed_receive_only_rollback_is_left, fixture) {
    auto update = worker.start();
    notes->fail_in("receive");
    BOOST_CHECK_THROW(update.receive(numbered_update{1}), std::runtime_error);
    BOOST_CHECK_EXCEPTION(update.receive(numbered_update{2}), lifecycle_error,
                          (says{"receive", "only rollback is left"}));
    BOOST_CHECK_EXCEPTION(static_cast<void>(std::move(update).finish()), lifecycle_error,
                          (says{"finish", "only rollback is left"}));
    BOOST_TEST(worker.open());
    BOOST_TEST(notes->calls() == "start(main) receive(1)");
    update.roll_back();  // NOLINT(bugprone-use-after-move): the finish that threw did not take it
    BOOST_TEST(!worker.open());
    update.roll_back();
    BOOST_TEST(notes->calls() == "start(main) receive(1) rollback");
}

BOOST_FIXTURE_TEST_CASE(a_receive_out_of_turn_changes_nothing, fixture) {
    auto update = worker.start();
    notes->refuse_in("receive");
    BOOST_CHECK_EXCEPTION(update.receive(numbered_update{1}), lifecycle_error,
                          (says{"out of turn"}));
    update.receive(numbered_update{2});
    notes->refuse_in("receive");
    BOOST_CHECK_THROW(update.receive(numbered_update{3}), lifecycle_error);
    auto const report = std::move(update).finish();
    BOOST_TEST((report.status == update_status::updated));
    BOOST_TEST(notes->calls() == "start(main) receive(1) receive(2) receive(3) prepare commit");
}

BOOST_FIXTURE_TEST_CASE(a_vote_that_fails_rolls_back_at_once_and_never_commits, fixture) {
    auto update = worker.start();
    update.receive(numbered_update{1});
    notes->fail_in("prepare");
    BOOST_CHECK_THROW(static_cast<void>(std::move(update).finish()), std::runtime_error);
    BOOST_TEST(notes->calls() == "start(main) receive(1) prepare rollback");
    BOOST_TEST(!worker.open());
    BOOST_TEST(!update.open());  // NOLINT(bugprone-use-after-move): stated
    BOOST_CHECK_THROW(static_cast<void>(std::move(update).finish()), lifecycle_error);
    auto next = worker.start();  // while the failed one is still in scope
    next.receive(numbered_update{2});
    static_cast<void>(std::move(next).finish());
    BOOST_TEST(notes->calls() ==
               "start(main) receive(1) prepare rollback start(main) receive(2) prepare commit");
}

BOOST_FIXTURE_TEST_CASE(finish_after_finish, fixture) {
    auto update = worker.start();
    update.receive(numbered_update{1});
    static_cast<void>(std::move(update).finish());
    BOOST_CHECK_THROW(static_cast<void>(std::move(update).finish()), lifecycle_error);
    BOOST_CHECK_THROW(update.receive(numbered_update{2}), lifecycle_error);
    update.roll_back();
    BOOST_TEST(notes->calls() == "start(main) receive(1) prepare commit");
}

BOOST_FIXTURE_TEST_CASE(b42_an_update_that_received_nothing_asks_nobody, fixture) {
    auto const report = worker.start().finish();
    BOOST_TEST((report.status == update_status::nothing_updated));
    BOOST_TEST(notes->calls() == "start(main) rollback");
    BOOST_TEST(!worker.open());
}

BOOST_FIXTURE_TEST_CASE(a_start_that_fails_opens_nothing, fixture) {
    notes->fail_in("start");
    BOOST_CHECK_THROW(static_cast<void>(worker.start()), std::runtime_error);
    BOOST_TEST(!worker.open());
    BOOST_TEST(notes->calls() == "start(main)");  // the engine undoes its own start
    static_cast<void>(worker.start().finish());
    BOOST_TEST(notes->calls() == "start(main) start(main) rollback");
}

BOOST_FIXTURE_TEST_CASE(init_while_open_is_refused, fixture) {
    {
        auto update = worker.start();
        BOOST_CHECK_EXCEPTION(worker.init("weights"), lifecycle_error,
                              (says{"init", "already open"}));
        update.receive(numbered_update{1});
        static_cast<void>(std::move(update).finish());
    }
    worker.init("weights");
    BOOST_TEST(notes->calls() == "start(main) receive(1) prepare commit init(weights)");
}

BOOST_FIXTURE_TEST_CASE(serve_one_takes_what_was_announced, fixture) {
    worker.engine().next_target = target_id::adapter("a");
    auto const report = worker.serve_one();
    BOOST_TEST(notes->calls() == "next start(adapter:a) receive(1) prepare commit");
    BOOST_TEST(to_string(report.target) == "adapter:a");
    BOOST_TEST(!worker.open());
}

BOOST_FIXTURE_TEST_CASE(serve_one_asks_for_nothing_while_an_update_is_open, fixture) {
    auto update = worker.start();
    BOOST_CHECK_EXCEPTION(static_cast<void>(worker.serve_one()), lifecycle_error,
                          (says{"serve_one", "already open"}));
    BOOST_TEST(notes->calls() == "start(main)");
}

BOOST_FIXTURE_TEST_CASE(serve_one_refuses_what_it_cannot_start, fixture) {
    notes->fail_in("start");
    BOOST_CHECK_EXCEPTION(static_cast<void>(worker.serve_one()), refused_update,
                          (says{"refused by rank 0", "start failed"}));
    BOOST_TEST(notes->calls() == "next start(main) refuse(1)");
    static_cast<void>(worker.serve_one());
    BOOST_TEST(notes->calls() ==
               "next start(main) refuse(1) next start(main) receive(2) prepare commit");
}

BOOST_FIXTURE_TEST_CASE(serve_one_that_fails_leaves_nothing_open, fixture) {
    for (auto const* step : {"next", "receive", "prepare"}) {
        notes->fail_in(step);
        BOOST_CHECK_THROW(static_cast<void>(worker.serve_one()), std::runtime_error);
        BOOST_TEST(!worker.open());
    }
    BOOST_TEST(
        notes->calls() ==
        "next next start(main) receive(1) rollback next start(main) receive(2) prepare rollback");
}

// An engine that cannot refuse: the error of its start is what the caller gets.
BOOST_AUTO_TEST_CASE(serve_one_without_refusal) {
    struct engine : bare_recording_engine {
        using bare_recording_engine::bare_recording_engine;
        numbered_update next() { return {}; }
    };
    auto const notes = std::make_shared<test::record>();
    weight_worker worker{engine{notes}};
    notes->fail_in("start");
    BOOST_CHECK_EXCEPTION(static_cast<void>(worker.serve_one()), std::runtime_error,
                          says{"start failed"});
    BOOST_TEST(!worker.open());
}

// What the engine says of its update is asked before the vote: nothing may fail after it.
BOOST_AUTO_TEST_CASE(a_description_that_fails_keeps_the_vote_from_happening) {
    struct engine : bare_recording_engine {
        using bare_recording_engine::bare_recording_engine;
        void describe(update_report& report) const {
            notes_->call("describe");
            report.tensors = 3;
            report.status = update_status::updated;
        }
    };
    auto const notes = std::make_shared<test::record>();
    weight_worker worker{engine{notes}};
    {
        auto update = worker.start();
        update.receive(numbered_update{1});
        auto const report = std::move(update).finish();
        BOOST_TEST(report.tensors == 3U);
        BOOST_TEST((report.status == update_status::updated));
    }
    BOOST_TEST(notes->calls() == "start(main) receive(1) describe prepare commit");
    notes->forget();
    auto update = worker.start();
    update.receive(numbered_update{2});
    notes->fail_in("describe");
    BOOST_CHECK_THROW(static_cast<void>(std::move(update).finish()), std::runtime_error);
    BOOST_TEST(notes->calls() == "start(main) receive(2) describe rollback");
}

BOOST_AUTO_TEST_CASE(the_least_engine_there_is_will_do) {
    weight_worker worker{test::plain_engine{}, test::plain_init{}};
    auto update = worker.start(target_id::adapter("x"));
    update.receive(test::plain_update{});
    auto const report = std::move(update).finish();
    BOOST_TEST((report.status == update_status::updated));
    BOOST_TEST(to_string(report.target) == "adapter:x");
}

BOOST_AUTO_TEST_SUITE_END()
