// SPDX-License-Identifier: Apache-2.0
#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <support/says.hpp>
#include <weightcast/comm/detail/group_failure.hpp>
#include <weightcast/comm/detail/key_store.hpp>
#include <weightcast/comm/detail/rendezvous_messages.hpp>
#include <weightcast/comm/detail/wire.hpp>

BOOST_AUTO_TEST_SUITE(rendezvous_wire)

namespace wc = weightcast;
namespace detail = weightcast::detail;
using weightcast::test::says;

BOOST_AUTO_TEST_CASE(numbers_and_texts_come_back) {
    std::string const text("a\0b", 3);
    detail::message_writer writer;
    writer.number(std::uint8_t{255}).number(std::int32_t{-2}).number(std::uint32_t{0xDEADBEEF});
    writer.number(std::numeric_limits<std::int64_t>::min()).number(std::uint64_t{1} << 63U);
    writer.text(text).text("");
    detail::message_reader reader{writer.bytes()};
    BOOST_TEST(reader.number<std::uint8_t>() == 255);
    BOOST_TEST(reader.number<std::int32_t>() == -2);
    BOOST_TEST(reader.number<std::uint32_t>() == 0xDEADBEEF);
    BOOST_TEST(reader.number<std::int64_t>() == std::numeric_limits<std::int64_t>::min());
    BOOST_TEST(reader.number<std::uint64_t>() == std::uint64_t{1} << 63U);
    BOOST_TEST(reader.text(3) == text);
    BOOST_TEST(reader.text(0).empty());
    BOOST_CHECK_NO_THROW(reader.expect_end());
    BOOST_CHECK_THROW(reader.number<std::uint8_t>(), wc::bad_input);
}

BOOST_AUTO_TEST_CASE(the_bytes_are_little_endian) {
    BOOST_TEST(detail::message_writer{}.number(std::uint32_t{0x01020304}).bytes() ==
               "\x04\x03\x02\x01");
}

BOOST_AUTO_TEST_CASE(lengths_are_checked_before_they_are_believed) {
    auto const length = [](std::uint32_t claimed) {
        return detail::message_writer{}.number(claimed).bytes() + "abc";
    };
    BOOST_TEST(detail::message_reader{length(3)}.text(3) == "abc");
    for (std::uint32_t const claimed : {4U, 1000U, 0xFFFFFFFFU, 0x7FFFFFFFU}) {
        auto const bytes = length(claimed);
        BOOST_CHECK_THROW(detail::message_reader{bytes}.text(0xFFFFFFFFU), wc::bad_input);
    }
    auto const bytes = length(3);
    BOOST_CHECK_THROW(detail::message_reader{bytes}.text(2), wc::bad_input);
    BOOST_CHECK_THROW(detail::message_reader{bytes}.expect_end(), wc::bad_input);
    detail::message_reader small{bytes};
    BOOST_CHECK_THROW(small.number_below<std::uint32_t>(3, "a thing"), wc::bad_input);
    auto const negative = detail::message_writer{}.number(std::int64_t{-1}).bytes();
    detail::message_reader reader{negative};
    BOOST_CHECK_THROW(reader.number_below<std::int64_t>(5, "a thing"), wc::bad_input);
}

BOOST_AUTO_TEST_CASE(messages_come_back_and_cut_ones_are_refused_at_every_byte) {
    detail::join_request wish{"g", 3, 5, "settings", "who", 77};
    auto const bytes = wish.bytes();
    auto const read = detail::join_request::read(bytes);
    BOOST_TEST(read.group == "g");
    BOOST_TEST(read.rank == 3);
    BOOST_TEST(read.size == 5);
    BOOST_TEST(read.settings == "settings");
    BOOST_TEST(read.who == "who");
    BOOST_TEST(read.timeout_ms == 77);
    for (std::size_t n = 0; n < bytes.size(); ++n) {
        BOOST_CHECK_THROW(detail::join_request::read(std::string_view{bytes}.substr(0, n)),
                          wc::bad_input);
    }
    BOOST_CHECK_THROW(detail::join_request::read(bytes + "x"), wc::bad_input);

    detail::status_report const status{true, true, 9, 2, "broadcasts"};
    auto const status_bytes = status.bytes();
    auto const status_read = detail::status_report::read(status_bytes);
    BOOST_TEST((status_read.waiting && status_read.collective));
    BOOST_TEST(status_read.sequence == 9U);
    BOOST_TEST(status_read.waiting_for == 2);
    BOOST_TEST(status_read.doing == "broadcasts");
    for (std::size_t n = 0; n < status_bytes.size(); ++n) {
        BOOST_CHECK_THROW(detail::status_report::read(std::string_view{status_bytes}.substr(0, n)),
                          wc::bad_input);
    }

    detail::leave_account const account{4, {1, 2, 3}, {4, 5, 6}};
    auto const account_bytes = account.bytes();
    auto const account_read = detail::leave_account::read(account_bytes);
    BOOST_TEST(account_read.sent == account.sent, boost::test_tools::per_element());
    BOOST_TEST(account_read.received == account.received, boost::test_tools::per_element());
    for (std::size_t n = 0; n < account_bytes.size(); ++n) {
        BOOST_CHECK_THROW(detail::leave_account::read(std::string_view{account_bytes}.substr(0, n)),
                          wc::bad_input);
    }
    // a count that claims more than is there allocates nothing
    auto const liar =
        detail::message_writer{}.number(std::uint64_t{1}).number(std::uint32_t{60000}).bytes();
    BOOST_CHECK_THROW(detail::leave_account::read(liar), wc::bad_input);

    detail::peer_leaving const leaving{1, 2, 3, 4};
    auto const leaving_read = detail::peer_leaving::read(leaving.bytes());
    BOOST_TEST((leaving_read.rank == 1 && leaving_read.collectives == 2 && leaving_read.sent == 3 &&
                leaving_read.received == 4));
}

