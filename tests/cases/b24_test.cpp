// SPDX-License-Identifier: Apache-2.0
// B24: start was called while an update was active, or stayed active after a failure, so every later sync was
// refused.
#include <string>

#include <boost/test/unit_test.hpp>

#include <support/says.hpp>
#include <support/test_model.hpp>
#include <weightcast/session/weight_sender.hpp>
#include <weightcast/session/weight_worker.hpp>

namespace weightcast::test {
namespace {

auto const specs = tensors_of_bytes({100, 5000});

template <class E, class F>
bool throws(F const& f) {
    try {
        f();
    } catch (E const&) {
        return true;
    }
    return false;
}

BOOST_AUTO_TEST_SUITE(b24)

BOOST_AUTO_TEST_CASE(b24_a_second_start_is_refused_and_the_first_update_is_still_usable) {
    test_model const model{cpu_device, specs, 1};
    auto const expected = model.values();
    local_group const group{2};
    check_ranks(
        run_threads({[&] {
                         weight_sender sender{test_trainer{joins(group), {}, patient_limits()},
                                              {place(0, 2)}};
                         auto source = model.source();
                         return sender.update(source).groups.at(0).message;
                     },
                     [&]() -> std::string {
                         parameter_tables<> tables;
                         test_model held{cpu_device, specs, 0};
                         held.add_to(tables.main());
                         held.add_to(tables.draft());
                         weight_worker worker{test_engine{joins(group), tables, patient_limits()},
                                              place(1, 2)};
                         auto const announced = worker.next();
                         auto update = worker.start();
                         if (!throws<lifecycle_error>([&] { static_cast<void>(worker.start()); }))
                             return "twice";
                         if (!throws<lifecycle_error>(
                                 [&] { static_cast<void>(worker.start(target_id::draft())); })) {
                             return "twice";
                         }
                         update.receive(announced);
                         if (!throws<lifecycle_error>([&] { static_cast<void>(worker.start()); }))
                             return "twice";
                         auto const report = std::move(update).finish();
                         if (report.status != update_status::updated) return "not updated";
                         return first_difference(held, expected);
                     }}),
        "second start");
}

BOOST_AUTO_TEST_CASE(b24_after_a_failed_update_a_new_one_starts_without_a_restart) {
    auto other = specs;
    other[1].shape = {4999};
    test_model const wrong{cpu_device, other, 1};
    test_model const right{cpu_device, specs, 9};
    auto const expected = right.values();
    local_group const group{2};
    check_ranks(
        run_threads({[&]() -> std::string {
                         weight_sender sender{test_trainer{joins(group), {}, patient_limits()},
                                              {place(0, 2)}};
                         auto source = wrong.source();
                         auto const failed = sender.update(source);
                         if (failed.status != update_status::failed) return "it passed";
                         if (failed.groups[0].ranks[1] != rank_status::refused)
                             return "another status";
                         auto next = right.source();
                         return sender.update(next).groups.at(0).message;
                     },
                     [&]() -> std::string {
                         parameter_tables<> tables;
                         test_model held{cpu_device, specs, 0};
                         held.add_to(tables.main());
                         weight_worker worker{test_engine{joins(group), tables, patient_limits()},
                                              place(1, 2)};
                         {
                             auto const announced = worker.next();
                             auto update = worker.start();
                             if (!throws<refused_update>([&] { update.receive(announced); }))
                                 return "it passed";
                             if (!throws<lifecycle_error>([&] { update.receive(announced); }))
                                 return "again";
                             if (!throws<lifecycle_error>([&] { std::move(update).finish(); }))
                                 return "finished";
                             if (!throws<lifecycle_error>(
                                     [&] { static_cast<void>(worker.start()); })) {
                                 return "started beside one that failed";
                             }
                         }
                         if (worker.serve_one().status != update_status::updated)
                             return "not updated";
                         return first_difference(held, expected);
                     }}),
        "after a failure");
}

BOOST_AUTO_TEST_CASE(b24_finish_and_update_without_a_start_are_typed_errors) {
    parameter_tables<> tables;
    test_model held{cpu_device, specs, 0};
    held.add_to(tables.main());
    local_group const group{1};
    weight_worker worker{test_engine{joins(group), tables, patient_limits()}};
    auto update = worker.start();
    auto const report = std::move(update).finish();  // nothing was received: nothing was updated
    BOOST_TEST((report.status == update_status::nothing_updated));
    BOOST_CHECK_EXCEPTION(static_cast<void>(std::move(update).finish()), lifecycle_error,
                          says("finished"));
    BOOST_CHECK_EXCEPTION(update.receive(dense_update{}), lifecycle_error, says("finished"));
    BOOST_CHECK_THROW(static_cast<void>(worker.next()), lifecycle_error);  // no group was joined
    BOOST_TEST(!worker.open());
}

BOOST_AUTO_TEST_CASE(b24_an_update_that_is_left_is_rolled_back_and_the_next_may_start) {
    parameter_tables<> tables;
    test_model held{cpu_device, specs, 0};
    held.add_to(tables.main());
    weight_worker worker{test_engine{joins(local_group{1}), tables, patient_limits()}};
    for (int i = 0; i < 3; ++i) {
        auto const update = worker.start();
        BOOST_TEST(worker.open());
    }
    BOOST_TEST(!worker.open());
    BOOST_TEST(!tables.mixed());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weightcast::test
