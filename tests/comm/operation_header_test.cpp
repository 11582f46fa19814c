// SPDX-License-Identifier: Apache-2.0
#include <boost/test/unit_test.hpp>

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include <weightcast/comm/detail/gloo_account.hpp>
#include <weightcast/comm/detail/operation_header.hpp>

BOOST_AUTO_TEST_SUITE(operation_header)

namespace wc = weightcast;
namespace detail = weightcast::detail;
using kind = detail::operation_kind;

namespace {

using message = std::array<std::byte, detail::most_control_bytes>;

std::vector<wc::transfer_range> ranges_of(std::vector<std::size_t> const& sizes) {
    static std::array<std::byte, 8192> memory{};
    std::vector<wc::transfer_range> ranges;
    for (auto const bytes : sizes) {
        ranges.push_back(
            {memory.data(), bytes,
             wc::operation_label{wc::phase::payload, "t" + std::to_string(ranges.size())}});
    }
    return ranges;
}
detail::operation_header header_of(kind what, std::vector<wc::transfer_range> const& ranges) {
    detail::operation_header header{.kind = what};
    detail::fill_sizes(header, ranges);
    return header;
}
/// What rank 1 says to rank 0's message.
std::string verdict(detail::operation_header const& theirs,
                    std::vector<std::size_t> const& their_sizes,
                    detail::operation_header const& mine,
                    std::vector<std::size_t> const& my_sizes) {
    message bytes{};
    detail::write_header(bytes.data(), theirs, ranges_of(their_sizes));
    return detail::disagreement(bytes.data(), 0, mine, 1, ranges_of(my_sizes)).value_or("");
}
bool has(std::string const& text, std::string const& part) {
    return text.find(part) != std::string::npos;
}

}  // namespace

BOOST_AUTO_TEST_CASE(equal_calls_agree) {
    for (auto const& sizes : std::vector<std::vector<std::size_t>>{
             {}, {0}, {12}, {0, 0}, {1, 2, 3}, std::vector<std::size_t>(500, 7)}) {
        auto const header = header_of(kind::broadcast, ranges_of(sizes));
        BOOST_TEST(verdict(header, sizes, header, sizes) == "");
    }
}

BOOST_AUTO_TEST_CASE(differences_are_said_with_both_sides) {
    auto const mine = header_of(kind::broadcast, ranges_of({12}));
    auto theirs = header_of(kind::broadcast, ranges_of({16}));
    auto why = verdict(theirs, {16}, mine, {12});
    BOOST_TEST(has(why, "rank 0 calls a broadcast of 16 bytes"), why);
    BOOST_TEST(has(why, "rank 1 calls a broadcast of 12 bytes"), why);

    theirs = mine;
    theirs.root = 1;
    why = verdict(theirs, {12}, mine, {12});
    BOOST_TEST(has(why, "from rank 1"), why);
    BOOST_TEST(has(why, "from rank 0"), why);

    theirs = mine;
    theirs.kind = kind::all_reduce;
    theirs.type = wc::dtype::float32;
    theirs.how = wc::reduction::max;
    why = verdict(theirs, {12}, mine, {12});
    BOOST_TEST(has(why, "an all-reduce (max) of 12 bytes of float32"), why);

    auto reduce = theirs;
    reduce.how = wc::reduction::min;
    why = verdict(theirs, {12}, reduce, {12});
    BOOST_TEST((has(why, "(max)") && has(why, "(min)")), why);

    theirs = mine;
    theirs.sequence = 5;
    why = verdict(theirs, {12}, mine, {12});
    BOOST_TEST(has(why, "operation 5"), why);

    detail::operation_header letter{.kind = kind::send, .root = 0, .peer = 1};
    detail::fill_sizes(letter, ranges_of({12}));
    why = verdict(letter, {12}, mine, {12});
    BOOST_TEST(has(why, "a message of 12 bytes from rank 0 to rank 1"), why);
}

BOOST_AUTO_TEST_CASE(the_first_range_that_differs_is_named) {
    auto const mine = header_of(kind::broadcast, ranges_of({8, 16, 24}));
    auto why =
        verdict(header_of(kind::broadcast, ranges_of({8, 17, 24})), {8, 17, 24}, mine, {8, 16, 24});
    BOOST_TEST(has(why, "range 1 't1' has 17 bytes for the one, 16 for the other"), why);
    // equal sums, another order
    why =
        verdict(header_of(kind::broadcast, ranges_of({16, 8, 24})), {16, 8, 24}, mine, {8, 16, 24});
    BOOST_TEST(has(why, "range 0 't0'"), why);
    why = verdict(header_of(kind::broadcast, ranges_of({8, 40})), {8, 40}, mine, {8, 16, 24});
    BOOST_TEST(has(why, "in 2 ranges"), why);
    // beyond what a message lists, the digest still tells them apart
    std::vector<std::size_t> many(300, 4);
    auto others = many;
    std::swap(others[250], others[299]);
    others[250] = 5;
    others[299] = 3;
    why = verdict(header_of(kind::broadcast, ranges_of(others)), others,
                  header_of(kind::broadcast, ranges_of(many)), many);
    BOOST_TEST(has(why, "do not call the same"), why);
}

BOOST_AUTO_TEST_CASE(nonsense_is_no_header) {
    auto const mine = header_of(kind::broadcast, ranges_of({12}));
    message bytes{};
    auto const say = [&] {
        return detail::disagreement(bytes.data(), 3, mine, 1, ranges_of({12})).value_or("");
    };
    BOOST_TEST(has(say(), "rank 3 sent no header"));
    bytes.fill(std::byte{0xFF});
    BOOST_TEST(has(say(), "rank 3 sent no header"));
    detail::write_header(bytes.data(), mine, ranges_of({12}));
    auto liar = mine;
    liar.listed = 0xFFFFFFFF;  // would read past the message
    std::memcpy(bytes.data(), &liar, sizeof liar);
    BOOST_TEST(has(say(), "rank 3 sent no header"));
}

