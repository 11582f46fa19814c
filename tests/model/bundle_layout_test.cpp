// SPDX-License-Identifier: Apache-2.0
// Bundles: what a rank loads means, dequantized, what a plain loop over the checkpoint says.
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <support/says.hpp>
#include <weightcast/model/bundle_layout.hpp>
#include <weightcast/model/layout.hpp>

namespace weightcast::test {
namespace {

using namespace layouts;
using names = std::vector<std::vector<std::string>>;

/// A dense row-major matrix of numbers.
struct matrix {
    std::int64_t rows = 0;
    std::int64_t columns = 0;
    std::vector<std::int64_t> values{};

    std::int64_t at(std::int64_t r, std::int64_t c) const {
        BOOST_REQUIRE((r >= 0 && r < rows && c >= 0 && c < columns));
        return values[static_cast<std::size_t>(r * columns + c)];
    }
};
matrix made(std::int64_t rows, std::int64_t columns,
            std::function<std::int64_t(std::int64_t, std::int64_t)> const& value) {
    matrix m{rows, columns, {}};
    for (std::int64_t r = 0; r < rows; ++r) {
        for (std::int64_t c = 0; c < columns; ++c) m.values.push_back(value(r, c));
    }
    return m;
}
matrix numbered(std::int64_t rows, std::int64_t columns, std::int64_t from) {
    return made(rows, columns,
                [=](std::int64_t r, std::int64_t c) { return from + r * columns + c; });
}

class checkpoint {
  public:
    parameter add(std::string const& name, dtype type, matrix m) {
        parameter described{name, type, {m.rows, m.columns}};
        tensors_[name] = std::move(m);
        return described;
    }
    matrix const& operator[](std::string const& name) const { return tensors_.at(name); }

    /// The own tensor that a layout makes of the checkpoint, element by element; each is written once.
    matrix loaded(layout const& own) const {
        matrix to{own.shape()[0], own.shape()[1], {}};
        to.values.assign(element_count(own.shape()), -1);
        for (auto const& one : resolve(own)) {
            auto const& from = tensors_.at(one.expected.name);
            for (auto const& region : one.regions) copy(region, from, to);
        }
        for (auto const value : to.values) BOOST_REQUIRE(value != -1);
        return to;
    }

