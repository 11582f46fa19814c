// SPDX-License-Identifier: Apache-2.0
#include <weightcast/io/safetensors_header.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "support/says.hpp"

namespace {

using namespace weightcast;
using test::says;

detail::safetensors_header read(std::string_view text, std::uint64_t data_bytes) {
    return detail::read_safetensors_header(text, data_bytes, "'f'");
}

void refused(std::string_view text, std::uint64_t data_bytes, says const& message) {
    BOOST_TEST_CONTEXT(text.substr(0, 300)) {
        BOOST_CHECK_EXCEPTION(read(text, data_bytes), bad_input, message);
    }
}

// A header of one tensor with that inside.
std::string one(std::string_view members) { return "{\"w\":{" + std::string{members} + "}}"; }

std::string const sample = R"({"__metadata__":{"format":"pt"},)"
                           R"("a":{"dtype":"F32","shape":[2,3],"data_offsets":[8,32]},)"
                           R"("b":{"dtype":"I64","shape":[],"data_offsets":[0,8]},)"
                           R"("c":{"dtype":"U8","shape":[3],"data_offsets":[32,35]}})";
constexpr std::uint64_t sample_bytes = 35;

BOOST_AUTO_TEST_SUITE(safetensors_header_suite)

BOOST_AUTO_TEST_CASE(a_header_lists_its_tensors_in_the_order_of_their_data) {
    auto const header = read(sample, sample_bytes);
    BOOST_TEST_REQUIRE(header.entries.size() == 3U);
    BOOST_TEST(header.entries[0].name == "b");
    BOOST_TEST(header.entries[0].type == dtype::int64);
    BOOST_TEST(header.entries[0].shape == extents{});
    BOOST_TEST(header.entries[1].name == "a");
    BOOST_TEST(header.entries[1].shape == (extents{2, 3}));
    BOOST_TEST(header.entries[1].begin == 8U);
    BOOST_TEST(header.entries[1].end == 32U);
    BOOST_TEST(header.entries[2].name == "c");
    BOOST_CHECK((header.metadata == safetensors_metadata{{"format", "pt"}}));
}

BOOST_AUTO_TEST_CASE(an_empty_header_has_no_tensors) {
    BOOST_TEST(read("{}", 0).entries.empty());
    BOOST_TEST(read("{}       ", 0).entries.empty());
    BOOST_TEST(read(R"({"__metadata__":{}})", 0).metadata.empty());
    BOOST_TEST(
        read("{ \n\t\"w\" : {\"dtype\":\"U8\" ,\"shape\":[ ],\"data_offsets\":[0, 1]} } \r\n", 1)
            .entries.size() == 1U);
}

BOOST_AUTO_TEST_CASE(empty_tensors_share_an_offset) {
    auto const header = read(R"({"z":{"dtype":"F32","shape":[0,4],"data_offsets":[4,4]},)"
                             R"("y":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
                             R"("x":{"dtype":"F32","shape":[2,0],"data_offsets":[0,0]},)"
                             R"("v":{"dtype":"U8","shape":[2],"data_offsets":[4,6]}})",
                             6);
    BOOST_TEST(header.entries[0].name == "x");
    BOOST_TEST(header.entries[1].name == "y");
    BOOST_TEST(header.entries[2].name == "z");
    BOOST_TEST(header.entries[3].name == "v");
}

BOOST_AUTO_TEST_CASE(members_that_the_format_does_not_know_are_skipped) {
    auto const header = read(
        one(R"("extra":{"shape":[1],"deep":[{"dtype":1}]},"dtype":"U8","more":[[],{}],"shape":[2],)"
            R"("n":null,"b":true,"f":1.5,"i":-1,"s":"x","data_offsets":[0,2])"),
        2);
    BOOST_TEST(header.entries.size() == 1U);
}

BOOST_AUTO_TEST_CASE(names_and_metadata_may_be_any_text) {
    auto const header = read(R"({"":{"dtype":"U8","shape":[],"data_offsets":[0,1]},)"
                             R"("\u00fc\n\"\\\/":{"dtype":"U8","shape":[],"data_offsets":[1,2]},)"
                             R"("__metadata__":{"":"","a\u0000b":"{\"json\":1}"}})",
                             2);
    BOOST_TEST(header.entries[0].name.empty());
    BOOST_TEST(header.entries[1].name == "\xC3\xBC\n\"\\/");
    BOOST_TEST(header.metadata.at(std::string("a\0b", 3)) == R"({"json":1})");
}