BOOST_AUTO_TEST_CASE(small_payloads_travel_in_the_message) {
    for (auto const& [bytes, eager] :
         {std::pair<std::size_t, int>{0, 1}, {1, 1}, {4096, 1}, {4097, 0}}) {
        auto const header = header_of(kind::broadcast, ranges_of({bytes}));
        BOOST_TEST(header.eager == eager);
        BOOST_TEST(detail::control_bytes(header) <= detail::most_control_bytes);
    }
    auto const widest = header_of(kind::broadcast, ranges_of(std::vector<std::size_t>(128, 32)));
    BOOST_TEST(detail::control_bytes(widest) == detail::most_control_bytes);
    auto const more = header_of(kind::broadcast, ranges_of(std::vector<std::size_t>(4096, 1)));
    BOOST_TEST(detail::control_bytes(more) == detail::most_control_bytes);

    std::array<char, 6> const from{'a', 'b', 'c', 'd', 'e', 'f'};
    std::array<char, 6> to{};
    auto const cut = [](auto& memory) {
        return std::vector<wc::transfer_range>{{const_cast<char*>(memory.data()), 2, {}},
                                               {nullptr, 0, {}},
                                               {const_cast<char*>(memory.data()) + 2, 4, {}}};
    };
    message bytes{};
    auto header = header_of(kind::broadcast, cut(from));
    detail::gather(detail::write_header(bytes.data(), header, cut(from)), cut(from));
    detail::scatter(detail::payload_of(bytes.data()), cut(to));
    BOOST_TEST(std::string(to.begin(), to.end()) == "abcdef");
}

// --- what ranks have done with each other ---

namespace {
detail::operation_header letter(int from, int to) {
    return {.kind = kind::send, .root = from, .peer = to};
}
}  // namespace

BOOST_AUTO_TEST_CASE(operations_are_numbered_by_kind_pair_and_direction) {
    detail::gloo_account account{3};
    detail::operation_header const collective{.kind = kind::broadcast};
    BOOST_TEST(account.next(collective, 0) == 0U);
    account.completed(collective, 0);
    account.completed({.kind = kind::all_reduce}, 0);
    BOOST_TEST(account.next(collective, 0) == 2U);
    account.completed(letter(0, 1), 0);
    account.completed(letter(0, 1), 0);
    account.completed(letter(2, 0), 0);
    BOOST_TEST(account.next(letter(0, 1), 0) == 2U);
    BOOST_TEST(account.next(letter(1, 0), 0) == 0U);
    BOOST_TEST(account.next(letter(2, 0), 0) == 1U);
    BOOST_TEST(account.next(letter(0, 2), 0) == 0U);
    BOOST_TEST(account.has_sent());
    auto const all = account.snapshot();
    BOOST_TEST(all.collectives == 2U);
    BOOST_TEST(all.sent == (std::vector<std::uint64_t>{0, 2, 0}), boost::test_tools::per_element());
    BOOST_TEST(all.received == (std::vector<std::uint64_t>{0, 0, 1}),
               boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(one_that_leaves_is_quiet_once_all_of_its_is_done) {
    detail::gloo_account account{3};
    detail::operation_header const collective{.kind = kind::broadcast};
    account.leaves({.rank = 1, .collectives = 1, .sent = 1, .received = 1});
    BOOST_TEST(account.take_quiet().empty());
    BOOST_TEST(account.completed(collective, 0));
    BOOST_TEST(account.take_quiet().empty());
    account.completed(letter(1, 0), 0);
    BOOST_TEST(account.take_quiet().empty());
    account.completed(letter(0, 1), 0);
    BOOST_TEST(account.take_quiet() == (std::vector<int>{1}), boost::test_tools::per_element());
    BOOST_TEST(account.take_quiet().empty());  // said once
    BOOST_TEST(!account.completed(collective, 0));
}

BOOST_AUTO_TEST_CASE(only_what_the_departed_did_not_do_is_missing) {
    detail::gloo_account account{3};
    detail::operation_header const collective{.kind = kind::broadcast};
    BOOST_TEST(!account.has_gone(1));  // it never said that it would
    account.leaves({.rank = 1, .collectives = 1, .sent = 1, .received = 0});
    BOOST_TEST(!account.missing(collective, 0).has_value());  // it waits for us to be quiet
    BOOST_TEST(account.has_gone(1));
    BOOST_TEST(!account.missing(collective, 0).has_value());  // operation 0: it did its part
    BOOST_TEST(!account.missing(letter(1, 0), 0).has_value());
    BOOST_TEST(account.missing(letter(0, 1), 0).value_or(-1) == 1);
    BOOST_TEST(!account.missing(letter(0, 2), 0).has_value());  // of others
    account.completed(collective, 0);
    account.completed(letter(1, 0), 0);
    BOOST_TEST(account.missing(collective, 0).value_or(-1) == 1);
    BOOST_TEST(account.missing(letter(1, 0), 0).value_or(-1) == 1);
    // a message with ranks that do not exist changes nothing
    account.leaves({.rank = 7, .collectives = 0, .sent = 0, .received = 0});
    account.leaves({.rank = -1, .collectives = 0, .sent = 0, .received = 0});
    BOOST_TEST(!account.has_gone(7));
    BOOST_TEST(!account.has_gone(-1));
}

BOOST_AUTO_TEST_SUITE_END()
