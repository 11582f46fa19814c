// SPDX-License-Identifier: Apache-2.0
#include <weightcast/base/check.hpp>

#include <cerrno>
#include <string>

#include <boost/test/unit_test.hpp>

#include "support/says.hpp"

namespace foreign {

enum class status { fine, broken };
struct failure : weightcast::error {
    using weightcast::error::error;
};

}  // namespace foreign

template <>
struct weightcast::code_traits<foreign::status> {
    using error_type = foreign::failure;
    static bool failed(foreign::status s) noexcept { return s == foreign::status::broken; }
    static std::string text(foreign::status) { return "it is broken"; }
};

namespace {

using namespace weightcast;
using test::says;

static_assert(CheckedCode<posix_result>);
static_assert(CheckedCode<foreign::status>);
static_assert(!CheckedCode<int>);  // a bare number says nothing about failure

BOOST_AUTO_TEST_SUITE(check_suite)

BOOST_AUTO_TEST_CASE(a_success_passes) {
    BOOST_CHECK_NO_THROW(check(foreign::status::fine, "foreign_call"));
    BOOST_CHECK_NO_THROW(check(posix_result{0}, "close"));
    BOOST_CHECK_NO_THROW(check(posix_result{17}, "read"));
}

BOOST_AUTO_TEST_CASE(a_failure_names_the_call_and_what_the_traits_say) {
    BOOST_CHECK_EXCEPTION(check(foreign::status::broken, "foreign_call"), foreign::failure,
                          says({"foreign_call: ", "it is broken"}));
}

BOOST_AUTO_TEST_CASE(a_failure_names_the_line_that_made_the_call) {
    auto const line = std::source_location::current().line() + 2;
    try {
        check(foreign::status::broken, "foreign_call");
        BOOST_FAIL("no failure");
    } catch (error const& e) {
        BOOST_TEST(e.where().line() == line);
        BOOST_TEST(std::string{e.where().file_name()}.ends_with("check_test.cpp"));
    }
}

BOOST_AUTO_TEST_CASE(a_posix_result_keeps_the_error_of_its_own_moment) {
    errno = ENOENT;
    posix_result const result{-1};
    errno = EACCES;
    BOOST_CHECK_EXCEPTION(check(result, "open"), system_failure, says({"open: ", "No such file"}));
    errno = 0;
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