  private:
    static void copy(tensor_region const& region, matrix const& from, matrix& to) {
        for (std::int64_t r = 0; r < region.sizes[0]; ++r) {
            for (std::int64_t c = 0; c < region.sizes[1]; ++c) {
                auto const element = static_cast<std::int64_t>(region.first_element) +
                                     r * region.strides[0] + c * region.strides[1];
                auto& value = to.values.at(static_cast<std::size_t>(element));
                BOOST_REQUIRE(value == -1);
                value = from.at(region.offset[0] + r, region.offset[1] + c);
            }
        }
    }
    std::map<std::string, matrix> tensors_;
};

// --- FP8 with a scale a block ---

constexpr std::int64_t block = 4;

bundle_layout fp8(checkpoint& c, std::string const& name, std::int64_t rows, std::int64_t columns,
                  std::int64_t from) {
    auto const weight = c.add(name, dtype::float8_e4m3fn, numbered(rows, columns, from));
    auto const of_scales =
        numbered((rows + block - 1) / block, (columns + block - 1) / block, from * 7);
    auto const scales = c.add(name + "_scale", dtype::float32, of_scales);
    return block_scaled(weight, scales, {block, block});
}
matrix dequantized(matrix const& weight, matrix const& scales) {
    return made(weight.rows, weight.columns, [&](std::int64_t r, std::int64_t c) {
        return weight.at(r, c) * scales.at(r / block, c / block);
    });
}
matrix dequantized(checkpoint const& c, std::string const& name) {
    return dequantized(c[name], c[name + "_scale"]);
}
matrix dequantized(checkpoint const& c, bundle_layout const& own) {
    BOOST_REQUIRE(own.members().size() == 2U);
    auto const result = dequantized(c.loaded(own.members()[0].made_of),  //
                                    c.loaded(own.members()[1].made_of));
    BOOST_TEST(own.logical_shape() == (extents{result.rows, result.columns}));
    return result;
}
void check_equal(matrix const& found, matrix const& expected) {
    BOOST_TEST(found.rows == expected.rows);
    BOOST_TEST(found.columns == expected.columns);
    BOOST_TEST(found.values == expected.values, boost::test_tools::per_element());
}

parameter fp8_weight(std::int64_t rows, std::int64_t columns) {
    return {"w", dtype::float8_e4m3fn, {rows, columns}};
}
parameter fp8_scales(std::int64_t rows, std::int64_t columns) {
    return {"w_scale_inv", dtype::float32, {rows, columns}};
}

BOOST_AUTO_TEST_SUITE(bundle_layout_suite)

BOOST_AUTO_TEST_CASE(blocks_are_128_by_128_and_sizes_need_not_divide) {
    auto const whole_one = block_scaled(fp8_weight(300, 257), fp8_scales(3, 3));
    BOOST_TEST(whole_one.logical_shape() == (extents{300, 257}));
    BOOST_REQUIRE(whole_one.members().size() == 2U);
    BOOST_TEST(whole_one.members()[0].unit == (extents{1, 1}));
    BOOST_TEST(whole_one.members()[1].unit == (extents{128, 128}));
    BOOST_TEST(whole_one.members()[1].made_of.shape() == (extents{3, 3}));
    BOOST_TEST((whole_one.groups() == names{{"w", "w_scale_inv"}}));

    auto const last = sliced(whole_one, 0, {256, 300});
    BOOST_TEST(last.logical_shape() == (extents{44, 257}));
    BOOST_TEST(last.members()[0].made_of.shape() == (extents{44, 257}));
    BOOST_TEST(last.members()[1].made_of.shape() == (extents{1, 3}));
    BOOST_TEST((last.groups() == names{{"w", "w_scale_inv"}}));
    auto const none = sliced(whole_one, 0, {300, 300});
    BOOST_TEST(none.members()[1].made_of.shape() == (extents{0, 3}));
    BOOST_TEST((none.groups() == names{{"w", "w_scale_inv"}}));  // also where nothing is held
}

BOOST_AUTO_TEST_CASE(a_stack_of_experts_has_a_block_of_three_numbers) {
    parameter const weight{"w", dtype::float8_e4m3fn, {3, 200, 128}};
    parameter const scales{"s", dtype::float32, {3, 2, 1}};
    auto const shard = sharded(block_scaled(weight, scales, {1, 128, 128}), 0, {2, 3});
    BOOST_TEST(shard.members()[1].made_of.shape() == (extents{1, 2, 1}));
}

BOOST_AUTO_TEST_CASE(a_scalar_and_an_empty_tensor_are_bundles_too) {
    auto const scalar = bundle({}, {{whole({"w", dtype::uint8, {}}), {}}});
    BOOST_TEST(scalar.logical_shape() == extents{});
    auto const empty = block_scaled(fp8_weight(0, 5), fp8_scales(0, 1));
    BOOST_TEST(sharded(empty, 0, {1, 2}).logical_shape() == (extents{0, 5}));
}

BOOST_AUTO_TEST_CASE(shards_of_both_dimensions_take_their_scales_along) {
    checkpoint c;
    auto const w = fp8(c, "w", 16, 10, 1);  // the last block of a row is of two columns
    auto const expected = dequantized(c, "w");
    for (std::int64_t rank = 0; rank < 2; ++rank) {
        check_equal(dequantized(c, sharded(w, 0, {rank, 2})),
                    made(8, 10, [&](auto i, auto j) { return expected.at(i + rank * 8, j); }));
    }
    for (auto const& range : {index_range{0, 4}, {4, 8}, {8, 10}, {4, 10}, {0, 10}}) {
        check_equal(dequantized(c, sliced(w, 1, range)),
                    made(16, range.size(),
                         [&](auto i, auto j) { return expected.at(i, j + range.first); }));
    }
    auto const v = fp8(c, "v", 5, 16, 500);
    for (std::int64_t rank = 0; rank < 2; ++rank) {
        check_equal(dequantized(c, sharded(v, 1, {rank, 2})), made(5, 8, [&](auto i, auto j) {
                        return dequantized(c, "v").at(i, j + rank * 8);
                    }));
    }
}

BOOST_AUTO_TEST_CASE(a_cut_inside_a_block_is_refused_with_the_numbers) {
    auto const w = block_scaled(fp8_weight(300, 256), fp8_scales(3, 2));
    BOOST_CHECK_EXCEPTION(sharded(w, 0, {0, 2}), bad_argument,
                          (says{"float32[3, 2] of 'w_scale_inv'", "dimension 0 at 150 of 300",
                                "a block of 128", "128 and 256"}));
    BOOST_CHECK_EXCEPTION(sliced(w, 0, {1, 300}), bad_argument,
                          (says{"'w_scale_inv'", "at 1 of 300", "0 and 128"}));
    BOOST_CHECK_EXCEPTION(sliced(w, 0, {0, 299}), bad_argument,
                          (says{"at 299 of 300", "256 and 300"}));
    BOOST_CHECK_EXCEPTION(sliced(w, 1, {200, 200}), bad_argument,
                          (says{"dimension 1 at 200 of 256", "128 and 256"}));
    BOOST_TEST(sharded(w, 1, {1, 2}).members()[1].made_of.shape() == (extents{3, 1}));
}

BOOST_AUTO_TEST_CASE(block_fp8_with_fused_w13_and_sharded_w2_means_the_same_on_two_ranks) {
    checkpoint c;
    constexpr std::int64_t inner = 16;
    constexpr std::int64_t hidden = 10;
    auto const w1 = fp8(c, "w1", inner, hidden, 1);
    auto const w3 = fp8(c, "w3", inner, hidden, 1000);
    auto const w2 = fp8(c, "w2", hidden, inner, 2000);
    auto const plain1 = dequantized(c, "w1");
    auto const plain3 = dequantized(c, "w3");
    auto const plain2 = dequantized(c, "w2");
    constexpr auto half = inner / 2;
    for (std::int64_t rank = 0; rank < 2; ++rank) {
        auto const w13 = fused(0, {sharded(w1, 0, {rank, 2}), sharded(w3, 0, {rank, 2})});
        BOOST_TEST(w13.logical_shape() == (extents{inner, hidden}));
        BOOST_TEST(w13.members()[1].unit == (extents{block, block}));
        BOOST_TEST((w13.groups() == names{{"w1", "w1_scale"}, {"w3", "w3_scale"}}));
        check_equal(dequantized(c, w13), made(inner, hidden, [&](auto i, auto j) {
                        return i < half ? plain1.at(rank * half + i, j)
                                        : plain3.at(rank * half + i - half, j);
                    }));
        check_equal(
            dequantized(c, sharded(w2, 1, {rank, 2})),
            made(hidden, half, [&](auto i, auto j) { return plain2.at(i, rank * half + j); }));
    }
}

BOOST_AUTO_TEST_CASE(only_the_last_part_may_end_inside_a_block) {
    checkpoint c;
    auto const aligned = fp8(c, "a", 8, 4, 1);
    auto const crooked = fp8(c, "b", 6, 4, 100);
    auto const both = fused(0, {aligned, crooked});
    check_equal(dequantized(c, both), made(14, 4, [&](auto i, auto j) {
                    return i < 8 ? dequantized(c, "a").at(i, j) : dequantized(c, "b").at(i - 8, j);
                }));
    BOOST_CHECK_EXCEPTION(fused(0, {crooked, aligned}), bad_argument,
                          (says{"part 0", "'b_scale'", "ends at 6 of 14 in dimension 0",
                                "a block of 4", "only the last part"}));
    BOOST_CHECK_EXCEPTION(fused(0, {both, aligned}), bad_argument, says{"ends at 14 of 22"});
    // what follows is empty, so that it is the tensor's end
    BOOST_TEST(fused(0, {crooked, sliced(aligned, 0, {8, 8})}).logical_shape() == (extents{6, 4}));
    BOOST_TEST(fused(1, {aligned, aligned}).logical_shape() == (extents{8, 8}));
}

// --- int4 with groups ---

constexpr std::int64_t per_element = 8;
constexpr std::int64_t group = 16;

std::int64_t nibble(std::int64_t packed, std::int64_t index) { return packed >> 4 * index & 15; }

/// GPTQ's: eight rows of the logical matrix in an element, a scale and a zero for each group of rows.
matrix dequantized(matrix const& packed, matrix const& scales, matrix const& zeros,
                   std::int64_t rows) {
    return made(rows, packed.columns, [&](std::int64_t r, std::int64_t c) {
        auto const value = nibble(packed.at(r / per_element, c), r % per_element);
        auto const zero = nibble(zeros.at(r / group, c / per_element), c % per_element);
        return (value - zero) * scales.at(r / group, c);
    });
}

BOOST_AUTO_TEST_CASE(int4_with_scales_and_zeros_means_the_same_on_two_ranks) {
    checkpoint c;
    constexpr std::int64_t in = 64;
    constexpr std::int64_t out = 32;
    auto const bits = [](std::int64_t seed) {
        return [seed](std::int64_t r, std::int64_t col) {
            return (r * 40503 + col * 65599 + seed) * 2654435761 & 0xFFFFFFFF;
        };
    };
    auto const packed = c.add("qweight", dtype::int32, made(in / per_element, out, bits(1)));
    auto const scales = c.add("scales", dtype::float16, numbered(in / group, out, 3));
    auto const zeros = c.add("qzeros", dtype::int32, made(in / group, out / per_element, bits(2)));
    auto const w = group_quantized({in, out}, packed, scales, zeros, {.group = group});
    BOOST_TEST((w.groups() == names{{"qweight", "scales", "qzeros"}}));
    BOOST_TEST(w.members()[0].unit == (extents{8, 1}));
    BOOST_TEST(w.members()[1].unit == (extents{16, 1}));
    BOOST_TEST(w.members()[2].unit == (extents{16, 8}));
    auto const plain = dequantized(c["qweight"], c["scales"], c["qzeros"], in);
    for (std::int64_t rank = 0; rank < 2; ++rank) {
        for (std::size_t dim = 0; dim < 2; ++dim) {
            auto const own = sharded(w, dim, {rank, 2});
            auto const& m = own.members();
            auto const found = dequantized(c.loaded(m[0].made_of), c.loaded(m[1].made_of),
                                           c.loaded(m[2].made_of), own.logical_shape()[0]);
            check_equal(found,
                        made(dim == 0 ? in / 2 : in, dim == 1 ? out / 2 : out, [&](auto i, auto j) {
                            return dim == 0 ? plain.at(i + rank * in / 2, j)
                                            : plain.at(i, j + rank * out / 2);
                        }));
        }
    }
    // eight columns share an element of the zeros, sixteen rows a scale
    BOOST_CHECK_EXCEPTION(sharded(w, 1, {0, 8}), bad_argument,
                          (says{"'qzeros'", "dimension 1 at 4 of 32", "a block of 8"}));
    BOOST_CHECK_EXCEPTION(sharded(w, 0, {0, 8}), bad_argument,
                          (says{"'scales'", "dimension 0 at 8 of 64", "a block of 16"}));
    BOOST_CHECK_EXCEPTION(sliced(w, 0, {0, 12}), bad_argument,
                          (says{"'qweight'", "at 12 of 64", "a block of 8", "8 and 16"}));
}

BOOST_AUTO_TEST_CASE(other_formats_of_groups_and_symmetric_ones) {
    parameter const q{"q", dtype::int32, {64, 4}};
    parameter const s{"s", dtype::float16, {4, 32}};
    parameter const z{"z", dtype::int32, {4, 4}};
    auto const awq = group_quantized({64, 32}, q, s, z, {.group = 16, .packed_dim = 1});
    BOOST_TEST(awq.members()[0].unit == (extents{1, 8}));
    BOOST_TEST(awq.members()[2].unit == (extents{16, 8}));

    parameter const tq{"weight_packed", dtype::int32, {32, 8}};
    parameter const ts{"weight_scale", dtype::bfloat16, {32, 4}};
    parameter const tz{"weight_zero_point", dtype::int32, {4, 4}};
    group_format const transposed{.group = 16, .group_dim = 1, .packed_dim = 1, .zeros_dim = 0};
    BOOST_TEST(group_quantized({32, 64}, tq, ts, tz, transposed).members()[2].unit ==
               (extents{8, 16}));
    // zeros packed along the groups: an element stands for eight groups
    parameter const column{"z", dtype::int32, {1, 32}};
    BOOST_TEST(group_quantized({64, 32}, {"p", dtype::int32, {8, 32}}, s, column,
                               {.group = 16, .zeros_dim = 0})
                   .members()[2]
                   .unit == (extents{128, 1}));
    auto const symmetric = group_quantized({32, 64}, tq, ts, std::nullopt, transposed);
    BOOST_TEST(symmetric.members().size() == 2U);
    BOOST_TEST((symmetric.groups() == names{{"weight_packed", "weight_scale"}}));
}

BOOST_AUTO_TEST_CASE(formats_that_do_not_fit_are_refused) {
    parameter const q{"q", dtype::int32, {8, 32}};
    parameter const s{"s", dtype::float16, {4, 32}};
    auto const made_with = [&](group_format const& format) {
        static_cast<void>(group_quantized({64, 32}, q, s, std::nullopt, format));
    };
    made_with({.group = 16});
    BOOST_CHECK_EXCEPTION(made_with({.group = 32}), bad_argument,
                          (says{"'s'", "needs shape [2, 32]", "found [4, 32]"}));
    for (auto const& format : {group_format{.group_dim = 2}, {.packed_dim = 2}, {.zeros_dim = 2}}) {
        BOOST_CHECK_EXCEPTION(made_with(format), bad_argument,
                              (says{"'q'", "dimension 2", "[64, 32]"}));
    }
    BOOST_CHECK_EXCEPTION(made_with({.group = 0}), bad_argument,
                          (says{"'q'", "groups of 0 indices", "8 values"}));
    BOOST_CHECK_EXCEPTION(made_with({.per_element = 0}), bad_argument, says{"0 values"});
    BOOST_CHECK_EXCEPTION(made_with({.group = std::numeric_limits<std::int64_t>::max() / 4}),
                          bad_argument, says{"groups of 2305843009213693951"});
}

// --- groups ---

BOOST_AUTO_TEST_CASE(names_of_one_checkpoint_tensor_form_one_group) {
    checkpoint c;
    auto const qkv = fp8(c, "qkv", 16, 4, 1);
    auto const q = sliced(qkv, 0, {0, 8});
    auto const v = sliced(qkv, 0, {12, 16});
    BOOST_TEST((fused(0, {q, v}).groups() == names{{"qkv", "qkv_scale"}}));

    auto const other = fp8(c, "o", 8, 4, 200);
    auto const shared = block_scaled({"p", dtype::float8_e4m3fn, {16, 4}},
                                     {"qkv_scale", dtype::float32, {4, 1}}, {block, block});
    BOOST_TEST((fused(0, {q, other, shared}).groups() ==
                names{{"qkv", "qkv_scale", "p"}, {"o", "o_scale"}}));
    // one that shares names with two groups makes them one
    auto const bridge =
        bundle({8, 4}, {{sliced(whole({"qkv", dtype::float8_e4m3fn, {16, 4}}), 0, {0, 8}), {1, 1}},
                        {whole({"o_scale", dtype::float32, {2, 1}}), {4, 4}}});
    auto const joined = fused(0, {q, fp8(c, "x", 4, 4, 9), other, shared, bridge});
    BOOST_TEST(
        (joined.groups() == names{{"qkv", "qkv_scale", "p", "o", "o_scale"}, {"x", "x_scale"}}));
    // what was joined stays so for those that come later
    auto const later = bundle({8, 4}, {{whole({"o", dtype::float8_e4m3fn, {8, 4}}), {1, 1}},
                                       {whole({"n", dtype::float32, {2, 1}}), {4, 4}}});
    BOOST_TEST((fused(0, {q, other, bridge, later}).groups() ==
                names{{"qkv", "qkv_scale", "o", "o_scale", "n"}}));
    auto const first_two = fused(0, {other, q, bridge});
    BOOST_TEST((first_two.groups() == names{{"o", "o_scale", "qkv", "qkv_scale"}}));
}

BOOST_AUTO_TEST_CASE(members_that_are_fused_already_are_one_group) {
    auto const weight = fused(
        0, std::vector{whole({"w1", dtype::uint8, {4, 4}}), whole({"w3", dtype::uint8, {4, 4}})});
    auto const scales = fused(0, std::vector{whole({"s1", dtype::float32, {1, 1}}),
                                             whole({"s3", dtype::float32, {1, 1}})});
    auto const w13 = bundle({8, 4}, {{weight, {1, 1}}, {scales, {4, 4}}});
    BOOST_TEST((w13.groups() == names{{"w1", "w3", "s1", "s3"}}));
    auto const padding = bundle({4, 4}, {{unowned(dtype::uint8, {4, 4}), {1, 1}},
                                         {unowned(dtype::float32, {1, 1}), {4, 4}}});
    BOOST_TEST(padding.groups().empty());
    BOOST_TEST(fused(0, {w13, padding}).logical_shape() == (extents{12, 4}));
}

// --- what does not fit ---

BOOST_AUTO_TEST_CASE(members_that_do_not_fit_are_refused_with_the_numbers) {
    BOOST_CHECK_EXCEPTION(
        block_scaled(fp8_weight(300, 256), fp8_scales(2, 2)), bad_argument,
        (says{"'w_scale_inv'", "[300, 256]", "[128, 128]", "needs shape [3, 2]", "found [2, 2]"}));
    BOOST_CHECK_EXCEPTION(block_scaled(fp8_weight(300, 256), fp8_scales(3, 2), {128}), bad_argument,
                          (says{"'w_scale_inv'", "unit [128]", "[300, 256]"}));
    for (extents const& unit : {extents{0, 128}, extents{128, -1}}) {
        BOOST_CHECK_EXCEPTION(block_scaled(fp8_weight(300, 256), fp8_scales(3, 2), unit),
                              bad_argument, (says{"'w_scale_inv'", "unit " + to_string(unit)}));
    }
    BOOST_CHECK_EXCEPTION(bundle({2, 2}, {}), bad_argument, says{"at least one member"});
    BOOST_CHECK_EXCEPTION(bundle({2, -1}, {{whole(fp8_weight(2, 2)), {1, 1}}}), bad_argument,
                          says{"bundle of shape [2, -1]: a tensor's shape"});
    BOOST_CHECK_EXCEPTION(
        bundle({2, 2}, {{whole(fp8_weight(2, 2)), {1, 1}}, {whole(fp8_weight(1, 1)), {2, 2}}}),
        bad_argument, (says{"'w'", "two members", "[2, 2]"}));
}

BOOST_AUTO_TEST_CASE(dimensions_ranks_and_bounds_outside_are_refused) {
    auto const w = block_scaled(fp8_weight(300, 256), fp8_scales(3, 2));
    BOOST_TEST(describe(w) ==
               "bundle [300, 256] of 2 members, own tensor float8_e4m3fn[300, 256] of 'w' first");
    for (std::size_t const dim : {std::size_t{2}, std::size_t{9}}) {
        says const refusal{"bundle [300, 256]", "no dimension " + std::to_string(dim)};
        BOOST_CHECK_EXCEPTION(sliced(w, dim, {0, 1}), bad_argument, refusal);
        BOOST_CHECK_EXCEPTION(sharded(w, dim, {0, 1}), bad_argument, refusal);
        BOOST_CHECK_EXCEPTION(fused(dim, {w, w}), bad_argument, refusal);
    }
    BOOST_CHECK_EXCEPTION(sharded(w, 0, {2, 2}), bad_argument, says{"rank 2"});
    for (auto const& bounds : {index_range{-128, 0}, {0, 301}, {256, 128}}) {
        BOOST_CHECK_EXCEPTION(
            sliced(w, 0, bounds), bad_argument,
            (says{"bundle [300, 256]",
                  "[" + std::to_string(bounds.first) + ", " + std::to_string(bounds.last) + ")",
                  "outside dimension 0"}));
    }
}

BOOST_AUTO_TEST_CASE(parts_that_differ_are_refused) {
    checkpoint c;
    auto const w = fp8(c, "w", 8, 8, 1);
    BOOST_CHECK_EXCEPTION(fused(0, std::vector<bundle_layout>{}), bad_argument,
                          says{"at least one part"});
    auto const plain = bundle({8, 8}, {{whole({"p", dtype::float8_e4m3fn, {8, 8}}), {1, 1}}});
    BOOST_CHECK_EXCEPTION(fused(0, {w, plain}), bad_argument,
                          (says{"part 1", "'p'", "expected 2 members, found 1"}));
    auto const coarse = block_scaled({"v", dtype::float8_e4m3fn, {8, 8}},
                                     {"v_scale", dtype::float32, {1, 1}}, {8, 8});
    BOOST_CHECK_EXCEPTION(fused(0, {w, coarse}), bad_argument,
                          (says{"part 1", "unit [4, 4] of member 1", "found [8, 8]"}));
    // 7 and 8 columns have as many scales
    BOOST_CHECK_EXCEPTION(fused(0, {w, fp8(c, "x", 8, 7, 100)}), bad_argument,
                          (says{"part 1", "[8, 7]", "shapes differ beside dimension 0"}));
    auto const other_type = block_scaled({"y", dtype::float8_e5m2, {8, 8}},
                                         {"y_scale", dtype::float32, {2, 2}}, {block, block});
    BOOST_CHECK_EXCEPTION(fused(0, {w, other_type}), bad_argument, (says{"part 1", "float8_e5m2"}));
    parameter const line{"z", dtype::float8_e4m3fn, {8}};
    auto const flat = block_scaled(line, {"z_scale", dtype::float32, {2}}, {block});
    BOOST_CHECK_EXCEPTION(fused(0, {w, flat}), bad_argument,
                          (says{"part 1", "[8]", "shapes differ"}));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weightcast::test
