// SPDX-License-Identifier: Apache-2.0
// What a broadcast leaves behind, and what becomes of one that nobody waited for.
#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>

#include <boost/test/unit_test.hpp>

#include <support/local_ranks.hpp>
#include <support/says.hpp>
#include <weightcast/align/broadcast_aligned.hpp>

namespace weightcast::test {
namespace {

using group_type = local_communicator;

static_assert(!std::is_copy_constructible_v<pending<group_type>>);
static_assert(std::is_nothrow_move_constructible_v<pending<group_type>>);
static_assert(!std::is_move_assignable_v<pending<group_type>>);

std::atomic<int> violations{0};
std::atomic<bool> spoke_of_wait{false};

/// Counts violations instead of ending the process.
class counted_violations {
  public:
    counted_violations() : before_{set_violation_handler(&count)} { violations = 0; }
    counted_violations(counted_violations&&) = delete;
    ~counted_violations() { set_violation_handler(before_); }

  private:
    static void count(char const* sentence) noexcept {
        ++violations;
        spoke_of_wait = std::string_view{sentence}.find("wait(deadline)") != std::string_view::npos;
    }
    violation_handler before_;
};

/// A group of two of which only rank 0 calls anything: its broadcasts stay outstanding.
struct lonely {
    local_group group{2, {.where = {host1}, .grace = std::chrono::seconds{10}}};
    group_type sender = group.join(0);
    group_type other = group.join(1);
    placed_bytes memory{host1, 1000, 1};
    operation op = patiently();

