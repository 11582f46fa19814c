// SPDX-License-Identifier: Apache-2.0
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <weightcast/plan/vllm_order.hpp>

#include <support/tensor_list.hpp>

namespace {

using namespace weightcast;
using test::tensor_list;

std::vector<std::string> ordered_names(tensor_list const& list,
                                       packing_options const& options = vllm_packing()) {
    std::vector<std::string> names;
    for (auto const index : order_for_vllm(list.view(), options)) {
        names.emplace_back(list.view()[index].name);
    }
    return names;
}
std::size_t unviewable(std::span<planned_tensor const> tensors, packing_options const& options) {
    return misaligned_members(packing_plan{tensors, options}, tensors).size();
}
using names = std::vector<std::string>;
auto const each = boost::test_tools::per_element();

BOOST_AUTO_TEST_SUITE(vllm_order)

BOOST_AUTO_TEST_CASE(nothing_has_an_order) { BOOST_TEST(order_for_vllm({}).empty()); }

BOOST_AUTO_TEST_CASE(wide_items_come_first_inside_a_layer) {
    tensor_list list;
    list.add("embed", dtype::float16, {4}).add("layers.0.a", dtype::uint8, {8});
    list.add("layers.0.b", dtype::float32, {2}).add("layers.0.c", dtype::bfloat16, {4});
    list.add("layers.1.a", dtype::float16, {4}).add("layers.1.b", dtype::int64, {1});
    list.add("norm", dtype::float16, {4}).add("lm_head", dtype::float32, {2});
    names const expected{"embed",      "layers.0.b", "layers.0.c", "layers.0.a",
                         "layers.1.b", "layers.1.a", "lm_head",    "norm"};
    BOOST_TEST(ordered_names(list) == expected, each);
}

BOOST_AUTO_TEST_CASE(equal_widths_keep_their_order) {
    tensor_list list;
    for (auto const* name :
         {"z", "b", "layers.2.q", "layers.2.a", "layers.10.c", "layers.1.x", "y", "a"}) {
        list.add(name, dtype::float32, {1});
    }
    names const expected{"z",           "b",          "layers.2.q", "layers.2.a",
                         "layers.10.c", "layers.1.x", "y",          "a"};
    BOOST_TEST(ordered_names(list) == expected, each);
}

BOOST_AUTO_TEST_CASE(a_layer_is_gathered_and_names_without_one_stand_around_the_layers) {
    tensor_list list;
    for (auto const* name : {"embed", "h.0.a", "rotary", "h.1.a", "h.0.b", "head"}) {
        list.add(name, dtype::float32, {1});
    }
    names const expected{"embed", "h.0.a", "h.0.b", "h.1.a", "rotary", "head"};
    BOOST_TEST(ordered_names(list) == expected, each);
}

BOOST_AUTO_TEST_CASE(encoders_and_decoders_have_their_own_layers) {
    tensor_list list;
    list.add("encoder.0.a", dtype::int8, {4}).add("decoder.0.a", dtype::int32, {1});
    list.add("encoder.0.b", dtype::int32, {1});
    names const expected{"encoder.0.b", "encoder.0.a", "decoder.0.a"};
    BOOST_TEST(ordered_names(list) == expected, each);
}

BOOST_AUTO_TEST_CASE(b55_the_three_traps_are_avoided) {
    tensor_list half;
    half.add("a", dtype::float16, {3}).add("b", dtype::float32, {1});
    tensor_list scaled;
    scaled.add("a", dtype::float8_e4m3fn, {3, 3}).add("b", dtype::float32, {1});
    tensor_list flags;
    flags.add("a", dtype::bool_, {5}).add("b", dtype::bfloat16, {1});
    for (auto const* list : {&half, &scaled, &flags}) {
        BOOST_TEST(unviewable(list->view(), vllm_packing()) == 1U);
        BOOST_TEST(ordered_names(*list) == (names{"b", "a"}), each);
    }
}

BOOST_AUTO_TEST_CASE(a_layer_of_odd_size_does_not_spoil_the_next) {
    tensor_list list;
    for (auto const* layer : {"layers.0.", "layers.1.", "layers.2."}) {
        list.add(layer + std::string{"weight"}, dtype::float8_e4m3fn, {3, 3});
        list.add(layer + std::string{"scale"}, dtype::float32, {1});
    }
    names const expected{"layers.0.scale",  "layers.1.scale",  "layers.2.scale",
                         "layers.0.weight", "layers.1.weight", "layers.2.weight"};
    BOOST_TEST(ordered_names(list) == expected, each);
    // Each layer in a chunk of its own begins at offset 0: then the layers stay together.
    names const by_layer{"layers.0.scale",  "layers.0.weight", "layers.1.scale",
                         "layers.1.weight", "layers.2.scale",  "layers.2.weight"};
    BOOST_TEST(ordered_names(list, vllm_packing(12)) == by_layer, each);
}

BOOST_AUTO_TEST_CASE(the_order_is_a_permutation_that_the_peer_can_view) {
    std::mt19937 random{99};
    for (int round = 0; round < 300; ++round) {
        auto const list = test::random_tensors(random, random() % 50, 1);
        auto const options = vllm_packing(1 + random() % 2000);
        auto const order = order_for_vllm(list.view(), options);
        auto sorted = order;
        std::sort(sorted.begin(), sorted.end());
        bool complete = sorted.size() == list.view().size();
        for (std::size_t i = 0; i < sorted.size(); ++i) complete = complete && sorted[i] == i;
        BOOST_TEST(complete);
        std::vector<planned_tensor> sent;
        for (auto const index : order) sent.push_back(list.view()[index]);
        BOOST_TEST(unviewable(sent, options) == 0U);
    }
}

BOOST_AUTO_TEST_CASE(it_is_the_same_on_every_rank) {
    std::mt19937 random{5};
    auto const list = test::random_tensors(random, 200, 1);
    BOOST_TEST(order_for_vllm(list.view()) == order_for_vllm(list.view()), each);
}

BOOST_AUTO_TEST_CASE(wrong_input_is_refused) {
    tensor_list list;
    list.add_bytes(1, 0).add_bytes(1, 1);
    BOOST_CHECK_THROW(order_for_vllm(list.view()), bad_argument);
    BOOST_CHECK_THROW(order_for_vllm(list.view(), vllm_packing(0)), bad_argument);
    list.tensors()[1].bytes = 9;
    BOOST_CHECK_THROW(order_for_vllm(list.view()), bad_input);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
