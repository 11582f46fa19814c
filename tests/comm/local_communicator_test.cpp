// SPDX-License-Identifier: Apache-2.0
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <future>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <weightcast/base/log.hpp>
#include <weightcast/comm/local_communicator.hpp>

#include <laws/communicator_fault_laws.hpp>
#include <laws/communicator_laws.hpp>
#include <runtime/host_support.hpp>
#include <support/allocation_count.hpp>
#include <support/counting_new.hpp>
#include <support/says.hpp>

namespace {

using namespace weightcast;
using namespace weightcast::test;
using namespace std::chrono_literals;

/// Ranks on threads of this process, each with a communicator that ends with its body.
struct local_maker {
    using communicator = local_communicator;

    template <class Body>
    std::vector<std::string> run(group_request const& request, Body body) {
        local_group const group{
            request.size, {.name = request.name, .where = request.where, .grace = request.grace}};
        // All join before one runs: a group may end before its last rank has come.
        std::vector<local_communicator> ranks;
        for (int rank = 0; rank < request.size; ++rank) ranks.push_back(group.join(rank));
        std::vector<std::string> outcomes(ranks.size());
        std::vector<std::thread> threads;
        for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
            threads.emplace_back([&, rank] {
                auto c = std::move(ranks[rank]);
                try {
                    outcomes[rank] = body(c);
                } catch (...) {
                    outcomes[rank] = describe_exception();
                }
            });
        }
        for (auto& thread : threads) thread.join();
        return outcomes;
    }
};
static_assert(GroupMaker<local_maker>);

/// Runs under a sanitizer, where every byte takes longer.
bool is_checked() {
    char const* const name = std::getenv("WEIGHTCAST_SANITIZER");
    return name != nullptr && *name != '\0';
}

std::vector<std::vector<device>> const placements{
    {},
    {device{device_kind::host, 2}},
    {device{device_kind::host, 0}, device{device_kind::host, 3}, cpu_device},
};

BOOST_AUTO_TEST_SUITE(local_communicator)

// --- the laws ---

local_maker maker;

