// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <limits>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <support/says.hpp>
#include <weightcast/model/version_spans.hpp>

namespace weightcast::test {
namespace {

using spans = std::vector<version_span>;

BOOST_AUTO_TEST_SUITE(version_spans_suite)

BOOST_AUTO_TEST_CASE(a_request_without_tokens_has_no_span) {
    version_spans request;
    BOOST_TEST(request.spans().empty());
    request.add({1, {}}, 0);
    BOOST_TEST(request.spans().empty());
    BOOST_TEST(request.size() == 0U);
}

BOOST_AUTO_TEST_CASE(equal_neighbours_join_and_others_begin_where_the_last_ended) {
    version_spans request;
    request.add({7, "step-7"});
    request.add({7, "step-7"}, 4);
    request.add({8, {}}, 3);
    request.add({8, {}}, 0);
    request.add({7, "step-7"});
    BOOST_TEST(
        (request.spans() == spans{{{7, "step-7"}, 0, 5}, {{8, {}}, 5, 8}, {{7, "step-7"}, 8, 9}}));
    BOOST_TEST(request.size() == 9U);
}

BOOST_AUTO_TEST_CASE(no_tokens_of_another_version_divide_nothing) {
    version_spans request;
    request.add({1, {}});
    request.add({2, {}}, 0);
    request.add({1, {}});
    BOOST_TEST((request.spans() == spans{{{1, {}}, 0, 2}}));
}

BOOST_AUTO_TEST_CASE(weights_never_set_differ_from_any_label) {
    version_spans request;
    request.add({});
    request.add({1, "default"});
    request.add({});
    request.add({});
    BOOST_TEST((request.spans() == spans{{{}, 0, 1}, {{1, "default"}, 1, 2}, {{}, 2, 4}}));
    BOOST_TEST(!request.version_at(3).is_set());
}

BOOST_AUTO_TEST_CASE(a_number_with_another_label_is_another_version) {
    version_spans request;
    request.add({1, "a"});
    request.add({1, "b"});
    request.add({1, {}});
    BOOST_TEST(request.spans().size() == 3U);
}

BOOST_AUTO_TEST_CASE(every_token_has_the_version_it_was_added_with) {
    version_spans request;
    std::vector<weight_version> expected;
    for (std::uint64_t n = 1; n <= 20; ++n) {
        request.add({n, {}}, n % 4);
        expected.insert(expected.end(), n % 4, weight_version{n, {}});
    }
    BOOST_REQUIRE(request.size() == expected.size());
    for (std::uint64_t token = 0; token < request.size(); ++token) {
        BOOST_TEST((request.version_at(token) == expected[token]));
    }
    BOOST_CHECK_EXCEPTION(request.version_at(30), bad_argument, (says{"token 30", "30 tokens"}));
    BOOST_CHECK_THROW(version_spans{}.version_at(0), bad_argument);
}

BOOST_AUTO_TEST_CASE(more_tokens_than_64_bits_count_are_refused) {
    constexpr auto most = std::numeric_limits<std::uint64_t>::max();
    version_spans request;
    request.add({1, {}}, most);
    BOOST_CHECK_THROW(request.add({1, {}}), bad_input);
    BOOST_CHECK_THROW(request.add({2, {}}), bad_input);
    BOOST_TEST((request.spans() == spans{{{1, {}}, 0, most}}));
    BOOST_TEST(request.version_at(most - 1).number == 1U);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weightcast::test