BOOST_AUTO_TEST_CASE(f4_shapes_are_halved) {
    auto const header = read(one(R"("dtype":"F4","shape":[3,8],"data_offsets":[0,12])"), 12);
    BOOST_TEST(header.entries[0].type == dtype::float4_e2m1fn_x2);
    BOOST_TEST(header.entries[0].shape == (extents{3, 4}));
    refused(one(R"("dtype":"F4","shape":[2,3],"data_offsets":[0,3])"), 3,
            says({"'f'", "'w'", "pairs"}));
    refused(one(R"("dtype":"F4","shape":[],"data_offsets":[0,1])"), 1, says("pairs"));
}

BOOST_AUTO_TEST_CASE(offsets_that_leave_gaps_or_overlap_are_refused) {
    auto const two = [](std::string const& a, std::string const& b) {
        return R"({"a":{"dtype":"U8","shape":[4],"data_offsets":)" + a +
               R"(},"b":{"dtype":"U8","shape":[4],"data_offsets":)" + b + "}}";
    };
    BOOST_CHECK_NO_THROW(read(two("[4,8]", "[0,4]"), 8));
    refused(two("[0,4]", "[3,7]"), 7, says({"'f'", "tensor 'b'", "begins at byte 3", "ends at 4"}));
    refused(two("[0,4]", "[0,4]"), 4, says({"tensor 'b'", "begins at byte 0"}));
    refused(two("[0,4]", "[5,9]"), 9, says({"tensor 'b'", "behind a gap", "at 4"}));
    refused(two("[1,5]", "[5,9]"), 9, says({"tensor 'a'", "behind a gap", "at 0"}));
    refused(two("[0,4]", "[4,8]"), 9, says({"end at byte 8", "has 9"}));
    refused(two("[0,4]", "[4,8]"), 7, says({"tensor 'b'", "ends at byte 8", "has 7", "cut short"}));
    refused(two("[0,4]", "[4,8]"), 0, says({"tensor 'a'", "cut short"}));
    refused("{}", 1, says({"end at byte 0", "has 1"}));
}

BOOST_AUTO_TEST_CASE(offsets_that_contradict_the_shape_are_refused) {
    refused(one(R"("dtype":"F32","shape":[2,3],"data_offsets":[0,23])"), 23,
            says({"'f'", "tensor 'w'", "expected 24 bytes", "F32", "got 23"}));
    refused(one(R"("dtype":"F32","shape":[2,3],"data_offsets":[0,0])"), 0, says("got 0"));
    refused(one(R"("dtype":"F32","shape":[0,3],"data_offsets":[0,4])"), 4,
            says("expected 0 bytes"));
    refused(one(R"("dtype":"U8","shape":[],"data_offsets":[1,0])"), 1,
            says({"backwards", "from 1 to 0"}));
    refused(one(R"("dtype":"U8","shape":[1],"data_offsets":[18446744073709551615,0])"), 1,
            says("backwards"));
}

BOOST_AUTO_TEST_CASE(shapes_that_are_none_are_refused) {
    auto const shape = [](std::string const& text) {
        return one(R"("dtype":"F32","shape":)" + text + R"(,"data_offsets":[0,4])");
    };
    refused(shape("[-1]"), 4, says({"'f'", "'w'", "expected extents", "negative number"}));
    refused(shape("[-9223372036854775808]"), 4, says("negative number"));
    refused(shape("[1.0]"), 4, says("a fraction"));
    refused(shape("[1e0]"), 4, says("a fraction"));
    refused(shape("[18446744073709551616]"), 4, says("a fraction"));
    refused(shape("[9223372036854775808]"), 4, says("63 bits"));
    refused(shape("[18446744073709551615]"), 4, says("63 bits"));
    refused(shape("[4611686018427387904,4]"), 4, says("64 bits"));
    refused(shape("[9223372036854775807,2]"), 4, says("63 bits"));
    refused(shape("[9223372036854775807]"), 4, says("64 bits"));
    refused(shape("[4294967296,4294967296]"), 4, says("64 bits"));
    refused(shape("[0,9223372036854775807,9223372036854775807]"), 0, says("64 bits"));
    refused(shape("[1,1,1,1,1,1,1,1,1]"), 4, says("more than 8 dimensions"));
    refused(shape("[\"1\"]"), 4, says("a string"));
    refused(shape("[true]"), 4, says("a boolean"));
    refused(shape("[null]"), 4, says("null"));
    refused(shape("[[1]]"), 4, says("an array"));
    refused(shape("[{}]"), 4, says("an object"));
    refused(shape("1"), 4, says({"'shape'", "a number"}));
    refused(shape("{}"), 4, says("an object"));
    refused(shape("null"), 4, says("null"));
}