    pending<group_type> send() {
        return broadcast_aligned(sender, memory.view(), already_ready{}, op);
    }
};

BOOST_AUTO_TEST_SUITE(pending_suite)

BOOST_AUTO_TEST_CASE(after_wait_the_source_may_change) {
    counted_violations const counted;
    auto const said = run_ranks(2, host1, [](group_type& c) -> std::string {
        placed_bytes memory{host1, 200'000, 1};
        for (std::uint64_t round = 0; round < 20; ++round) {
            if (c.rank() == 0) {
                memory.write(pattern(200'000, round));
                auto sent =
                    broadcast_aligned(c, memory.view(), produced_anywhere{soon()}, patiently());
                sent.wait(soon());
                memory.write(contents(200'000));
            } else {
                auto view = memory.view();
                receive_into(c, view, 0, patiently());
                if (memory.read() != pattern(200'000, round))
                    return "round " + std::to_string(round) + " is wrong";
            }
        }
        return "";
    });
    check_ranks(said, "wait");
    BOOST_TEST(violations == 0);
}

BOOST_AUTO_TEST_CASE(on_a_stream_given_to_then_the_source_may_change) {
    counted_violations const counted;
    auto const said = run_ranks(2, host1, [](group_type& c) -> std::string {
        placed_bytes memory{host1, 200'000, 1};
        contents const zero(200'000);
        for (std::uint64_t round = 0; round < 10; ++round) {
            if (c.rank() == 0) {
                memory.write(pattern(200'000, round));
                auto sent =
                    broadcast_aligned(c, memory.view(), produced_anywhere{soon()}, patiently());
                sent.then(memory.stream());  // the caller does not wait: the stream does
                runtime::copy(memory.data(), host1, zero.data(), cpu_device, zero.size(),
                              memory.stream());
            } else {
                std::this_thread::sleep_for(std::chrono::milliseconds{2});
                auto view = memory.view();
                receive_into(c, view, 0, patiently());
                if (memory.read() != pattern(200'000, round))
                    return "round " + std::to_string(round) + " is wrong";
            }
        }
        settle(memory.stream());
        return "";
    });
    check_ranks(said, "then");
    BOOST_TEST(violations == 0);
}

BOOST_AUTO_TEST_CASE(ready_tells_and_counts_as_waited_for_once_it_is) {
    counted_violations const counted;
    lonely ranks;
    {
        auto sent = ranks.send();
        BOOST_TEST(!sent.ready());
        std::jthread const receiver{[&] {
            placed_bytes target{host1, contents(1000)};
            auto view = target.view();
            receive_into(ranks.other, view, 0, ranks.op);
        }};
        while (!sent.ready()) std::this_thread::yield();
    }
    BOOST_TEST(violations == 0);
    BOOST_TEST(!ranks.sender.failed());
    {
        auto sent = ranks.send();
        BOOST_TEST(!sent.ready());
    }
    BOOST_TEST(violations == 1);  // asked, and told that it is not done
}

BOOST_AUTO_TEST_CASE(one_dropped_while_outstanding_aborts_the_group_and_is_a_violation) {
    counted_violations const counted;
    lonely ranks;
    { auto const sent = ranks.send(); }
    BOOST_TEST(violations == 1);
    BOOST_TEST(spoke_of_wait.load());
    BOOST_TEST(ranks.sender.failed());
    placed_bytes target{host1, contents(1000)};
    auto view = target.view();
    BOOST_CHECK_EXCEPTION(receive_into(ranks.other, view, 0, ranks.op), peer_error,
                          says("rank 0 aborted"));
}

BOOST_AUTO_TEST_CASE(one_dropped_when_its_work_is_done_is_a_violation_and_the_group_lives) {
    counted_violations const counted;
    auto group = local_group{1, {.where = {host1}}}.join(0);
    settled const group_done{group};
    placed_bytes const memory{host1, 1000, 1};
    {
        auto const sent = broadcast_aligned(group, memory.view(), already_ready{}, patiently());
        settle(group.core().collective_stream());
    }
    BOOST_TEST(violations == 1);
    BOOST_TEST(!group.failed());
    broadcast_aligned(group, memory.view(), already_ready{}, patiently()).wait(soon());
    BOOST_TEST(violations == 1);
}

BOOST_AUTO_TEST_CASE(one_moved_from_has_nothing_to_wait_for) {
    counted_violations const counted;
    auto group = local_group{1, {.where = {host1}}}.join(0);
    settled const group_done{group};
    placed_bytes const memory{host1, 1000, 1};
    weightcast::stream<runtime> const stream{host1};
    {
        auto first = broadcast_aligned(group, memory.view(), already_ready{}, patiently());
        auto second = std::move(first);
        BOOST_CHECK_EXCEPTION(first.wait(soon()), contract_violation, says("moved from"));
        BOOST_CHECK_THROW(first.then(stream.ref()), contract_violation);
        BOOST_CHECK_THROW(static_cast<void>(first.ready()), contract_violation);
        second.wait(soon());
        auto const third = std::move(second);  // waited for already: so is what it was moved to
    }
    BOOST_TEST(violations == 0);
    {
        auto sent = broadcast_aligned(group, memory.view(), already_ready{}, patiently());
        auto const dropped = std::move(sent);
    }
    BOOST_TEST(violations == 1);
}

BOOST_AUTO_TEST_CASE(
    a_wait_that_meets_its_deadline_aborts_names_the_tensor_and_counts_as_waited_for) {
    counted_violations const counted;
    lonely ranks;
    {
        auto sent = ranks.send();
        BOOST_CHECK_EXCEPTION(sent.wait(at_once()), timeout,
                              says({"payload: tensor 'w'", "rank 0", "aborted"}));
    }
    BOOST_TEST(violations == 0);
    BOOST_TEST(ranks.sender.failed());
    BOOST_TEST(runtime::query(ranks.sender.core().collective_stream()));  // the source is free
    BOOST_CHECK_THROW(static_cast<void>(ranks.send()), error);
}

BOOST_AUTO_TEST_CASE(an_aborted_wait_counts_as_waited_for) {
    counted_violations const counted;
    lonely ranks;
    {
        auto sent = ranks.send();
        std::jthread const killer{[&] {
            std::this_thread::sleep_for(std::chrono::milliseconds{20});
            ranks.sender.abort();
        }};
        BOOST_CHECK_THROW(sent.wait(soon()), group_aborted);
    }
    BOOST_TEST(violations == 0);
}

BOOST_AUTO_TEST_CASE(a_failed_peer_ends_the_wait) {
    counted_violations const counted;
    lonely ranks;
    auto sent = ranks.send();
    ranks.other.abort();
    BOOST_CHECK_EXCEPTION(sent.wait(soon()), peer_error, says({"tensor 'w'", "suspected rank 1"}));
    BOOST_CHECK_THROW(sent.wait(soon()), peer_error);  // again: the same answer
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weightcast::test
