// SPDX-License-Identifier: Apache-2.0
#include <weightcast/io/detail/in_quotes.hpp>

#include <string>

#include <boost/test/unit_test.hpp>

namespace {

using weightcast::detail::in_quotes;

BOOST_AUTO_TEST_SUITE(in_quotes_suite)

BOOST_AUTO_TEST_CASE(plain_text_and_utf_8_stay) {
    BOOST_TEST(in_quotes("") == "''");
    BOOST_TEST(in_quotes("model.layers.0.weight") == "'model.layers.0.weight'");
    BOOST_TEST(in_quotes("gr\xC3\xB6\xC3\x9F") == "'gr\xC3\xB6\xC3\x9F'");
}

BOOST_AUTO_TEST_CASE(control_characters_cannot_break_the_line) {
    BOOST_TEST(in_quotes("a\nb\r\t\x1B[31m\x7F") == R"('a\x0ab\x0d\x09\x1b[31m\x7f')");
    BOOST_TEST(in_quotes(std::string(1, '\0')) == R"('\x00')");
}

BOOST_AUTO_TEST_CASE(long_text_keeps_both_ends) {
    BOOST_TEST(in_quotes(std::string(200, 'a')) == "'" + std::string(200, 'a') + "'");
    BOOST_TEST(in_quotes("begin" + std::string(100'000, 'a') + "end") ==
               "'begin" + std::string(95, 'a') + "..." + std::string(97, 'a') + "end'");
    BOOST_TEST(in_quotes(std::string(201, 'a')) ==
               "'" + std::string(100, 'a') + "..." + std::string(100, 'a') + "'");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