BOOST_AUTO_TEST_CASE(members_that_are_missing_or_odd_are_refused) {
    refused(one(R"("shape":[],"data_offsets":[0,1])"), 1, says({"'f'", "tensor 'w'", "no dtype"}));
    refused(one(R"("dtype":"U8","data_offsets":[0,1])"), 1, says("no shape"));
    refused(one(R"("dtype":"U8","shape":[])"), 1, says("no data_offsets"));
    refused(one(""), 0, says("no dtype"));
    refused(one(R"("dtype":"F33","shape":[],"data_offsets":[0,1])"), 1,
            says({"'w'", "unknown dtype 'F33'"}));
    refused(one(R"("dtype":"F6_E2M3","shape":[],"data_offsets":[0,1])"), 1,
            says("unknown dtype 'F6_E2M3'"));
    refused(one(R"("dtype":1,"shape":[],"data_offsets":[0,1])"), 1, says({"'dtype'", "a number"}));
    refused(one(R"("dtype":["U8"],"shape":[],"data_offsets":[0,1])"), 1,
            says({"'dtype'", "an array"}));
    for (std::string const offsets : {"[]", "[0]"}) {
        refused(one(R"("dtype":"U8","shape":[],"data_offsets":)" + offsets), 1, says("got fewer"));
    }
    refused(one(R"("dtype":"U8","shape":[],"data_offsets":[0,1,2])"), 1, says("got more"));
    refused(one(R"("dtype":"U8","shape":[],"data_offsets":[-1,0])"), 1,
            says({"data_offsets", "negative"}));
    refused(one(R"("dtype":"U8","shape":[],"data_offsets":[0,1.5])"), 1,
            says({"data_offsets", "fraction"}));
    refused(one(R"("dtype":"U8","shape":[],"data_offsets":"0,1")"), 1,
            says({"'data_offsets'", "a string"}));
    for (std::string const value : {"[]", "1", "null", "\"U8\"", "true"}) {
        refused("{\"w\":" + value + "}", 0, says({"tensor 'w'", "expected an object"}));
    }
}

BOOST_AUTO_TEST_CASE(whatever_comes_twice_is_refused) {
    std::string const w = R"("w":{"dtype":"U8","shape":[],"data_offsets":[0,1]})";
    std::string const w2 = R"("w":{"dtype":"U8","shape":[],"data_offsets":[1,2]})";
    refused("{" + w + "," + w2 + "}", 2, says({"'f'", "the name 'w' comes twice"}));
    refused("{" + w + R"(,"\u0077":{"dtype":"U8","shape":[],"data_offsets":[1,2]}})", 2,
            says("'w' comes twice"));
    refused(R"({"__metadata__":{},"__metadata__":{}})", 0, says("'__metadata__' comes twice"));
    refused(R"({"__metadata__":{"a":"1","a":"1"}})", 0, says({"metadata", "'a' twice"}));
    refused(one(R"("dtype":"U8","dtype":"U8","shape":[],"data_offsets":[0,1])"), 1,
            says({"'w'", "'dtype' comes twice"}));
    refused(one(R"("dtype":"U8","x":1,"x":1,"shape":[],"data_offsets":[0,1])"), 1,
            says("'x' comes twice"));
}

BOOST_AUTO_TEST_CASE(metadata_is_text_by_text) {
    for (std::string const value : {"1", "null", "true", "[]", "{}", "1.5"}) {
        refused(R"({"__metadata__":{"k":)" + value + "}}", 0,
                says({"'f'", "a string as metadata 'k'"}));
    }
    for (std::string const value : {"1", "null", "\"x\"", "[]"}) {
        refused(R"({"__metadata__":)" + value + "}", 0, says("expected an object"));
    }
}

