// SPDX-License-Identifier: Apache-2.0
#include <weightcast/io/safetensors_index.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "support/says.hpp"

namespace {

using namespace weightcast;
using test::says;

safetensors_index read(std::string_view text) { return read_safetensors_index(text, "'i'"); }

void refused(std::string_view text, says const& message) {
    BOOST_TEST_CONTEXT(text.substr(0, 300)) {
        BOOST_CHECK_EXCEPTION(read(text), bad_input, message);
    }
}

std::string map_of(std::string_view entries) {
    return "{\"weight_map\":{" + std::string{entries} + "}}";
}

std::string const sample = R"({"metadata":{"total_size":12,"list":[1,{"a":[]}]},"weight_map":{)"
                           R"("z":"model-2.safetensors","a":"model-1.safetensors",)"
                           R"("b":"model-2.safetensors"},"version":1})";

BOOST_AUTO_TEST_SUITE(safetensors_index_suite)

BOOST_AUTO_TEST_CASE(shards_come_in_the_order_of_their_first_mention) {
    auto const index = read(sample);
    BOOST_TEST(
        (index.shards == std::vector<std::string>{"model-2.safetensors", "model-1.safetensors"}));
    BOOST_TEST(index.weights.size() == 3U);
    BOOST_TEST(index.weights.at("z") == 0U);
    BOOST_TEST(index.weights.at("a") == 1U);
    BOOST_TEST(index.weights.at("b") == 0U);
}

BOOST_AUTO_TEST_CASE(only_the_weight_map_is_read) {
    BOOST_CHECK_NO_THROW(read("  " + map_of(R"("w":"f")") + "\n"));
    BOOST_CHECK_NO_THROW(read(R"({"weight_map":{"weight_map":"f"},"x":{"weight_map":{"w":1}}})"));
    BOOST_CHECK_NO_THROW(read(R"({"metadata":null,"weight_map":{"w":"f"}})"));
    BOOST_CHECK_NO_THROW(read(R"({"x":{"a":1,"a":2},"weight_map":{"w":"f"}})"));
}

BOOST_AUTO_TEST_CASE(shards_outside_the_folder_are_refused) {
    for (std::string const shard :
         {"", ".", "..", "/etc/passwd", "../f", "a/b", "./f", "a\\\\b", "a\\nb", "a\\u0000"}) {
        refused(map_of(R"("w":")" + shard + "\""),
                says({"'i'", "tensor 'w'", "no plain file name"}));
    }
    BOOST_CHECK_NO_THROW(read(map_of(R"("w":"..f")")));
    BOOST_CHECK_NO_THROW(read(map_of(R"("w":"...")")));
}

BOOST_AUTO_TEST_CASE(whatever_comes_twice_is_refused) {
    refused(map_of(R"("w":"f","w":"f")"), says({"'i'", "'w' comes twice"}));
    refused(map_of(R"("w":"f","\u0077":"g")"), says("'w' comes twice"));
    refused(R"({"weight_map":{"a":"f"},"weight_map":{"b":"f"}})", says("'weight_map' comes twice"));
    refused(R"({"x":1,"x":2,"weight_map":{"a":"f"}})", says("'x' comes twice"));
}

BOOST_AUTO_TEST_CASE(text_that_is_no_index_is_refused) {
    refused("", says({"'i'", "no JSON"}));
    refused("{", says("no JSON"));
    refused("{}", says("no weight_map"));
    refused(R"({"weight_map":{}})", says("weight_map is empty"));
    refused("[]", says({"expected an object", "an array"}));
    refused("[{\"weight_map\":{}}]", says("expected an object"));
    refused("1", says({"expected an object", "a number"}));
    refused("null", says("null"));
    refused("\"weight_map\"", says("a string"));
    for (std::string const value : {"1", "null", "[]", "\"f\"", "true"}) {
        refused("{\"weight_map\":" + value + "}", says("an object as its weight_map"));
    }
    for (std::string const value : {"1", "-1", "1.5", "null", "[]", "{}", "true"}) {
        refused(map_of("\"w\":" + value), says({"a file name for tensor 'w'"}));
    }
    refused(map_of(R"("w":"f")") + "x", says("more text"));
    refused("{\"weight_map\":{\"\xFF\":\"f\"}}", says("no JSON"));
}

BOOST_AUTO_TEST_CASE(every_change_of_one_byte_is_accepted_whole_or_refused) {
    for (std::size_t i = 0; i < sample.size(); ++i) {
        for (int value = 0; value < 256; ++value) {
            auto changed = sample;
            changed[i] = static_cast<char>(value);
            try {
                auto const index = read(changed);
                BOOST_TEST_REQUIRE(!index.shards.empty());
                for (auto const& [name, shard] : index.weights)
                    BOOST_TEST_REQUIRE(shard < index.shards.size());
            } catch (bad_input const& e) {
                BOOST_TEST_REQUIRE(std::string_view{e.what()}.find('\n') == std::string_view::npos);
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(every_length_of_a_cut_index_is_refused) {
    for (std::size_t n = 0; n < sample.size(); ++n) {
        BOOST_CHECK_THROW(read(std::string_view{sample}.substr(0, n)), bad_input);
    }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
