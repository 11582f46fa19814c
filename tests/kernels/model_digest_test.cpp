// SPDX-License-Identifier: Apache-2.0
#include <weightcast/kernels/model_digest.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <xxhash.h>
#include <boost/test/unit_test.hpp>

#include <weightcast/tensor/range_tensor.hpp>
#include "kernels/strided_tensors.hpp"
#include "support/says.hpp"

namespace {

using namespace weightcast;
using test::says;

struct record {
    std::vector<std::byte> bytes;
    void number(std::uint64_t n) {
        for (int i = 0; i < 8; ++i) bytes.push_back(static_cast<std::byte>(n >> (8 * i) & 0xFFU));
    }
    void text(std::string const& t) {
        number(t.size());
        raw(t.data(), t.size());
    }
    void raw(void const* data, std::size_t n) {
        auto const* p = static_cast<std::byte const*>(data);
        bytes.insert(bytes.end(), p, p + n);
    }
    std::uint64_t digest() const { return XXH3_64bits(bytes.data(), bytes.size()); }
};

std::array<float, 6> const values{1, 2, 3, 4, 5, 6};
const_tensor_view<> const matrix{values.data(), dtype::float32, {2, 3}};
const_tensor_view<> const row{values.data(), dtype::float32, {6}};

BOOST_AUTO_TEST_SUITE(model_digest_suite)

BOOST_AUTO_TEST_CASE(a_tensors_encoding_is_as_documented) {
    record expected;
    expected.text("float32");
    expected.number(2);
    expected.number(2);
    expected.number(3);
    expected.number(24);
    expected.raw(values.data(), 24);
    BOOST_TEST(tensor_digest(matrix) == expected.digest());
}

BOOST_AUTO_TEST_CASE(a_models_encoding_is_as_documented) {
    record expected;
    for (std::string const name : {"a", "b"}) {
        expected.text(name);
        expected.text("float32");
        expected.number(2);
        expected.number(2);
        expected.number(3);
        expected.number(24);
        expected.raw(values.data(), 24);
    }
    std::vector<named_view<>> const model{{"b", matrix}, {"a", matrix}};
    BOOST_TEST(model_digest(model) == expected.digest());
}

// Fixed for good: printed digests are compared between versions and machines.
BOOST_AUTO_TEST_CASE(digests_do_not_change_between_versions) {
    std::array<std::uint8_t, 4> const bytes{1, 2, 3, 4};
    const_tensor_view<> const tensor{bytes.data(), dtype::uint8, {4}};
    BOOST_TEST(digest_text(tensor_digest(tensor)) == "665b92ef830ddc38");
    BOOST_TEST(digest_text(model_digest(std::vector<named_view<>>{{"w", tensor}})) ==
               "8da6918b9ff786ea");
    BOOST_TEST(digest_text(model_digest(std::vector<named_view<>>{})) == "2d06800538d394c2");
}

BOOST_AUTO_TEST_CASE(order_of_the_tensors_does_not_matter) {
    std::vector<named_view<>> const forward{{"a", matrix}, {"a.b", row}, {"b", row}, {"B", row}};
    std::list<named_view<>> const backward(forward.rbegin(), forward.rend());
    BOOST_TEST(model_digest(forward) == model_digest(backward));
}

BOOST_AUTO_TEST_CASE(names_are_ordered_byte_by_byte) {
    model_digest_state state;
    for (std::string const name : {"", "A", "a", "a.1", "a.10", "a.2", "\xC3\xA9"}) {
        BOOST_CHECK_NO_THROW(state.add(name, row));
    }
}

BOOST_AUTO_TEST_CASE(strides_do_not_matter) {
    for (auto const& c : test::strided_cases()) {
        BOOST_TEST_CONTEXT(c.name) {
            auto const memory = test::random_bytes(test::reach(c), 1);
            auto const dense = test::flattened(c, memory.data());
            const_tensor_view<> const strided{memory.data(), c.type, c.shape, c.strides};
            const_tensor_view<> const contiguous{dense.data(), c.type, c.shape};
            BOOST_TEST(tensor_digest(strided) == tensor_digest(contiguous));
        }
    }
}

BOOST_AUTO_TEST_CASE(large_strided_tensors_are_digested_in_pieces) {
    test::strided_case const c{"large", dtype::float32, {123, 301}, {1, 124}};
    auto const memory = test::random_bytes(test::reach(c), 2);
    auto const dense = test::flattened(c, memory.data());
    BOOST_TEST(dense.size() > 100'000U);
    BOOST_TEST(tensor_digest({memory.data(), c.type, c.shape, c.strides}) ==
               tensor_digest({dense.data(), c.type, c.shape}));
}

BOOST_AUTO_TEST_CASE(each_part_counts) {
    auto changed = values;
    changed[5] = 7;
    std::set<std::uint64_t> const digests{
        tensor_digest(matrix),
        tensor_digest(row),
        tensor_digest({values.data(), dtype::float32, {3, 2}}),
        tensor_digest({values.data(), dtype::int32, {2, 3}}),
        tensor_digest({values.data(), dtype::float32, {1, 2, 3}}),
        tensor_digest({values.data(), dtype::float32, {2, 3}, {1, 2}}),
        tensor_digest({changed.data(), dtype::float32, {2, 3}}),
        tensor_digest({values.data(), dtype::float32, {5}}),
        tensor_digest({nullptr, dtype::float32, {0}}),
        tensor_digest({nullptr, dtype::float32, {0, 3}}),
        tensor_digest({values.data(), dtype::float32, {}}),
        tensor_digest({values.data(), dtype::float32, {1}}),
    };
    BOOST_TEST(digests.size() == 12U);
}

BOOST_AUTO_TEST_CASE(names_are_covered_and_cannot_run_into_what_follows) {
    auto const digest = [](std::vector<named_view<>> const& model) { return model_digest(model); };
    std::set<std::uint64_t> const digests{
        digest({}),
        digest({{"", row}}),
        digest({{"a", row}}),
        digest({{"ab", row}}),
        digest({{"a", row}, {"b", row}}),
        digest({{"a", matrix}, {"b", row}}),
        digest({{"a", row}, {"b", matrix}}),
    };
    BOOST_TEST(digests.size() == 7U);
    BOOST_TEST(digest({{"a", row}}) != tensor_digest(row));
}

BOOST_AUTO_TEST_CASE(names_that_come_twice_or_late_are_refused) {
    std::vector<named_view<>> const twice{{"a", row}, {"b", row}, {"a", matrix}};
    BOOST_CHECK_EXCEPTION(model_digest(twice), bad_argument, says({"'a'", "once and in order"}));
    model_digest_state state;
    state.add("b", row);
    auto const before = state.value();
    BOOST_CHECK_EXCEPTION(state.add("a", row), bad_argument, says({"got 'a' after 'b'"}));
    BOOST_CHECK_THROW(state.add("b", row), bad_argument);
    BOOST_TEST(state.value() == before);
    BOOST_CHECK_NO_THROW(state.add("c", row));
}

BOOST_AUTO_TEST_CASE(any_named_host_tensor_will_do) {
    struct weight {
        std::string name;
        std::vector<float> tensor;
    };
    std::vector<weight> const weights{{"w", {1, 2, 3, 4, 5, 6}}};
    BOOST_TEST(model_digest(weights) == model_digest(std::vector<named_view<>>{{"w", row}}));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