BOOST_AUTO_TEST_CASE(text_that_is_no_header_is_refused) {
    refused("", 0, says({"'f'", "does not begin with '{'"}));
    refused(" {}", 0, says("does not begin with '{'"));
    refused("[]", 0, says("does not begin with '{'"));
    refused("null", 0, says("does not begin with '{'"));
    refused("{", 0, says({"'f'", "no JSON"}));
    refused("{}{}", 0, says({"'f'", "more text behind its JSON, at byte 2"}));
    refused("{}  x", 0, says("at byte 4"));
    refused(std::string("{}\0\0", 4), 0, says("at byte 2"));
    refused("{'w':1}", 0, says("no JSON at byte"));
    refused("{\"w\":{},}", 0, says("no"));
    refused("{/**/}", 0, says("no JSON"));
    refused("{\"\xFF\":1}", 0, says("no JSON"));  // no UTF-8
    refused("{\"\xC3\":1}", 0, says("no JSON"));
    refused("{\"\xED\xA0\x80\":1}", 0, says("no JSON"));  // a surrogate
    refused("{\"\\ud800\":1}", 0, says("no JSON"));
    refused("{\"a\nb\":1}", 0, says("no JSON"));
    refused(one("\"x\":" + std::string(100, '[')), 0, says("no JSON"));  // too deep
    refused(one("\"x\":" + std::string(1'000'000, '[')), 0, says("no JSON"));
}

BOOST_AUTO_TEST_CASE(a_refusal_carries_the_tensors_name_as_a_fact) {
    try {
        read(one(R"("dtype":"F33","shape":[],"data_offsets":[0,1])"), 1);
        BOOST_FAIL("accepted");
    } catch (bad_input const& e) {
        BOOST_TEST(e.facts().tensor == "w");
    }
}

BOOST_AUTO_TEST_CASE(names_in_messages_stay_on_their_line) {
    refused("{\"a\\nb\":1}", 0, says(R"('a\x0ab')"));
    refused("{\"" + std::string(100'000, 'n') + "\":1}", 0, says("nnn...nnn"));
}

// What is accepted keeps what a header promises.
void check_promises(detail::safetensors_header const& header, std::uint64_t data_bytes) {
    std::uint64_t reached = 0;
    for (auto const& e : header.entries) {
        BOOST_TEST_REQUIRE(e.begin == reached);
        BOOST_TEST_REQUIRE(e.end - e.begin == element_count(e.shape) * item_size(e.type));
        reached = e.end;
    }
    BOOST_TEST_REQUIRE(reached == data_bytes);
}

void accept_or_refuse(std::string_view text, std::uint64_t data_bytes) {
    try {
        check_promises(read(text, data_bytes), data_bytes);
    } catch (bad_input const& e) {
        std::string_view const message = e.what();
        BOOST_TEST_REQUIRE(message.find('\n') == std::string_view::npos);
        BOOST_TEST_REQUIRE(message.starts_with("file 'f'"));
        BOOST_TEST_REQUIRE(message.size() < 700U);
    }
}

BOOST_AUTO_TEST_CASE(every_change_of_one_byte_is_accepted_whole_or_refused) {
    for (std::size_t i = 0; i < sample.size(); ++i) {
        for (int value = 0; value < 256; ++value) {
            auto changed = sample;
            changed[i] = static_cast<char>(value);
            accept_or_refuse(changed, sample_bytes);
        }
    }
}

BOOST_AUTO_TEST_CASE(every_length_of_a_cut_header_is_refused) {
    for (std::size_t n = 0; n < sample.size(); ++n) {
        BOOST_CHECK_THROW(read(std::string_view{sample}.substr(0, n), sample_bytes), bad_input);
    }
}

BOOST_AUTO_TEST_CASE(every_missing_and_every_doubled_byte_is_accepted_whole_or_refused) {
    for (std::size_t i = 0; i < sample.size(); ++i) {
        accept_or_refuse(std::string{sample}.erase(i, 1), sample_bytes);
        accept_or_refuse(std::string{sample}.insert(i, 1, sample[i]), sample_bytes);
    }
}

BOOST_AUTO_TEST_CASE(every_size_of_the_data_but_the_right_one_is_refused) {
    for (std::uint64_t bytes = 0; bytes < 80; ++bytes) {
        if (bytes == sample_bytes) continue;
        BOOST_CHECK_THROW(read(sample, bytes), bad_input);
    }
}

BOOST_AUTO_TEST_CASE(many_tensors_are_read_in_one_pass) {
    std::string text = "{";
    constexpr std::uint64_t count = 20'000;
    for (std::uint64_t i = 0; i < count; ++i) {
        if (i != 0) text += ',';
        text += "\"layer." + std::to_string(i) +
                R"(.w":{"dtype":"BF16","shape":[2,1],"data_offsets":[)" + std::to_string(4 * i) +
                "," + std::to_string(4 * i + 4) + "]}";
    }
    BOOST_TEST(read(text + "}", 4 * count).entries.size() == count);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
