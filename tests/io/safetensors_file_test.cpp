// SPDX-License-Identifier: Apache-2.0
#include <weightcast/io/safetensors_file.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "io/temporary_folder.hpp"
#include "support/says.hpp"

namespace {

using namespace weightcast;
using test::safetensors_bytes;
using test::says;
using test::temporary_folder;
using test::write_file;

static_assert(!std::copy_constructible<safetensors_file>);
static_assert(std::movable<safetensors_file>);

// As the format's own Python package (0.6) writes it: float32 b = [[0..2], [3..5]], uint8 a = [1,
// 2, 3], an int64 scalar s = 5, an empty float16 e of shape [0, 4], and metadata.
std::string reference_bytes() {
    std::string data("\x05\0\0\0\0\0\0\0", 8);
    for (float const f : {0.0F, 1.0F, 2.0F, 3.0F, 4.0F, 5.0F}) {
        data.append(reinterpret_cast<char const*>(&f), 4);
    }
    data += "\x01\x02\x03";
    return safetensors_bytes(
        "{\"__metadata__\":{\"k\\n\":\"\xC3\xBC\\\"\",\"format\":\"pt\"},"
        R"("s":{"dtype":"I64","shape":[],"data_offsets":[0,8]},)"
        R"("b":{"dtype":"F32","shape":[2,3],"data_offsets":[8,32]},)"
        R"("e":{"dtype":"F16","shape":[0,4],"data_offsets":[32,32]},)"
        R"("a":{"dtype":"U8","shape":[3],"data_offsets":[32,35]}})",
        data);
}

void refused(std::filesystem::path const& path, std::string_view bytes, says const& message) {
    write_file(path, bytes);
    BOOST_CHECK_EXCEPTION(safetensors_file::open(path), bad_input, message);
}

BOOST_AUTO_TEST_SUITE(safetensors_file_suite)

BOOST_AUTO_TEST_CASE(a_file_of_the_reference_implementation_reads) {
    temporary_folder const folder;
    write_file(folder / "f.safetensors", reference_bytes());
    auto const file = safetensors_file::open(folder / "f.safetensors");
    BOOST_TEST(file.path() == folder / "f.safetensors");
    BOOST_TEST_REQUIRE(file.tensors().size() == 4U);
    std::vector<std::string> names;
    for (auto const& t : file.tensors()) names.emplace_back(t.name);
    BOOST_TEST((names == std::vector<std::string>{"s", "b", "e", "a"}));
    BOOST_CHECK((file.metadata() == safetensors_metadata{{"k\n", "\xC3\xBC\""}, {"format", "pt"}}));

    auto const* const b = file.find("b");
    BOOST_TEST_REQUIRE(b != nullptr);
    BOOST_TEST(b->tensor.type() == dtype::float32);
    BOOST_TEST(b->tensor.shape() == (extents{2, 3}));
    BOOST_TEST(b->tensor.where() == cpu_device);
    BOOST_TEST(b->tensor.contiguous());
    float last = 0;
    std::memcpy(&last, static_cast<std::byte const*>(b->tensor.data()) + 20, 4);
    BOOST_TEST(last == 5.0F);
    std::int64_t scalar = 0;
    std::memcpy(&scalar, file.find("s")->tensor.data(), 8);
    BOOST_TEST(scalar == 5);
    BOOST_TEST(file.find("e")->tensor.bytes() == 0U);
    BOOST_TEST(file.find("c") == nullptr);
    BOOST_TEST(file.find("") == nullptr);
}

BOOST_AUTO_TEST_CASE(views_survive_a_move) {
    temporary_folder const folder;
    write_file(folder / "f", reference_bytes());
    auto first = safetensors_file::open(folder / "f");
    auto const before = *first.find("a");
    safetensors_file second{std::move(first)};
    BOOST_TEST(second.find("a")->tensor.data() == before.tensor.data());
    BOOST_TEST(second.find("a")->name.data() == before.name.data());
    BOOST_TEST(second.tensors().size() == 4U);
    std::vector<safetensors_file> many;
    many.push_back(std::move(second));
    for (int i = 0; i < 20; ++i) many.push_back(safetensors_file::open(folder / "f"));
    BOOST_TEST(many.front().find("a")->tensor.data() == before.tensor.data());
    BOOST_TEST(before.name == "a");
}

BOOST_AUTO_TEST_CASE(a_file_cut_anywhere_is_refused_by_name) {
    temporary_folder const folder;
    auto const bytes = reference_bytes();
    for (std::size_t n = 0; n < bytes.size(); ++n) {
        refused(folder / "f", std::string_view{bytes}.substr(0, n), says((folder / "f").string()));
    }
}

BOOST_AUTO_TEST_CASE(a_file_with_bytes_behind_its_tensors_is_refused) {
    temporary_folder const folder;
    refused(folder / "f", reference_bytes() + '\0', says({"end at byte 35", "has 36"}));
}

BOOST_AUTO_TEST_CASE(lengths_of_headers_that_cannot_be_are_refused) {
    temporary_folder const folder;
    refused(folder / "f", "", says("has 0 bytes: too few"));
    refused(folder / "f", "1234567", says("has 7 bytes: too few"));
    refused(folder / "f", std::string(8, '\0'), says("does not begin with '{'"));
    refused(folder / "f", std::string(8, '\xFF'),
            says({"18446744073709551615", "at most 100000000"}));
    refused(folder / "f", std::string("\x01\xE1\xF5\x05\0\0\0\0{}", 10),
            says("claims a header of 100000001 bytes"));
    refused(folder / "f", std::string("\x00\xE1\xF5\x05\0\0\0\0{}", 10),
            says({"claims a header of 100000000 bytes", "only 2 follow"}));
    refused(folder / "f", std::string("\x03\0\0\0\0\0\0\0{}", 10), says("only 2 follow"));
    refused(folder / "f", std::string("\x01\0\0\0\0\0\0\0{}", 10), says("no JSON"));
    refused(folder / "f", "<html><body>404 Not Found</body></html>", says("claims a header of"));
    refused(folder / "f", "version https://git-lfs.github.com/spec/v1\n",
            says("claims a header of"));
}

BOOST_AUTO_TEST_CASE(each_byte_of_a_file_may_be_wrong) {
    temporary_folder const folder;
    auto const bytes = reference_bytes();
    for (std::size_t i = 0; i < 40; ++i) {  // the length and the begin of the header
        for (unsigned const flip : {0x01U, 0x80U, 0xFFU}) {
            auto changed = bytes;
            changed[i] = static_cast<char>(static_cast<unsigned char>(changed[i]) ^ flip);
            write_file(folder / "f", changed);
            try {
                BOOST_TEST(safetensors_file::open(folder / "f").tensors().size() <= 4U);
            } catch (bad_input const&) {}
        }
    }
}

BOOST_AUTO_TEST_CASE(tensors_need_not_be_aligned) {
    temporary_folder const folder;
    std::string const data("\x09\x01\0\0\0\0\0\0\0", 9);
    write_file(folder / "f",
               safetensors_bytes(R"({"u":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                                 R"("i":{"dtype":"I64","shape":[1],"data_offsets":[1,9]}})",
                                 data));
    auto const file = safetensors_file::open(folder / "f");
    std::int64_t value = 0;
    std::memcpy(&value, file.find("i")->tensor.data(), 8);
    BOOST_TEST(value == 1);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