BOOST_AUTO_TEST_CASE(broadcasts_are_exact) {
    for (int const size : {1, 2, 3, 5}) law_broadcast_is_exact(maker, size);
    law_broadcast_is_exact(maker, 2, {device{device_kind::host, 1}});
}
BOOST_AUTO_TEST_CASE(each_rank_has_its_place_and_device) {
    for (auto const& where : placements) law_place_and_state(maker, where);
}
BOOST_AUTO_TEST_CASE(buffers_keep_their_addresses) {
    law_buffers_keep_their_addresses(maker);
    law_buffers_keep_their_addresses(maker, {device{device_kind::host, 1}});
}
BOOST_AUTO_TEST_CASE(groups_of_ranges_are_one_operation) {
    for (int const size : {1, 2, 3, 5}) law_groups_of_ranges(maker, size);
    law_groups_of_ranges(maker, 3, placements[2]);
}
BOOST_AUTO_TEST_CASE(ranks_send_to_each_other) {
    for (int const size : {2, 3, 5}) law_send_and_receive(maker, size);
    law_send_and_receive(maker, 3, placements[2]);
}
BOOST_AUTO_TEST_CASE(reductions_are_exact_and_equal) {
    for (int const size : {1, 2, 3, 5}) law_all_reduce(maker, size);
    law_all_reduce(maker, 3, placements[2]);
    law_all_reduce_at_the_ends(maker);
    law_all_reduce_refuses_other_types(maker);
}
BOOST_AUTO_TEST_CASE(operations_keep_their_order) {
    for (int const size : {1, 2, 3, 5}) law_order_is_kept(maker, size);
    law_order_is_kept(maker, 3, placements[2]);
}
BOOST_AUTO_TEST_CASE(the_laws_hold_whatever_the_pace_of_the_streams) {
    for (std::uint64_t const seed : {1U, 2U}) {
        BOOST_TEST_CONTEXT("delay_seed " << seed) {
            settings_scope const slow{{.poison_freed = true,
                                       .max_delay = std::chrono::microseconds{300},
                                       .delay_seed = seed}};
            law_order_is_kept(maker, 3, placements[2]);
            law_groups_of_ranges(maker, 2, {device{device_kind::host, 1}});
            law_send_and_receive(maker, 3);
            law_sizes_must_agree(maker, 3);
        }
    }
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
    law_a_stuck_rank_is_named(maker, 2);
    law_a_stuck_rank_is_named(maker, 3);
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

// --- making a group ---

using communicator = weightcast::local_communicator;

std::string refusal_of(int size, local_group_options const& options) {
    try {
        local_group const group{size, options};
        return "accepted";
    } catch (bad_argument const& e) {
        return e.what();
    }
}

BOOST_AUTO_TEST_CASE(groups_that_cannot_be_are_refused) {
    BOOST_TEST(refusal_of(0, {}) == "a group of 0 ranks has none");
    BOOST_TEST(refusal_of(-3, {}) == "a group of -3 ranks has none");
    BOOST_TEST(refusal_of(3, {.where = {cpu_device, cpu_device}}) ==
               "a group of 3 ranks was given 2 devices; expected one, or one a rank");
    BOOST_TEST(refusal_of(2, {.where = {device{device_kind::cuda, 0}}}) ==
               "local_communicator: expected cpu or host:i, got cuda:0");
    BOOST_TEST(refusal_of(1, {.where = {cpu_device}}) == "accepted");
}

BOOST_AUTO_TEST_CASE(a_rank_joins_once) {
    local_group const group{2};
    BOOST_TEST(group.size() == 2);
    BOOST_TEST(group.name() == "local");
    for (int const no_rank : {-1, 2}) {
        BOOST_CHECK_EXCEPTION(static_cast<void>(group.join(no_rank)), bad_argument,
                              says({"is no rank of group 'local' of 2"}));
    }
    auto const copy = group;
    {
        auto const first = copy.join(0);
        BOOST_TEST(first.rank() == 0);
        BOOST_CHECK_EXCEPTION(static_cast<void>(group.join(0)), lifecycle_error,
                              says({"rank 0", "joined already"}));
    }
    BOOST_CHECK_THROW(static_cast<void>(group.join(0)), lifecycle_error);
    BOOST_TEST(group.join(1).rank() == 1);
}

BOOST_AUTO_TEST_CASE(a_device_that_is_not_there_is_refused_and_the_rank_may_join_elsewhere) {
    local_group const group{2, {.where = {cpu_device, device{device_kind::host, 99}}}};
    BOOST_CHECK_THROW(static_cast<void>(group.join(1)), bad_argument);
    BOOST_CHECK_THROW(static_cast<void>(group.join(1)), bad_argument);  // not "joined already"
    BOOST_TEST(group.join(0).where() == cpu_device);
}

BOOST_AUTO_TEST_CASE(b02_a_device_without_an_index_is_the_current_one) {
    device_guard<host_runtime> const current{device{device_kind::host, 1}};
    local_group const group{1, {.where = {device{device_kind::host, device::unresolved}}}};
    BOOST_TEST(group.join(0).where() == (device{device_kind::host, 1}));
}

BOOST_AUTO_TEST_CASE(one_thread_may_hold_all_ranks) {
    local_group const group{2};
    auto first = group.join(0);
    auto second = group.join(1);
    rank_memory<communicator> a{first, 100, 1};
    rank_memory<communicator> b{second, 100, 2};
    enqueue_broadcast(first, a, 0, patiently());
    BOOST_TEST(first.outstanding());
    enqueue_broadcast(second, b, 0, patiently());
    finish(first, patiently());
    finish(second, patiently());
    BOOST_TEST(b.holds(pattern(100, 1)));
}

// --- the handle ---

BOOST_AUTO_TEST_CASE(a_moved_handle_is_the_same_communicator) {
    static_assert(!std::is_copy_constructible_v<communicator>);
    static_assert(std::is_nothrow_move_constructible_v<communicator>);
    static_assert(std::is_nothrow_move_assignable_v<communicator>);
    local_group const group{1};
    auto c = group.join(0);
    auto const* const identity = c.identity();
    rank_memory<communicator> memory{c, 100, 1};
    enqueue_broadcast(c, memory, 0, patiently());
    auto moved = std::move(c);
    BOOST_TEST(moved.identity() == identity);
    finish(moved, patiently());
    auto* const self = &moved;
    moved = std::move(*self);
    BOOST_TEST(moved.identity() == identity);
    BOOST_TEST(moved.grace() == 2'000ms);
}

BOOST_AUTO_TEST_CASE(assigning_ends_what_was_there) {
    local_group const old_group{2};
    local_group const new_group{1};
    auto peer = old_group.join(1);
    auto c = old_group.join(0);
    c = new_group.join(0);
    BOOST_TEST(c.size() == 1);
    rank_memory<communicator> memory{peer, 8, 1};
    auto const failed = failure_of([&] {
        enqueue_broadcast(peer, memory, 0, patiently());
        finish(peer, patiently());
    });
    BOOST_TEST(failed.has_value());
    BOOST_TEST(failed->says("rank 0 left the group"));
}

BOOST_AUTO_TEST_CASE(proofs_of_another_communicator_are_refused) {
    local_group const group{2};
    auto mine = group.join(0);
    auto other = group.join(1);
    rank_memory<communicator> memory{other, 8, 1};
    alignment_scope<communicator> scope{other};
    auto view = memory.view();
    auto const read = scope.align(view, already_ready{});
    auto const write = scope.require(view);
    BOOST_CHECK_THROW(mine.broadcast_from(read), contract_violation);
    BOOST_CHECK_THROW(mine.broadcast_into(write, 1), contract_violation);
    BOOST_CHECK_THROW(mine.send_to(read, 1), contract_violation);
    BOOST_CHECK_THROW(mine.receive_from(write, 1), contract_violation);
    BOOST_CHECK_THROW(mine.all_reduce(write, reduction::sum), contract_violation);
    BOOST_TEST(!mine.failed());
    BOOST_TEST(!mine.outstanding());
}

BOOST_AUTO_TEST_CASE(a_call_on_a_group_that_ended_elsewhere_throws_at_once) {
    local_group const group{2};
    auto a = group.join(0);
    auto b = group.join(1);
    rank_memory<communicator> memory{b, 8, 1};
    a.abort();
    BOOST_TEST(b.failed());
    auto const failed = failure_of([&] { enqueue_broadcast(b, memory, 0, patiently("w")); });
    BOOST_TEST_REQUIRE(failed.has_value());
    BOOST_TEST(failed->kind == "peer_error");
    BOOST_TEST(failed->says("payload: tensor 'w'"), failed->text);
    BOOST_TEST(!b.outstanding());
    BOOST_TEST(b.suspect() == 0);
}

// --- names ---

BOOST_AUTO_TEST_CASE(b12_a_second_group_of_a_name_ends_the_first) {
    std::vector<std::string> lines;
    scoped_log_sink const sink{[&](std::string_view line) { lines.emplace_back(line); }};
    local_group const first{2, {.name = "actor"}};
    auto blocked = first.join(0);
    auto idle = first.join(1);
    rank_memory<communicator> memory{blocked, 8, 1};
    enqueue_broadcast(blocked, memory, 0, patiently("w"));

    local_group const second{3, {.name = "actor", .where = {device{device_kind::host, 0}}}};
    auto const failed = failure_of([&] { finish(blocked, patiently()); });
    BOOST_TEST_REQUIRE(failed.has_value());
    BOOST_TEST(failed->kind == "group_aborted");
    BOOST_TEST(failed->says("replaced by local group of 3 ranks on host:0"), failed->text);
    BOOST_TEST(idle.failed());
    BOOST_CHECK_THROW(idle.rethrow_if_failed(), group_aborted);
    BOOST_TEST_REQUIRE(lines.size() == 1U);
    BOOST_TEST(lines[0].find("local group of 2 ranks on cpu") != std::string::npos, lines[0]);
    BOOST_TEST(lines[0].find("local group of 3 ranks on host:0") != std::string::npos, lines[0]);
    BOOST_TEST(second.join(0).rank() == 0);
}

BOOST_AUTO_TEST_CASE(a_replaced_group_takes_no_more_ranks) {
    scoped_log_sink const sink{[](std::string_view) {}};
    local_group const first{2, {.name = "actor"}};
    local_group const second{2, {.name = "actor"}};
    BOOST_CHECK_THROW(static_cast<void>(first.join(0)), group_aborted);
    BOOST_TEST(second.join(0).rank() == 0);
}

BOOST_AUTO_TEST_CASE(b12_other_names_and_no_names_live_side_by_side) {
    std::vector<std::string> lines;
    scoped_log_sink const sink{[&](std::string_view line) { lines.emplace_back(line); }};
    auto const before = group_registry::process().size();
    {
        local_group const a{1, {.name = "a"}};
        local_group const b{1, {.name = "b"}};
        local_group const unnamed{1};
        local_group const unnamed_too{1};
        BOOST_TEST(group_registry::process().size() == before + 2);
        for (auto const* group : {&a, &b, &unnamed, &unnamed_too})
            BOOST_TEST(!group->join(0).failed());
    }
    BOOST_TEST(group_registry::process().size() == before);
    auto handle = std::make_unique<local_group>(1, local_group_options{.name = "a"});
    auto c = handle->join(0);
    handle.reset();  // the communicator still holds the name
    BOOST_TEST(group_registry::process().size() == before + 1);
    BOOST_TEST(lines.empty());
    local_group const again{1, {.name = "a"}};
    BOOST_TEST(c.failed());
    BOOST_TEST(lines.size() == 1U);
}

// --- what messages say ---

std::string failure_text(communicator& c, rank_memory<communicator>& memory) {
    auto const failed = failure_of([&] {
        enqueue_broadcast(c, memory, 0, impatiently("layers.3.w"));
        finish(c, patiently());
    });
    return failed ? failed->kind + ": " + failed->text : "nothing failed";
}

BOOST_AUTO_TEST_CASE(a_rank_that_never_joined_is_named) {
    local_group const group{2, {.name = "rollout"}};
    auto c = group.join(0);
    rank_memory<communicator> memory{c, 12, 1};
    BOOST_TEST(
        failure_text(c, memory) ==
        "timeout: payload: tensor 'layers.3.w': group 'rollout': no byte moved within the stall limit "
        "in a broadcast of 12 bytes from rank 0: rank 1 has not joined the group "
        "(rank 0, suspected rank 1, 0 bytes done)");
}

BOOST_AUTO_TEST_CASE(a_rank_that_does_something_else_is_described) {
    local_group const group{3};
    auto c = group.join(0);
    auto busy = group.join(1);
    auto third = group.join(2);
    rank_memory<communicator> mine{c, 12, 1};
    rank_memory<communicator> theirs{busy, 5, 1};
    enqueue_receive(busy, theirs, 2, patiently());
    while (!busy.outstanding()) std::this_thread::yield();
    std::this_thread::sleep_for(50ms);
    auto const text = failure_text(c, mine);
    BOOST_TEST(text.find("rank 1 is in a receive of 5 bytes from rank 2") != std::string::npos,
               text);
    auto const other = failure_of([&] { finish(busy, patiently()); });
    BOOST_TEST_REQUIRE(other.has_value());
    BOOST_TEST(other->kind == "peer_error");
    BOOST_TEST(other->says("rank 0 gave up: "), other->text);
}

BOOST_AUTO_TEST_CASE(two_ranks_that_both_send_first_are_told_at_once) {
    local_group const group{2};
    auto a = group.join(0);
    auto b = group.join(1);
    rank_memory<communicator> of_a{a, 4, 1};
    rank_memory<communicator> of_b{b, 4, 1};
    enqueue_send(a, of_a, 1, patiently());
    enqueue_send(b, of_b, 0, patiently());
    for (auto* c : {&a, &b}) {
        auto const failed = failure_of([&] { finish(*c, patiently()); });
        BOOST_TEST_REQUIRE(failed.has_value());
        BOOST_TEST(failed->kind == "peer_error");
        BOOST_TEST(failed->says("a send of 4 bytes to rank 1 (called by rank 0)"), failed->text);
        BOOST_TEST(failed->says("a send of 4 bytes to rank 0 (called by rank 1)"), failed->text);
    }
}

BOOST_AUTO_TEST_CASE(a_range_that_differs_is_named) {
    local_group const group{2};
    auto a = group.join(0);
    auto b = group.join(1);
    std::vector<rank_memory<communicator>> of_a;
    std::vector<rank_memory<communicator>> of_b;
    for (std::size_t const bytes : {8U, 16U, 24U}) of_a.emplace_back(a, bytes, 1);
    for (std::size_t const bytes : {8U, 20U, 20U}) of_b.emplace_back(b, bytes, 1);
    broadcast_group(a, of_a, 0, patiently("bucket"));
    broadcast_group(b, of_b, 0, patiently("bucket"));
    auto const failed = failure_of([&] { finish(b, patiently()); });
    static_cast<void>(failure_of([&] { finish(a, patiently()); }));
    BOOST_TEST_REQUIRE(failed.has_value());
    BOOST_TEST(failed->says("range 1 'bucket' of 16 bytes"), failed->text);
    BOOST_TEST(failed->says("range 1 'bucket' of 20 bytes"), failed->text);
}

// --- memory and time ---

BOOST_AUTO_TEST_CASE(an_operation_on_one_tensor_allocates_nothing) {
    local_group const group{2};
    auto a = group.join(0);
    auto b = group.join(1);
    rank_memory<communicator> of_a{a, 4096, 1};
    rank_memory<communicator> of_b{b, 4096, 2};
    auto const op = patiently();
    auto const round = [&] {
        enqueue_broadcast(a, of_a, 0, op);
        enqueue_broadcast(b, of_b, 0, op);
        enqueue_send(a, of_a, 1, op);
        enqueue_receive(b, of_b, 0, op);
        enqueue_all_reduce(a, of_a, dtype::float32, reduction::max, op);
        enqueue_all_reduce(b, of_b, dtype::float32, reduction::max, op);
        for (auto* c : {&a, &b}) {
            auto done = c->core().take_event();
            host_runtime::record(done.ref(), c->core().collective_stream());
            c->wait(done.ref(), op.limits.at, op.label);
            c->core().give_event(std::move(done));
        }
    };
    for (int i = 0; i < 100; ++i) round();
    auto const before = allocation_count();
    for (int i = 0; i < 100; ++i) round();
    BOOST_TEST(allocation_count() - before == 0U);
    BOOST_TEST(before > 0U);  // the counter counts
}

BOOST_AUTO_TEST_CASE(the_ranges_of_many_group_operations_are_kept_until_each_is_over) {
    local_group const group{2};
    auto a = group.join(0);
    auto b = group.join(1);
    std::vector<rank_memory<communicator>> of_a;
    std::vector<rank_memory<communicator>> of_b;
    for (std::uint64_t i = 0; i < 20; ++i) {
        of_a.emplace_back(a, 50 + i, i);
        of_b.emplace_back(b, 50 + i, 777);
    }
    // Each operation is on two other tensors; those of the first rank cannot be over before the second comes.
    auto const broadcast_two = [](communicator& c, std::vector<rank_memory<communicator>>& all,
                                  std::size_t i) {
        auto const op = patiently();
        alignment_scope<communicator> scope{c};
        auto first = all[i].view();
        auto second = all[i + 1].view();
        if (c.rank() == 0) {
            auto group_of_two = scope.send_group(op);
            group_of_two.add(scope.align(first, already_ready{}));
            group_of_two.add(scope.align(second, already_ready{}));
            group_of_two.submit();
        } else {
            auto group_of_two = scope.receive_group(0, op);
            group_of_two.add(scope.require(first));
            group_of_two.add(scope.require(second));
            group_of_two.submit();
        }
    };
    for (std::size_t i = 0; i < 19; ++i) broadcast_two(a, of_a, i);
    for (std::size_t i = 0; i < 19; ++i) broadcast_two(b, of_b, i);
    finish(a, patiently());
    finish(b, patiently());
    for (std::uint64_t i = 0; i < 20; ++i) BOOST_TEST(of_b[i].holds(pattern(50 + i, i)));
}

BOOST_AUTO_TEST_CASE(memory_may_go_as_soon_as_a_failed_wait_returns) {
    // The root aborts at a random point of the copy and gives its memory back at once: had it not waited for the
    // receiver, the copy would read pages that are gone.
    std::mt19937 random{1};
    std::size_t const bytes = std::size_t{is_checked() ? 16U : 48U} << 20U;
    for (int round = 0; round < 12; ++round) {
        local_group const group{2};
        std::vector<std::byte> destination(bytes);
        std::jthread receiver{[&] {
            auto c = group.join(1);
            tensor_view<> view{
                destination.data(), dtype::uint8, {static_cast<std::int64_t>(bytes)}};
            static_cast<void>(failure_of([&] {
                {
                    alignment_scope<communicator> scope{c};
                    c.broadcast_into(scope.require(view), 0, patiently());
                }
                finish(c, patiently());
            }));
        }};
        auto c = group.join(0);
        std::optional<std::vector<std::byte>> source{std::in_place, bytes};
        {
            tensor_view<> const view{
                source->data(), dtype::uint8, {static_cast<std::int64_t>(bytes)}};
            alignment_scope<communicator> scope{c};
            c.broadcast_from(scope.align(view, already_ready{}), patiently());
        }
        dawdle(random, 12ms);
        c.abort();
        static_cast<void>(failure_of([&] { finish(c, patiently()); }));
        source.reset();
        receiver.join();
        BOOST_TEST(c.failed());
    }
}

BOOST_AUTO_TEST_CASE(a_rank_waits_for_copies_however_short_its_stall_limit) {
    // One large copy takes longer than the stall limit, and moves bytes all the time.
    local_group const group{2};
    auto a = group.join(0);
    auto b = group.join(1);
    std::size_t const bytes = std::size_t{is_checked() ? 48U : 256U} << 20U;
    std::vector<std::byte> from(bytes, std::byte{7});
    std::vector<std::byte> to(bytes);
    auto const extent = static_cast<std::int64_t>(bytes);
    tensor_view<> const source{from.data(), dtype::uint8, {extent}};
    tensor_view<> destination{to.data(), dtype::uint8, {extent}};
    // The stall runs from when an operation runs: the first rank may wait for the second one's start.
    operation brief = patiently();
    brief.limits.stall = 20ms;
    {
        alignment_scope<communicator> scope{b};
        b.broadcast_into(scope.require(destination), 0, patiently());
    }
    std::this_thread::sleep_for(1s);  // it is there when the root comes
    {
        alignment_scope<communicator> scope{a};
        a.broadcast_from(scope.align(source, already_ready{}), brief);
    }
    finish(a, patiently());
    finish(b, patiently());
    BOOST_TEST((to == from));
}

BOOST_AUTO_TEST_CASE(ranks_may_hand_in_the_same_memory) {
    local_group const group{2};
    auto a = group.join(0);
    auto b = group.join(1);
    std::vector<float> shared{1.0F, 2.0F, 3.0F};
    auto const kept = shared;
    tensor_view<> view{shared.data(), dtype::float32, {3}};
    {
        alignment_scope<communicator> scope{a};
        a.broadcast_from(scope.align(view, already_ready{}), patiently());
    }
    {
        alignment_scope<communicator> scope{b};
        b.broadcast_into(scope.require(view), 0, patiently());
    }
    finish(a, patiently());
    finish(b, patiently());
    BOOST_TEST(shared == kept, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_state_that_may_still_be_used_is_kept_and_said_so) {
    std::vector<std::string> lines;
    scoped_log_sink const sink{[&](std::string_view line) { lines.emplace_back(line); }};
    local_group const group{2, {.grace = 50ms}};
    static auto* const gate = new std::promise<void>;
    static auto* const done = new std::promise<void>;
    {
        auto c = group.join(0);
        rank_memory<communicator> memory{c, 8, 1};
        // Something else holds the collective stream: the operation cannot be proven to have ended.
        host_runtime::enqueue(c.core().collective_stream(),
                              []() noexcept { gate->get_future().wait(); });
        enqueue_broadcast(c, memory, 1, patiently());
        auto const stream = c.core().collective_stream();
        host_runtime::enqueue(stream, []() noexcept { done->set_value(); });
    }
    BOOST_TEST_REQUIRE(lines.size() == 1U);
    BOOST_TEST(lines[0].find("its memory is kept") != std::string::npos, lines[0]);
    gate->set_value();
    BOOST_TEST((done->get_future().wait_for(60s) == std::future_status::ready));
}

BOOST_AUTO_TEST_CASE(b23_two_hundred_groups_leave_nothing_behind) {
    auto const before = group_registry::process().size();
    auto const cycle = [] {
        local_group const group{2, {.name = "cycle"}};
        auto a = group.join(0);
        auto b = group.join(1);
        rank_memory<communicator> of_a{a, 64, 1};
        rank_memory<communicator> of_b{b, 64, 2};
        enqueue_broadcast(a, of_a, 0, patiently());
        enqueue_broadcast(b, of_b, 0, patiently());
        finish(a, patiently());
        finish(b, patiently());
        return of_b.holds(pattern(64, 1));
    };
    bool all = true;
    for (int i = 0; i < 200; ++i) all = cycle() && all;
    BOOST_TEST(all);
    BOOST_TEST(group_registry::process().size() == before);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
