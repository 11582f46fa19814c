// SPDX-License-Identifier: Apache-2.0
#include <boost/test/unit_test.hpp>

#include <laws/communicator_fault_laws.hpp>
#include <laws/communicator_laws.hpp>

#include "gloo_makers.hpp"

namespace {

using namespace weightcast;
using namespace weightcast::test;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(gloo_communicator)

gloo_thread_maker maker;
std::vector<device> const on_host_1{device{device_kind::host, 1}};
std::vector<device> const on_different_devices{device{device_kind::host, 0},
                                               device{device_kind::host, 3}, cpu_device};

// --- the laws, ranks on threads ---

BOOST_AUTO_TEST_CASE(broadcasts_are_exact) {
    for (int const size : {1, 2, 3, 5}) law_broadcast_is_exact(maker, size);
    law_broadcast_is_exact(maker, 2, on_host_1);
}
BOOST_AUTO_TEST_CASE(each_rank_has_its_place_and_device) {
    law_place_and_state(maker);
    law_place_and_state(maker, on_host_1);
    law_place_and_state(maker, on_different_devices);
}
BOOST_AUTO_TEST_CASE(buffers_keep_their_addresses) {
    law_buffers_keep_their_addresses(maker);
    law_buffers_keep_their_addresses(maker, on_host_1);
}
BOOST_AUTO_TEST_CASE(groups_of_ranges_are_one_operation) {
    for (int const size : {1, 2, 3, 5}) law_groups_of_ranges(maker, size);
    law_groups_of_ranges(maker, 3, on_different_devices);
}
BOOST_AUTO_TEST_CASE(ranks_send_to_each_other) {
    for (int const size : {2, 3, 5}) law_send_and_receive(maker, size);
}
BOOST_AUTO_TEST_CASE(reductions_are_exact_and_equal) {
    for (int const size : {1, 2, 3, 5}) law_all_reduce(maker, size);
    law_all_reduce_at_the_ends(maker);
    law_all_reduce_refuses_other_types(maker);
}
BOOST_AUTO_TEST_CASE(operations_keep_their_order) {
    for (int const size : {1, 2, 3, 5}) law_order_is_kept(maker, size);
}
BOOST_AUTO_TEST_CASE(groups_live_side_by_side) { law_groups_side_by_side(maker); }
BOOST_AUTO_TEST_CASE(wrong_calls_are_refused) { law_wrong_calls_are_refused(maker); }
BOOST_AUTO_TEST_CASE(an_event_that_is_reached_means_bytes) {
    law_bytes_are_there_when_the_event_is(maker);
}
BOOST_AUTO_TEST_CASE(sizes_ranges_roots_and_kinds_must_agree) {
    law_sizes_must_agree(maker, 2);
    law_sizes_must_agree(maker, 3);
    law_ranges_must_agree(maker);
    law_roots_must_agree(maker, 2);
    law_roots_must_agree(maker, 3);
    law_kinds_must_agree(maker);
}
BOOST_AUTO_TEST_CASE(a_stuck_rank_is_named) {
    for (int const size : {2, 3, 5}) law_a_stuck_rank_is_named(maker, size);
}
BOOST_AUTO_TEST_CASE(deadlines_end_operations) { law_deadlines_end_operations(maker); }
BOOST_AUTO_TEST_CASE(an_abort_wakes_everyone) {
    law_abort_wakes_everyone(maker, 2);
    law_abort_wakes_everyone(maker, 3);
    law_abort_of_an_idle_group(maker);
}
BOOST_AUTO_TEST_CASE(later_work_is_skipped) { law_later_work_is_skipped(maker); }
BOOST_AUTO_TEST_CASE(a_rank_that_is_gone_is_named) {
    law_a_rank_that_is_gone_is_named(maker, 2);
    law_a_rank_that_is_gone_is_named(maker, 3);
}
BOOST_AUTO_TEST_CASE(leaving_in_mid_operation) { law_leaving_in_mid_operation(maker); }
BOOST_AUTO_TEST_CASE(b12_a_group_is_formed_anew_under_its_name) {
    law_reforming_under_the_same_name(maker);
}

// --- the laws, ranks in processes ---

BOOST_AUTO_TEST_CASE(laws_between_processes) {
    gloo_process_maker processes;
    law_broadcast_is_exact(processes, 3);
    law_place_and_state(processes);
    law_groups_of_ranges(processes, 3);
    law_send_and_receive(processes, 3);
    law_all_reduce(processes, 2);
    law_order_is_kept(processes, 3);
}
BOOST_AUTO_TEST_CASE(fault_laws_between_processes) {
    gloo_process_maker processes;
    law_sizes_must_agree(processes, 3);
    law_ranges_must_agree(processes);
    law_roots_must_agree(processes, 3);
    law_kinds_must_agree(processes);
    law_a_stuck_rank_is_named(processes, 3);
    law_deadlines_end_operations(processes);
    law_abort_wakes_everyone(processes, 3);
    law_abort_of_an_idle_group(processes);
    law_later_work_is_skipped(processes);
    law_a_rank_that_is_gone_is_named(processes, 3);
    law_leaving_in_mid_operation(processes);
    law_reforming_under_the_same_name(processes);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