BOOST_AUTO_TEST_CASE(failures_come_back_and_are_cut_to_their_bounds) {
    detail::group_failure failure{
        detail::failure_kind::mismatch, 1, 2, wc::phase::vote, "w", 12, 3, "text"};
    detail::message_writer writer;
    failure.write(writer);
    detail::message_reader reader{writer.bytes()};
    BOOST_TEST((detail::group_failure::read(reader) == failure));
    failure.tensor = std::string(100'000, 't');
    failure.text = std::string(100'000, 'x');
    detail::message_writer long_writer;
    failure.write(long_writer);
    detail::message_reader long_reader{long_writer.bytes()};
    auto const read = detail::group_failure::read(long_reader);
    BOOST_TEST(read.tensor.size() == detail::group_failure::longest_tensor);
    BOOST_TEST(read.text.size() == detail::group_failure::longest_text);
    std::string bad = writer.bytes();
    bad[0] = 6;  // no kind
    detail::message_reader bad_reader{bad};
    BOOST_CHECK_THROW(detail::group_failure::read(bad_reader), wc::bad_input);
    bad = writer.bytes();
    bad[9] = 5;  // no phase
    detail::message_reader bad_phase{bad};
    BOOST_CHECK_THROW(detail::group_failure::read(bad_phase), wc::bad_input);
}

BOOST_AUTO_TEST_CASE(a_heard_failure_names_who_reports_where_we_are_and_whom_they_suspect) {
    detail::group_failure const failure{
        detail::failure_kind::timed_out, 2, 1, wc::phase::payload, "layer.0.w", 40, 5,
        "no byte moved for 2 s"};
    auto const heard =
        detail::heard_failure(failure, 0, wc::operation_label{wc::phase::vote, "layer.1.w"}, 7);
    BOOST_CHECK_EXCEPTION(
        std::rethrow_exception(heard), wc::peer_error, [](wc::peer_error const& e) {
            return says({"vote", "layer.1.w", "rank 2 reports", "no byte moved", "layer.0.w",
                         "rank 0", "suspected rank 1", "7 bytes done"})(e) &&
                   e.facts().suspect == 1 && e.facts().rank == 0 && e.facts().bytes_done == 7 &&
                   e.facts().tensor == "layer.1.w" && e.facts().where == wc::phase::vote;
        });
}

BOOST_AUTO_TEST_CASE(frames_are_cut_whatever_the_pieces) {
    std::string stream;
    for (int i = 0; i < 5; ++i) {
        stream += detail::frame(detail::message_kind::set, static_cast<std::uint32_t>(i),
                                std::string(static_cast<std::size_t>(i * 7), 'x'));
    }
    for (std::size_t piece = 1; piece < stream.size(); ++piece) {
        std::string buffer;
        std::uint32_t expected = 0;
        detail::received_frame frame;
        for (std::size_t at = 0; at < stream.size(); at += piece) {
            buffer += stream.substr(at, piece);
            while (detail::cut_frame(buffer, frame)) {
                BOOST_REQUIRE(frame.request == expected);
                BOOST_REQUIRE(frame.payload.size() == std::size_t{expected} * 7U);
                ++expected;
            }
        }
        BOOST_REQUIRE(expected == 5U);
        BOOST_REQUIRE(buffer.empty());
    }
}

BOOST_AUTO_TEST_CASE(impossible_frames_are_refused_by_their_length_alone) {
    for (std::uint32_t const length : {0U, 4U, 0xFFFFFFFFU, 0x80000000U, (1U << 20U) + 65537U}) {
        std::string buffer = detail::message_writer{}.number(length).bytes();
        detail::received_frame frame;
        BOOST_CHECK_THROW(detail::cut_frame(buffer, frame), wc::bad_input);
    }
}

BOOST_AUTO_TEST_CASE(greetings_carry_magic_and_version) {
    BOOST_TEST(detail::greeting().size() == detail::greeting_bytes);
    BOOST_TEST(detail::read_greeting(detail::greeting()) == detail::protocol_version);
    BOOST_CHECK_THROW(detail::read_greeting("HTTP/1.1"), wc::bad_input);
    BOOST_CHECK_THROW(detail::read_greeting("WCRV"), wc::bad_input);
    BOOST_CHECK_THROW(detail::read_greeting(""), wc::bad_input);
}

BOOST_AUTO_TEST_CASE(random_bytes_never_get_further_than_bad_input) {
    std::mt19937 random{7};
    for (int round = 0; round < 20'000; ++round) {
        std::string bytes(random() % 64, '\0');
        for (auto& byte : bytes) byte = static_cast<char>(random() % (round % 2 == 0 ? 256U : 4U));
        auto const swallow = [&](auto read) {
            try {
                read();
            } catch (wc::bad_input const&) {}
        };
        swallow([&] { detail::join_request::read(bytes); });
        swallow([&] { detail::status_report::read(bytes); });
        swallow([&] { detail::leave_account::read(bytes); });
        swallow([&] { detail::peer_leaving::read(bytes); });
        swallow([&] {
            detail::message_reader reader{bytes};
            detail::group_failure::read(reader);
        });
        swallow([&] {
            std::string buffer = bytes;
            detail::received_frame frame;
            while (detail::cut_frame(buffer, frame)) {}
        });
    }
}

BOOST_AUTO_TEST_CASE(a_store_counts_what_it_holds_and_is_bounded) {
    detail::key_store store{{.keys = 3, .bytes = 20}};
    store.set("a", "12345");
    BOOST_TEST(store.bytes() == 6U);
    store.set("a", "1");
    BOOST_TEST(store.bytes() == 2U);
    store.set("b", "");
    store.set("c", "");
    BOOST_CHECK_EXCEPTION(store.set("d", ""), wc::bad_argument, says("full"));
    store.set("c", "0123456789012345");  // 2 + 1 + 17 = 20
    BOOST_TEST(store.bytes() == 20U);
    BOOST_CHECK_THROW(store.set("b", "x"), wc::bad_argument);
    BOOST_TEST(store.get("b").value() == "");  // nothing was changed
    BOOST_TEST(store.bytes() == 20U);
    BOOST_TEST(store.erase("c"));
    BOOST_TEST(!store.erase("c"));
    BOOST_TEST(!store.get("c").has_value());
    BOOST_TEST(store.keys() == 2U);
    BOOST_TEST(store.bytes() == 3U);
}

BOOST_AUTO_TEST_CASE(a_store_adds_without_overflow) {
    detail::key_store store;
    BOOST_TEST(store.add("n", 5) == 5);
    BOOST_TEST(store.add("n", -7) == -2);
    store.set("n", std::to_string(std::numeric_limits<std::int64_t>::max()));
    BOOST_CHECK_EXCEPTION(store.add("n", 1), wc::bad_argument, says("64 bits"));
    BOOST_TEST(store.add("n", -1) == std::numeric_limits<std::int64_t>::max() - 1);
    for (auto const* value : {"x", "", "1x", " 1", "99999999999999999999"}) {
        store.set("n", value);
        BOOST_CHECK_EXCEPTION(store.add("n", 1), wc::bad_argument, says("no number"));
    }
}

BOOST_AUTO_TEST_CASE(a_store_forgets_prefixes_exactly) {
    detail::key_store store;
    for (auto const* key : {"group/1/a", "group/1/b", "group/10/a", "group/2/a", "group/1"})
        store.set(key, "v");
    store.erase_prefix("group/1/");
    BOOST_TEST(store.keys() == 3U);
    BOOST_TEST(store.has("group/10/a"));
    BOOST_TEST(store.has("group/1"));
    store.erase_prefix("nothing/");
    BOOST_TEST(store.keys() == 3U);
}

BOOST_AUTO_TEST_CASE(a_store_wakes_those_whose_last_key_came) {
    using clock = wc::deadline::clock;
    detail::key_store store;
    store.set("x", "1");
    BOOST_TEST(store.wait({.connection = 1, .request = 1, .missing = {"x"}}));
    BOOST_TEST(store.wait({.connection = 1, .request = 2, .missing = {}}));
    BOOST_TEST(!store.wait({.connection = 1, .request = 3, .missing = {"x", "y", "z", "y"}}));
    BOOST_TEST(!store.wait({.connection = 2, .request = 4, .missing = {"y"}}));
    store.set("y", "1");
    auto woken = store.arrived("y");
    BOOST_REQUIRE(woken.size() == 1U);
    BOOST_TEST(woken.front().request == 4U);
    BOOST_TEST(store.waiting(1) == 1U);
    store.forget(1);
    BOOST_TEST(store.waiting(1) == 0U);
    auto const soon = clock::now() + std::chrono::seconds{1};
    BOOST_TEST(!store.wait(
        {.connection = 3, .request = 5, .missing = {"q"}, .until = wc::deadline::at(soon)}));
    BOOST_TEST((store.next_deadline().point() == soon));
    BOOST_TEST(store.expired(soon - std::chrono::nanoseconds{1}).empty());
    BOOST_TEST(store.expired(soon).size() == 1U);
    BOOST_TEST(store.waiting(3) == 0U);
}

BOOST_AUTO_TEST_SUITE_END()
