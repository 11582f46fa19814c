// SPDX-License-Identifier: Apache-2.0
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <weightcast/plan/announcement.hpp>

#include <support/says.hpp>

namespace {

using namespace weightcast;
using message = weightcast::announcement;
using test::says;
using bytes = std::vector<std::byte>;

message full_message() {
    message a{.epoch = 7,
              .target = target_id::adapter("lora-3"),
              .version = {12, "step 12"},
              .options = {.chunk_bytes = 1 << 20, .alignment = 128, .direct_from = 4096, .ring = 3},
              .coverage = update_coverage::partial,
              .verify = true,
              .shared = true,
              .parameters = {{"model.embed.weight", dtype::bfloat16, {32, 8}, weight_role::merged},
                             {"model.layers.0.scale", dtype::float32, {}},
                             {"empty", dtype::float8_e4m3fn, {3, 0}}},
              .roots = {0, 2, 1},
              .packed = {0, 1, 0},
              .plan_digest = 0x0123456789abcdefU};
    return a;
}
/// The message with other bytes at that place.
template <class T>
bytes patched(bytes encoded, std::size_t at, T value) {
    std::memcpy(encoded.data() + at, &value, sizeof value);
    return encoded;
}
/// Where the last parameter begins: 4 + 5 name, dtype, role, root, packed, dimensions, two extents.
constexpr std::size_t last_parameter_bytes = 4 + 5 + 1 + 1 + 4 + 1 + 1 + 16;

bool refused(bytes const& encoded) {
    try {
        static_cast<void>(decode_announcement(encoded));
    } catch (bad_input const&) {
        return true;
    }
    return false;
}

BOOST_AUTO_TEST_SUITE(announcement)

BOOST_AUTO_TEST_CASE(what_is_sent_is_what_is_read) {
    auto const sent = full_message();
    BOOST_TEST((decode_announcement(encode(sent)) == sent));
    message const least;
    BOOST_TEST((decode_announcement(encode(least)) == least));
    message const failed{.kind = announcement_kind::failed,
                         .reason = "the trainer's source threw: no file"};
    BOOST_TEST((decode_announcement(encode(failed)) == failed));
}

BOOST_AUTO_TEST_CASE(a_version_without_a_label_is_not_one_with_an_empty_one) {
    message unset;
    message empty;
    empty.version.label = "";
    BOOST_TEST((encode(unset) != encode(empty)));
    BOOST_TEST(!decode_announcement(encode(unset)).version.label.has_value());
    BOOST_TEST(decode_announcement(encode(empty)).version.label.has_value());
}

BOOST_AUTO_TEST_CASE(every_dtype_target_and_layout_passes) {
    for (std::size_t i = 0; i < dtype_count; ++i) {
        message const a{
            .parameters = {{"w", static_cast<dtype>(i), {2}}}, .roots = {0}, .packed = {0}};
        BOOST_TEST((decode_announcement(encode(a)) == a));
    }
    for (auto const& target :
         {target_id::main(), target_id::draft(), target_id::adapter(":odd id:")}) {
        BOOST_TEST((decode_announcement(encode(message{.target = target})).target == target));
    }
    message const vllm{.options = vllm_packing()};
    BOOST_TEST((decode_announcement(encode(vllm)) == vllm));
}

BOOST_AUTO_TEST_CASE(extents_past_32_bits_and_eight_dimensions_pass) {
    message const a{.parameters = {{"w", dtype::int8, {std::int64_t{1} << 40}},
                                   {"v", dtype::int8, {1, 2, 3, 4, 5, 6, 7, 8}}},
                    .roots = {0, 0},
                    .packed = {0, 0}};
    BOOST_TEST((decode_announcement(encode(a)) == a));
}

BOOST_AUTO_TEST_CASE(a_message_cut_anywhere_is_refused) {
    auto const whole = encode(full_message());
    for (std::size_t size = 0; size < whole.size(); ++size) {
        bytes const cut(whole.begin(), whole.begin() + static_cast<long>(size));
        BOOST_TEST(refused(cut), "cut at " << size);
    }
    auto longer = whole;
    longer.push_back(std::byte{0});
    BOOST_CHECK_EXCEPTION(static_cast<void>(decode_announcement(longer)), bad_input,
                          says("followed by more bytes"));
}

BOOST_AUTO_TEST_CASE(b60_bytes_that_are_no_announcement_are_refused) {
    auto const whole = encode(full_message());
    BOOST_CHECK_EXCEPTION(
        static_cast<void>(decode_announcement(patched(whole, 0, std::uint32_t{1}))), bad_input,
        says("magic"));
    BOOST_CHECK_EXCEPTION(
        static_cast<void>(decode_announcement(patched(whole, 4, std::uint8_t{2}))), bad_input,
        says("kind"));
}

BOOST_AUTO_TEST_CASE(b60_a_count_that_cannot_be_there_is_refused_before_memory_is_taken) {
    message const none;
    auto const encoded = encode(none);
    auto const at_count = encoded.size() - 4;
    for (std::uint32_t const count : {1U, 1'000U, std::numeric_limits<std::uint32_t>::max()}) {
        BOOST_CHECK_EXCEPTION(
            static_cast<void>(decode_announcement(patched(encoded, at_count, count))), bad_input,
            says("announces more items than it holds"));
    }
    // A text longer than the message.
    auto const reason = at_count - 4;
    BOOST_CHECK_EXCEPTION(
        static_cast<void>(decode_announcement(patched(encoded, reason, std::uint32_t{0x7fffffff}))),
        bad_input, says({"reason", "cut short"}));
}

BOOST_AUTO_TEST_CASE(values_out_of_range_are_refused) {
    auto const whole = encode(full_message());
    auto const parameter = whole.size() - last_parameter_bytes;
    auto const type = parameter + 9;
    BOOST_CHECK_EXCEPTION(
        static_cast<void>(decode_announcement(patched(whole, type, std::uint8_t{200}))), bad_input,
        says("dtype"));
    BOOST_CHECK_EXCEPTION(
        static_cast<void>(decode_announcement(patched(whole, type + 1, std::uint8_t{3}))),
        bad_input, says("role"));
    message uncovered = full_message();
    uncovered.coverage = static_cast<update_coverage>(4);
    BOOST_CHECK_EXCEPTION(static_cast<void>(decode_announcement(encode(uncovered))), bad_input,
                          says("coverage"));
    auto const extent = whole.size() - 8;
    BOOST_TEST(refused(patched(whole, extent, std::int64_t{-1})));
    BOOST_TEST(!refused(patched(whole, extent, std::int64_t{5})));
    message nine{
        .parameters = {{"v", dtype::int8, {1, 1, 1, 1, 1, 1, 1, 1}}}, .roots = {0}, .packed = {0}};
    auto encoded = encode(nine);
    encoded[encoded.size() - 65] = std::byte{9};
    encoded.resize(encoded.size() + 8);
    BOOST_CHECK_EXCEPTION(static_cast<void>(decode_announcement(encoded)), bad_input,
                          says("more than 8 dimensions"));
}

BOOST_AUTO_TEST_CASE(any_change_of_a_byte_is_read_or_refused_but_never_more) {
    auto const whole = encode(full_message());
    std::mt19937 random{31};
    for (int round = 0; round < 5'000; ++round) {
        auto changed = whole;
        for (auto flips = 1 + random() % 3; flips > 0; --flips) {
            changed[random() % changed.size()] = static_cast<std::byte>(random() & 0xffU);
        }
        try {
            auto const read = decode_announcement(changed);
            BOOST_TEST(read.parameters.size() == read.roots.size());
            BOOST_TEST(read.parameters.size() == read.packed.size());
        } catch (bad_input const&) {}
    }
}

BOOST_AUTO_TEST_CASE(both_sides_plan_alike_from_it) {
    auto sent = full_message();
    auto const sender = packing_plan{planned_tensors(sent), sent.options};
    sent.plan_digest = sender.digest();
    auto const received = decode_announcement(encode(sent));
    packing_plan const receiver{planned_tensors(received), received.options};
    BOOST_TEST(receiver.digest() == received.plan_digest);
    BOOST_TEST((std::ranges::equal(receiver.chunks(), sender.chunks())));
}

BOOST_AUTO_TEST_CASE(what_has_to_be_packed_is_packed_whatever_its_size) {
    message a{.options = {.direct_from = 1},
              .parameters = {{"w", dtype::float32, {4}}, {"v", dtype::float32, {4}}},
              .roots = {0, 0},
              .packed = {1, 0}};
    auto const tensors = planned_tensors(a);
    packing_plan const made{tensors, a.options};
    BOOST_TEST(made.chunks().size() == 1U);
    BOOST_TEST(made.direct().size() == 1U);
    BOOST_TEST(tensors[0].name == "w");
    BOOST_TEST(tensors[0].bytes == 16U);
}

BOOST_AUTO_TEST_CASE(a_root_that_is_no_rank_stops_the_plan) {
    auto a = full_message();
    a.roots[1] = -5;
    auto const received = decode_announcement(encode(a));
    BOOST_CHECK_THROW((packing_plan{planned_tensors(received), received.options}), bad_input);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
