// SPDX-License-Identifier: Apache-2.0
#include <weightcast/io/mapped_file.hpp>

#include <concepts>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>

#include <sys/stat.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>

#include "io/temporary_folder.hpp"
#include "support/says.hpp"

namespace {

using namespace weightcast;
using test::says;
using test::temporary_folder;
using test::write_file;

static_assert(!std::copy_constructible<mapped_file>);
static_assert(std::is_nothrow_move_constructible_v<mapped_file>);
static_assert(std::is_nothrow_move_assignable_v<mapped_file>);

std::string text_of(mapped_file const& file) {
    return {reinterpret_cast<char const*>(file.bytes().data()), file.bytes().size()};
}

BOOST_AUTO_TEST_SUITE(mapped_file_suite)

BOOST_AUTO_TEST_CASE(a_files_bytes_are_there) {
    temporary_folder const folder;
    write_file(folder / "f", "hello");
    auto const file = mapped_file::open(folder / "f");
    BOOST_TEST(text_of(file) == "hello");
}

BOOST_AUTO_TEST_CASE(an_empty_file_has_none) {
    temporary_folder const folder;
    write_file(folder / "f", "");
    BOOST_TEST(mapped_file::open(folder / "f").bytes().empty());
}

BOOST_AUTO_TEST_CASE(a_move_keeps_the_bytes_where_they_are) {
    temporary_folder const folder;
    write_file(folder / "f", "hello");
    write_file(folder / "g", "other");
    auto first = mapped_file::open(folder / "f");
    auto const* const data = first.bytes().data();
    mapped_file second{std::move(first)};
    BOOST_TEST(second.bytes().data() == data);
    BOOST_TEST(first.bytes().empty());
    auto third = mapped_file::open(folder / "g");
    third = std::move(second);
    BOOST_TEST(third.bytes().data() == data);
    BOOST_TEST(text_of(third) == "hello");
    BOOST_TEST(second.bytes().empty());
}

BOOST_AUTO_TEST_CASE(a_file_that_is_replaced_stays_mapped) {
    temporary_folder const folder;
    write_file(folder / "f", "old");
    auto const file = mapped_file::open(folder / "f");
    write_file(folder / "g", "newer");
    std::filesystem::rename(folder / "g", folder / "f");
    BOOST_TEST(text_of(file) == "old");
    std::filesystem::remove(folder / "f");
    BOOST_TEST(text_of(file) == "old");
}

BOOST_AUTO_TEST_CASE(what_is_no_readable_file_is_refused_by_name) {
    temporary_folder const folder;
    BOOST_CHECK_EXCEPTION(mapped_file::open(folder / "none"), bad_input,
                          says({"cannot open file '", "none'", "No such file"}));
    BOOST_CHECK_EXCEPTION(mapped_file::open(folder.path()), bad_input, says("no regular file"));
    BOOST_CHECK_EXCEPTION(mapped_file::open("/dev/zero"), bad_input, says("no regular file"));
    BOOST_CHECK_THROW(mapped_file::open(""), bad_input);
    BOOST_CHECK_EXCEPTION(mapped_file::open(folder / "a\nb"), bad_input, says(R"(a\x0ab')"));
    BOOST_TEST_REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
    BOOST_CHECK_EXCEPTION(mapped_file::open(folder / "pipe"), bad_input, says("no regular file"));
}

BOOST_AUTO_TEST_CASE(a_link_is_followed) {
    temporary_folder const folder;
    write_file(folder / "blob", "hello");
    std::filesystem::create_symlink("blob", folder / "link");
    BOOST_TEST(text_of(mapped_file::open(folder / "link")) == "hello");
    std::filesystem::create_symlink("nowhere", folder / "broken");
    BOOST_CHECK_THROW(mapped_file::open(folder / "broken"), bad_input);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
