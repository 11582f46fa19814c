// SPDX-License-Identifier: Apache-2.0
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <weightcast/plan/group_mailbox.hpp>

#include <support/local_ranks.hpp>

namespace {

using namespace weightcast;
using namespace weightcast::test;
using C = local_communicator;
using mailbox = weightcast::group_mailbox<C>;

std::vector<std::vector<device>> const placements{
    {cpu_device},
    {device{device_kind::host, 1}},
    {device{device_kind::host, 0}, cpu_device, device{device_kind::host, 2}}};

void check(std::vector<std::string> const& said) {
    for (std::size_t rank = 0; rank < said.size(); ++rank) {
        BOOST_TEST(said[rank] == "", "rank " << rank << ": " << said[rank]);
    }
}

BOOST_AUTO_TEST_SUITE(group_mailbox)

BOOST_AUTO_TEST_CASE(a_message_reaches_every_rank_whatever_its_length) {
    for (auto const& where : placements) {
        check(run_ranks(3, where, [](C& c) -> std::string {
            mailbox box{c};
            for (std::size_t const bytes : {0U, 1U, 7U, 4096U, 1'000'003U}) {
                for (int root = 0; root < 3; ++root) {
                    auto const sent = pattern(bytes, bytes + static_cast<std::uint64_t>(root));
                    auto const mine = c.rank() == root ? sent : contents{};
                    auto const got = box.broadcast(mine, root, patient(), phase::preflight);
                    if (got != sent) return std::to_string(bytes) + " bytes are wrong";
                }
            }
            return "";
        }));
    }
}

BOOST_AUTO_TEST_CASE(only_the_roots_message_counts) {
    check(run_ranks(2, [](C& c) -> std::string {
        mailbox box{c};
        auto const mine = pattern(c.rank() == 0 ? 10 : 99, static_cast<std::uint64_t>(c.rank()));
        return unless(box.broadcast(mine, 0, patient(), phase::vote) == pattern(10, 0),
                      "another's message");
    }));
}

BOOST_AUTO_TEST_CASE(without_objections_all_agree) {
    for (auto const& where : placements) {
        check(run_ranks(3, where, [](C& c) {
            mailbox box{c};
            return unless(!box.agree(std::nullopt, patient(), phase::vote),
                          "an objection from nowhere");
        }));
    }
}

BOOST_AUTO_TEST_CASE(the_lowest_rank_that_objects_is_heard_by_all) {
    for (int objectors = 1; objectors < 8; ++objectors) {
        check(run_ranks(3, [objectors](C& c) -> std::string {
            mailbox box{c};
            std::optional<std::string> mine;
            if ((objectors >> c.rank()) & 1) mine = "rank " + std::to_string(c.rank()) + " says no";
            int const lowest = (objectors & 1) ? 0 : (objectors & 2) ? 1 : 2;
            auto const heard = box.agree(mine, patient(), phase::preflight);
            if (!heard) return "nobody objected";
            if (heard->rank != lowest) return "rank " + std::to_string(heard->rank) + " is heard";
            return unless(heard->reason == "rank " + std::to_string(lowest) + " says no",
                          heard->reason);
        }));
    }
}

BOOST_AUTO_TEST_CASE(an_objection_may_have_no_words) {
    check(run_ranks(2, [](C& c) -> std::string {
        mailbox box{c};
        std::optional<std::string> mine;
        if (c.rank() == 1) mine = "";
        auto const heard = box.agree(mine, patient(), phase::vote);
        return unless(heard && heard->rank == 1 && heard->reason.empty(), "not heard");
    }));
}

BOOST_AUTO_TEST_CASE(the_group_is_usable_after_a_refusal) {
    check(run_ranks(3, [](C& c) -> std::string {
        mailbox box{c};
        for (int round = 0; round < 30; ++round) {
            std::optional<std::string> mine;
            if (round % 3 == c.rank()) mine = "no";
            auto const heard = box.agree(mine, patient(), phase::vote);
            if (!heard || heard->rank != round % 3)
                return "wrong vote in round " + std::to_string(round);
            if (box.agree(std::nullopt, patient(), phase::commit)) return "objection without one";
        }
        return unless(!c.failed(), "failed");
    }));
}

BOOST_AUTO_TEST_CASE(flags_of_any_rank_are_set_on_all) {
    check(run_ranks(3, [](C& c) -> std::string {
        mailbox box{c};
        std::vector<std::uint8_t> flags(10, 0);
        flags[static_cast<std::size_t>(c.rank())] = 1;
        flags[9] = c.rank() == 2 ? 200 : 0;
        box.any_of(flags, patient(), phase::preflight);
        std::vector<std::uint8_t> const expected{1, 1, 1, 0, 0, 0, 0, 0, 0, 1};
        if (flags != expected) return "other flags";
        std::vector<std::uint8_t> none;
        box.any_of(none, patient(), phase::preflight);
        return unless(none.empty(), "flags from nowhere");
    }));
}

BOOST_AUTO_TEST_CASE(b60_a_length_over_the_limit_takes_no_memory) {
    // A root that lies about its length: what the receivers are told is all that they know.
    check(run_ranks(2, [](C& c) -> std::string {
        if (c.rank() == 0) {
            std::uint64_t const length = mailbox::message_limit + 1;
            auto const bytes = std::as_bytes(std::span{&length, 1});
            std::vector<std::byte> copy(bytes.begin(), bytes.end());
            tensor_view<> const view{copy.data(), dtype::uint8, {8}};
            alignment_scope<C> scope{c};
            c.broadcast_from(scope.align(view, already_ready{}), patiently());
            finish(c, patiently());
            return "";
        }
        mailbox box{c};
        try {
            static_cast<void>(box.broadcast({}, 0, patient(), phase::preflight));
        } catch (bad_input const& e) {
            std::string const text = e.what();
            return unless(text.find("over the limit") != std::string::npos, text);
        }
        return "believed";
    }));
}

BOOST_AUTO_TEST_CASE(a_rank_that_does_not_answer_ends_the_wait) {
    check(run_ranks(2, [](C& c) -> std::string {
        mailbox box{c};
        static_cast<void>(box.agree(std::nullopt, patient(), phase::vote));
        if (c.rank() == 1) {
            std::this_thread::sleep_for(std::chrono::seconds{1});
            return "";
        }
        op_limits limits = patient();
        limits.stall = std::chrono::milliseconds{200};
        try {
            static_cast<void>(box.agree(std::nullopt, limits, phase::vote));
        } catch (timeout const& e) {
            std::string const text = e.what();
            bool const named = text.find("vote: group 'local'") == 0 && e.facts().suspect == 1;
            return unless(named, text);
        }
        return "no timeout";
    }));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
