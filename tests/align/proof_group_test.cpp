// SPDX-License-Identifier: Apache-2.0
// Groups of proofs: one operation for many tensors, slots that stay until submit, and what a group left undone.
#include <memory>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <support/local_ranks.hpp>
#include <support/says.hpp>
#include <weightcast/align/alignment_scope.hpp>

namespace weightcast::test {
namespace {

using group_type = local_communicator;
using scope_type = alignment_scope<group_type>;

/// Tensors of those sizes and seeds on one device.
std::vector<std::unique_ptr<placed_bytes>> many(device where, std::vector<std::size_t> const& sizes,
                                                std::uint64_t seed) {
    std::vector<std::unique_ptr<placed_bytes>> all;
    for (auto const size : sizes)
        all.push_back(std::make_unique<placed_bytes>(where, size, seed++));
    return all;
}

BOOST_AUTO_TEST_SUITE(proof_group)

BOOST_AUTO_TEST_CASE(many_tensors_travel_as_one_operation) {
    std::vector<std::size_t> const sizes{1000, 0, 1, 70'000, 8};
    auto const said = run_ranks(3, host1, [&](group_type& c) -> std::string {
        scope_type scope{c};
        if (c.rank() == 1) {
            auto const sent = many(host1, sizes, 100);
            auto group = scope.send_group(patiently("window"));
            for (auto const& t : sent) group.add(scope.align(t->view()));
            group.submit();
            finish(c, patiently());
            return unless(group.ranges().empty(), "ranges are left after submit");
        }
        auto const received = many(host1, sizes, 200);
        auto group = scope.receive_group(1, patiently("window"));
        for (auto const& t : received) {
            auto view = t->view();
            group.add(scope.require(view, {phase::payload, "t"}));
        }
        group.submit();
        finish(c, patiently());
        for (std::size_t i = 0; i < sizes.size(); ++i) {
            if (received[i]->read() != pattern(sizes[i], 100 + i))
                return "tensor " + std::to_string(i) + " is wrong";
        }
        return "";
    });
    check_ranks(said, "one operation");
}

BOOST_AUTO_TEST_CASE(a_group_keeps_its_slots_until_submit) {
    auto const first = placed_bytes{host0, 500, 1};
    auto const second = placed_bytes{host0, 500, 2};
    auto group_ranks = local_group{1, {.where = {host1}}}.join(0);
    settled const group_ranks_done{group_ranks};
    scope_type scope{group_ranks, {.slots = 2}};
    auto group = scope.send_group(patiently());
    group.add(scope.align(first.view()));
    group.add(scope.align(second.view()));
    BOOST_TEST(group.ranges().size() == 2U);
    BOOST_TEST(group.ranges()[0].data != group.ranges()[1].data);
    settle(group_ranks.core().copy_stream());
    auto const* const bytes = static_cast<std::byte const*>(group.ranges()[0].data);
    BOOST_TEST((contents{bytes, bytes + 500} == first.read()));
    group.submit();
    BOOST_TEST(scope.align(first.view()).staged());
}

BOOST_AUTO_TEST_CASE(out_of_slots_a_group_submits_and_begins_anew) {
    constexpr std::size_t count = 7;
    auto const said = run_ranks(2, host1, [&](group_type& c) -> std::string {
        if (c.rank() == 0) {
            auto const sent = many(host0, std::vector<std::size_t>(count, 300), 10);
            scope_type scope{c, {.slots = 3}};
            auto group = scope.send_group(patiently());
            for (auto const& t : sent) {
                group.add(scope.align(t->view()));
                if (group.ranges().size() > 3)
                    return "a group holds more tensors than there are slots";
            }
            group.submit();
            finish(c, patiently());
            return unless(runtime::memory(host1).active <= 3 * 300 + count * 300,
                          "more slots than allowed");
        }
        // the same cut: three, three, one
        auto const received = many(host1, std::vector<std::size_t>(count, 300), 900);
        scope_type scope{c};
        auto group = scope.receive_group(0, patiently());
        for (std::size_t i = 0; i < count; ++i) {
            auto view = received[i]->view();
            group.add(scope.require(view));
            if (i % 3 == 2) group.submit();
        }
        group.submit();
        finish(c, patiently());
        for (std::size_t i = 0; i < count; ++i) {
            if (received[i]->read() != pattern(300, 10 + i))
                return "tensor " + std::to_string(i) + " is wrong";
        }
        return "";
    });
    check_ranks(said, "out of slots");
}

BOOST_AUTO_TEST_CASE(strided_destinations_are_unpacked_after_the_operation) {
    auto const said = run_ranks(2, host1, [&](group_type& c) -> std::string {
        scope_type scope{c, {.slots = 4}};
        if (c.rank() == 0) {
            auto const sent = many(host1, {48, 60}, 20);
            auto group = scope.send_group(patiently());
            for (auto const& t : sent) group.add(scope.align(t->view()));
            group.submit();
            finish(c, patiently());
            return "";
        }
        placed_bytes first{host1, contents(500)};
        placed_bytes second{host1, contents(500)};
        auto one = first.view(dtype::float64, {3, 2}, {7, 3});
        auto two = second.view(dtype::int32, {5, 3}, {17, 2});
        {
            auto group = scope.receive_group(0, patiently());
            group.add(scope.require(one));
            group.add(scope.require(two));
            group.submit();
        }
        settle(c.core().unpack_stream());
        if (gathered(one) != pattern(48, 20)) return "the first is wrong";
        return unless(gathered(two) == pattern(60, 21), "the second is wrong");
    });
    check_ranks(said, "strided");
}

BOOST_AUTO_TEST_CASE(a_group_left_without_submit_moves_nothing_and_gives_its_slots_back) {
    auto const memory = placed_bytes{host0, 500, 30};
    placed_bytes target{host1, contents(500, std::byte{0x77})};
    auto ranks = local_group{1, {.where = {host1}}}.join(0);
    settled const ranks_done{ranks};
    {
        scope_type scope{ranks, {.slots = 1}};
        for (int i = 0; i < 3; ++i) {
            auto group = scope.send_group(patiently());
            group.add(scope.align(memory.view()));
        }
        for (int i = 0; i < 3; ++i) {
            auto strided = target.view(dtype::int32, {5, 3}, {17, 2});
            auto group = scope.receive_group(0, patiently());
            group.add(scope.require(strided));
        }
        BOOST_TEST(!ranks.outstanding());
    }
    settle(ranks.core().unpack_stream());
    BOOST_TEST((target.read() == contents(500, std::byte{0x77})));
    BOOST_TEST(runtime::memory(host1).active == 500U);
}

BOOST_AUTO_TEST_CASE(an_empty_group_is_no_operation) {
    auto ranks = local_group{2, {.where = {host1}}}.join(0);
    scope_type scope{ranks};
    auto group = scope.send_group(patiently());
    group.submit();
    group.submit();
    BOOST_TEST(!ranks.outstanding());
}

BOOST_AUTO_TEST_CASE(what_a_group_refuses) {
    auto const memory = placed_bytes{host1, 500, 40};
    auto first = local_group{1, {.where = {host1}}}.join(0);
    settled const first_done{first};
    auto second = local_group{1, {.where = {host1}}}.join(0);
    settled const second_done{second};
    scope_type scope{first};
    scope_type foreign{second};
    auto group = scope.send_group(patiently());
    BOOST_CHECK_EXCEPTION(static_cast<void>(scope.send_group(patiently())), contract_violation,
                          says("one open group"));
    BOOST_CHECK_EXCEPTION(static_cast<void>(scope.receive_group(0, patiently())),
                          contract_violation, says("one open group"));
    BOOST_CHECK_EXCEPTION(group.add(foreign.align(memory.view())), contract_violation,
                          says("another communicator"));
    auto const staged_elsewhere = placed_bytes{host0, 500, 41};
    auto const proof = scope.align(staged_elsewhere.view());
    group.add(proof);
    BOOST_CHECK_EXCEPTION(static_cast<void>(foreign.share(proof)), contract_violation,
                          says("before it is added"));
    group.submit();
    auto const again = foreign.send_group(patiently());  // the refused ones left no group open
    BOOST_TEST(again.ranges().empty());
}

BOOST_AUTO_TEST_CASE(a_root_that_is_no_rank_is_refused_and_the_group_stays_usable) {
    placed_bytes target{host1, 500, 50};
    auto ranks = local_group{1, {.where = {host1}}}.join(0);
    settled const ranks_done{ranks};
    scope_type scope{ranks, {.slots = 1}};
    auto strided = target.view(dtype::int32, {5, 3}, {17, 2});
    for (int const root : {-1, 1, 100}) {
        auto group = scope.receive_group(root, patiently());
        group.add(scope.require(strided));
        BOOST_CHECK_EXCEPTION(group.submit(), bad_argument, says({"root", std::to_string(root)}));
    }
    BOOST_TEST(!ranks.failed());
    BOOST_TEST(scope.require(strided).staged());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weightcast::test
