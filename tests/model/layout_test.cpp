// SPDX-License-Identifier: Apache-2.0
// Layouts against a reference that knows no regions: dense tensors that are cut and joined element by element.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <support/says.hpp>
#include <weightcast/model/attention_layout.hpp>
#include <weightcast/model/expert_layout.hpp>
#include <weightcast/model/fused_layout.hpp>
#include <weightcast/model/interleaved_layout.hpp>
#include <weightcast/model/layout.hpp>
#include <weightcast/model/layout_table.hpp>
#include <weightcast/model/sliced_layout.hpp>
#include <weightcast/model/stored_layout.hpp>

namespace weightcast::test {
namespace {

using namespace layouts;

constexpr std::int64_t untouched = -1;
using index = std::vector<std::int64_t>;

// --- the reference ---

/// A dense row-major tensor of numbers.
struct dense {
    extents shape{};
    std::vector<std::int64_t> values{};

    std::int64_t at(index const& i) const {
        std::int64_t n = 0;
        for (std::size_t d = 0; d < i.size(); ++d) {
            BOOST_REQUIRE((i[d] >= 0 && i[d] < shape[d]));
            n = n * shape[d] + i[d];
        }
        return values.at(static_cast<std::size_t>(n));
    }
};

dense made(extents const& shape, std::function<std::int64_t(index const&)> const& value) {
    dense result{shape, {}};
    index i(shape.size(), 0);
    for (auto left = element_count(shape); left > 0; --left) {
        result.values.push_back(value(i));
        for (std::size_t d = shape.size(); d-- > 0;) {
            if (++i[d] < shape[d]) break;
            i[d] = 0;
        }
    }
    return result;
}
extents with(extents shape, std::size_t dim, std::int64_t size) {
    shape[dim] = size;
    return shape;
}
index with(index i, std::size_t dim, std::int64_t value) {
    i[dim] = value;
    return i;
}
dense dense_slice(dense const& t, std::size_t dim, std::int64_t first, std::int64_t last) {
    return made(with(t.shape, dim, last - first),
                [&](index const& i) { return t.at(with(i, dim, i[dim] + first)); });
}
dense dense_cat(std::size_t dim, std::vector<dense> const& parts) {
    std::int64_t size = 0;
    for (auto const& p : parts) size += p.shape[dim];
    return made(with(parts[0].shape, dim, size), [&](index const& i) {
        auto row = i[dim];
        std::size_t k = 0;
        for (; row >= parts[k].shape[dim]; ++k) row -= parts[k].shape[dim];
        return parts[k].at(with(i, dim, row));
    });
}
dense dense_interleave(std::size_t dim, std::vector<dense> const& parts,
                       std::vector<std::int64_t> const& blocks) {
    // deals rows out like cards: which (part, row) comes next
    std::vector<std::pair<std::size_t, std::int64_t>> rows;
    std::vector<std::int64_t> next(parts.size(), 0);
    while (next[0] < parts[0].shape[dim]) {
        for (std::size_t k = 0; k < parts.size(); ++k) {
            for (std::int64_t b = 0; b < blocks[k]; ++b) rows.emplace_back(k, next[k]++);
        }
    }
    return made(with(parts[0].shape, dim, static_cast<std::int64_t>(rows.size())),
                [&](index const& i) {
                    auto const [k, row] = rows[static_cast<std::size_t>(i[dim])];
                    return parts[k].at(with(i, dim, row));
                });
}
dense dense_stack(std::vector<dense> const& parts) {
    extents shape{static_cast<std::int64_t>(parts.size())};
    for (auto const s : parts[0].shape) shape.push_back(s);
    return made(shape, [&](index const& i) {
        return parts[static_cast<std::size_t>(i[0])].at(index{i.begin() + 1, i.end()});
    });
}
dense dense_take(dense const& t, std::size_t dim, std::vector<std::int64_t> const& indices) {
    return made(with(t.shape, dim, static_cast<std::int64_t>(indices.size())), [&](index const& i) {
        auto const from = indices[static_cast<std::size_t>(i[dim])];
        return from < 0 ? untouched : t.at(with(i, dim, from));
    });
}
dense dense_pad(dense const& t, std::size_t dim, std::int64_t size) {
    return made(with(t.shape, dim, size),
                [&](index const& i) { return i[dim] < t.shape[dim] ? t.at(i) : untouched; });
}
dense dense_permute(dense const& t, std::vector<std::size_t> const& order) {
    extents shape;
    for (auto const d : order) shape.push_back(t.shape[d]);
    return made(shape, [&](index const& i) {
        index from(i.size());
        for (std::size_t d = 0; d < order.size(); ++d) from[order[d]] = i[d];
        return t.at(from);
    });
}

// --- checkpoint tensors with distinct values, and regions applied to them ---

class checkpoint {
  public:
    parameter add(std::string const& name, extents const& shape) {
        tensors_[name] = made(shape, [this](index const&) { return next_++; });
        return {name, dtype::bfloat16, shape};
    }
    dense const& operator[](std::string const& name) const { return tensors_.at(name); }
    /// Adds it, as a layout.
    layout operator()(std::string const& name, extents const& shape) {
        return whole(add(name, shape));
    }

  private:
    std::int64_t next_ = 1;
    std::map<std::string, dense> tensors_;
};

/// Writes a region element by element; each own element at most once.
void apply(tensor_region const& region, dense const& from, dense& own) {
    for (std::size_t d = 0; d < region.sizes.size(); ++d) {
        BOOST_REQUIRE(region.sizes[d] > 0);
        BOOST_REQUIRE((region.strides[d] > 0 || region.sizes[d] == 1));
    }
    static_cast<void>(made(region.sizes, [&](index const& i) {
        index source(i.size());
        auto to = static_cast<std::int64_t>(region.first_element);
        for (std::size_t d = 0; d < i.size(); ++d) {
            source[d] = region.offset[d] + i[d];
            to += i[d] * region.strides[d];
        }
        auto& element = own.values.at(static_cast<std::size_t>(to));
        BOOST_REQUIRE(element == untouched);
        return element = from.at(source);
    }));
}

dense loaded(layout const& own_layout, checkpoint const& from) {
    dense own{own_layout.shape(), {}};
    own.values.assign(element_count(own.shape), untouched);
    for (auto const& one : resolve(own_layout)) {
        for (auto const& region : one.regions) apply(region, from[one.expected.name], own);
    }
    return own;
}

/// Owned and unowned regions together hold each element once.
bool is_exact(layout const& own_layout) {
    std::vector<int> seen(element_count(own_layout.shape()), 0);
    auto const count = [&](tensor_region const& r) {
        static_cast<void>(made(r.sizes, [&](index const& i) {
            auto n = static_cast<std::int64_t>(r.first_element);
            for (std::size_t d = 0; d < i.size(); ++d) n += i[d] * r.strides[d];
            return ++seen.at(static_cast<std::size_t>(n));
        }));
    };
    for (auto const& one : resolve(own_layout)) {
        std::for_each(one.regions.begin(), one.regions.end(), count);
    }
    auto const unowned = unowned_regions(own_layout);
    std::for_each(unowned.begin(), unowned.end(), count);
    return std::all_of(seen.begin(), seen.end(), [](int n) { return n == 1; });
}

void check_equal(layout const& own_layout, checkpoint const& from, dense const& expected) {
    BOOST_TEST(own_layout.shape() == expected.shape);
    auto const own = loaded(own_layout, from);
    BOOST_TEST(own.values == expected.values, boost::test_tools::per_element());
    BOOST_TEST(is_exact(own_layout));
}

resolution resolved(layout const& own, std::string const& name) {
    for (auto& one : resolve(own)) {
        if (one.expected.name == name) return one;
    }
    throw bad_argument{"no source " + name};
}

std::vector<extents> const shapes{{},     {1},    {5},       {0},       {4, 6},       {5, 1},
                                  {0, 3}, {3, 0}, {2, 3, 4}, {3, 0, 2}, {2, 3, 2, 2}, {1, 1, 1, 1}};

BOOST_AUTO_TEST_SUITE(layout_whole)

BOOST_AUTO_TEST_CASE(a_whole_tensor_is_one_region_of_equal_shape) {
    for (auto const& shape : shapes) {
        checkpoint c;
        auto const own = c("w", shape);
        check_equal(own, c, c["w"]);
        auto const one = resolved(own, "w");
        BOOST_TEST((one.expected == parameter{"w", dtype::bfloat16, shape}));
        BOOST_TEST(one.regions.size() == (element_count(shape) == 0 ? 0U : 1U));
    }
}

BOOST_AUTO_TEST_CASE(own_strides_and_index_go_into_the_regions) {
    checkpoint c;
    auto const all = resolve(c("w", {2, 3}), 9, {1, 10});
    BOOST_TEST((all[0].regions[0] == tensor_region{{0, 0}, {2, 3}, 9, 0, {1, 10}}));
    auto const rest = unowned_regions(padded(c("w", {2, 3}), 0, 4), 9, {1, 10});
    BOOST_TEST((rest == std::vector<tensor_region>{{{2, 0}, {2, 3}, 9, 2, {1, 10}}}));
}

BOOST_AUTO_TEST_CASE(wrong_descriptions_of_whole_tensors_are_refused) {
    BOOST_CHECK_THROW(whole({"", dtype::uint8, {2}}), bad_argument);
    BOOST_CHECK_EXCEPTION(whole({"w", dtype::uint8, {2, -1}}), bad_argument, says{"[2, -1]"});
    BOOST_CHECK_EXCEPTION(unowned(dtype::uint8, {-1}), bad_argument, says{"[-1]"});
    checkpoint c;
    auto const own = c("w", {2, 3});
    BOOST_CHECK_EXCEPTION(resolve(own, 0, {3}), bad_argument, (says{"'w'", "[3]", "2 dimensions"}));
    BOOST_CHECK_EXCEPTION(resolve(own, 0, {3, -1}), bad_argument, says{"[3, -1]"});
    BOOST_CHECK_EXCEPTION(unowned_regions(own, 0, {3}), bad_argument, says{"[3]"});
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(layout_shards)

BOOST_AUTO_TEST_CASE(the_remainder_goes_to_the_first_ranks) {
    auto const bounds = [](std::int64_t size, std::int64_t ranks) {
        std::vector<std::int64_t> all;
        for (std::int64_t r = 0; r < ranks; ++r)
            all.push_back(shard_bounds(size, {r, ranks}).size());
        return all;
    };
    BOOST_TEST(bounds(10, 4) == (std::vector<std::int64_t>{3, 3, 2, 2}),
               boost::test_tools::per_element());
    BOOST_TEST(bounds(2, 4) == (std::vector<std::int64_t>{1, 1, 0, 0}),
               boost::test_tools::per_element());
    BOOST_TEST(bounds(0, 2) == (std::vector<std::int64_t>{0, 0}), boost::test_tools::per_element());
    BOOST_TEST((shard_bounds(10, {1, 4}) == index_range{3, 6}));
    BOOST_TEST((shard_bounds(10, {3, 4}) == index_range{8, 10}));
}

BOOST_AUTO_TEST_CASE(shards_of_any_dimension_hold_what_the_reference_cuts) {
    for (auto const& shape : shapes) {
        for (std::size_t dim = 0; dim < shape.size(); ++dim) {
            for (std::int64_t ranks : {1, 2, 3, 7}) {
                std::int64_t first = 0;
                for (std::int64_t r = 0; r < ranks; ++r) {
                    checkpoint c;
                    auto const own = sharded(c("w", shape), dim, {r, ranks});
                    auto const size = own.shape()[dim];
                    check_equal(own, c, dense_slice(c["w"], dim, first, first + size));
                    first += size;
                }
                BOOST_TEST(first == shape[dim]);
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(a_shard_of_nothing_keeps_its_source_and_has_no_region) {
    checkpoint c;
    auto const own = sharded(c("w", {2, 3}), 0, {3, 4});
    BOOST_TEST((own.shape() == extents{0, 3}));
    BOOST_TEST(own.sources().size() == 1U);
    BOOST_TEST(resolved(own, "w").regions.empty());
    BOOST_TEST((resolved(own, "w").expected.shape == extents{2, 3}));
}

BOOST_AUTO_TEST_CASE(explicit_bounds_and_single_indices_are_cut_out) {
    checkpoint c;
    auto const w = c("w", {5, 3, 2});
    check_equal(sliced(w, 0, {1, 4}), c, dense_slice(c["w"], 0, 1, 4));
    check_equal(sliced(w, 1, {3, 3}), c, dense_slice(c["w"], 1, 3, 3));
    for (std::size_t dim = 0; dim < 3; ++dim) {
        auto expected = dense_slice(c["w"], dim, 1, 2);
        extents shape;
        for (std::size_t d = 0; d < 3; ++d) {
            if (d != dim) shape.push_back(expected.shape[d]);
        }
        expected.shape = shape;
        check_equal(selected(w, dim, 1), c, expected);
    }
    // the one place where a stride is 0
    BOOST_TEST((resolved(selected(w, 1, 2), "w").regions[0] ==
                tensor_region{{0, 2, 0}, {5, 1, 2}, 0, 0, {2, 0, 1}}));
    BOOST_TEST((selected(c("s", {1}), 0, 0).shape() == extents{}));
}

BOOST_AUTO_TEST_CASE(shards_outside_are_refused_with_their_numbers) {
    checkpoint c;
    auto const w = c("w", {5, 3});
    BOOST_CHECK_EXCEPTION(sharded(w, 2, {0, 1}), bad_argument, (says{"'w'", "no dimension 2"}));
    BOOST_CHECK_EXCEPTION(sharded(w, 0, {4, 4}), bad_argument, says{"rank 4 is none of 4 ranks"});
    BOOST_CHECK_EXCEPTION(sharded(w, 0, {-1, 4}), bad_argument, says{"rank -1"});
    BOOST_CHECK_EXCEPTION(sharded(w, 0, {0, 0}), bad_argument, says{"0 ranks"});
    BOOST_CHECK_EXCEPTION(shard_bounds(-1, {0, 1}), bad_argument, says{"-1"});
    BOOST_CHECK_EXCEPTION(sliced(w, 0, {2, 6}), bad_argument, (says{"[2, 6)", "[5, 3]"}));
    BOOST_CHECK_EXCEPTION(sliced(w, 0, {3, 2}), bad_argument, says{"[3, 2)"});
    BOOST_CHECK_EXCEPTION(sliced(w, 0, {-1, 2}), bad_argument, says{"[-1, 2)"});
    BOOST_CHECK_EXCEPTION(selected(w, 1, 3), bad_argument, (says{"no index 3", "dimension 1"}));
    BOOST_CHECK_EXCEPTION(selected(w, 1, INT64_MAX), bad_argument, says{"no index"});
    BOOST_CHECK_EXCEPTION(selected(w, 1, -1), bad_argument, says{"no index -1"});
    BOOST_CHECK_EXCEPTION(selected(w, 2, 0), bad_argument, says{"no dimension 2"});
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(layout_fused)

BOOST_AUTO_TEST_CASE(parts_of_unequal_size_lie_one_after_the_other) {
    for (std::size_t dim : {0U, 1U}) {
        checkpoint c;
        auto const a = c("a", with(extents{3, 3}, dim, 4));
        auto const b = c("b", with(extents{3, 3}, dim, 0));
        auto const d = c("d", with(extents{3, 3}, dim, 1));
        check_equal(fused(dim, {a, b, d}), c, dense_cat(dim, {c["a"], c["b"], c["d"]}));
        check_equal(fused(dim, {d, a}), c, dense_cat(dim, {c["d"], c["a"]}));
    }
}

BOOST_AUTO_TEST_CASE(each_part_is_sharded_before_it_is_fused) {
    for (std::int64_t ranks : {1, 2, 3, 5}) {
        for (std::int64_t r = 0; r < ranks; ++r) {
            checkpoint c;
            auto const gate = c("gate", {7, 4});
            auto const up = c("up", {7, 4});
            auto const own = fused(0, {sharded(up, 0, {r, ranks}), sharded(gate, 0, {r, ranks})});
            auto const b = shard_bounds(7, {r, ranks});
            check_equal(own, c,
                        dense_cat(0, {dense_slice(c["up"], 0, b.first, b.last),
                                      dense_slice(c["gate"], 0, b.first, b.last)}));
        }
    }
}

BOOST_AUTO_TEST_CASE(a_fused_checkpoint_tensor_is_sharded_part_by_part) {
    checkpoint c;
    auto const both = c("gate_up", {12, 2});
    auto const own = fused(0, {sharded(sliced(both, 0, {0, 6}), 0, {1, 2}),
                               sharded(sliced(both, 0, {6, 12}), 0, {1, 2})});
    BOOST_TEST(own.sources().size() == 1U);
    check_equal(
        own, c,
        dense_cat(0, {dense_slice(c["gate_up"], 0, 3, 6), dense_slice(c["gate_up"], 0, 9, 12)}));
}

BOOST_AUTO_TEST_CASE(parts_that_do_not_fit_are_refused_with_their_shapes) {
    checkpoint c;
    auto const a = c("a", {4, 3});
    BOOST_CHECK_EXCEPTION(fused(0, {a, c("b", {4, 2})}), bad_argument,
                          (says{"part 1", "'b'", "[4, 2]", "'a'", "[4, 3]"}));
    BOOST_CHECK_EXCEPTION(fused(0, {a, c("b", {4})}), bad_argument, says{"[4]"});
    BOOST_CHECK_EXCEPTION(fused(0, {a, whole({"b", dtype::float32, {4, 3}})}), bad_argument,
                          (says{"float32", "bfloat16"}));
    BOOST_CHECK_EXCEPTION(fused(2, {a}), bad_argument, says{"no dimension 2"});
    BOOST_CHECK_EXCEPTION(fused(0, {}), bad_argument, says{"at least one part"});
    BOOST_CHECK_EXCEPTION(fused(0, {a, whole({"a", dtype::bfloat16, {5, 3}})}), bad_argument,
                          (says{"'a'", "bfloat16[4, 3]", "bfloat16[5, 3]"}));
    BOOST_CHECK_EXCEPTION(stacked({a, c("b", {4, 2})}), bad_argument, says{"part 1"});
    BOOST_CHECK_EXCEPTION(stacked({}), bad_argument, says{"at least one part"});
    auto const huge = unowned(dtype::uint8, {INT64_MAX});
    BOOST_CHECK_EXCEPTION(fused(0, {huge, huge}), bad_argument, says{"63 bits"});
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(layout_attention)

BOOST_AUTO_TEST_CASE(query_heads_lie_with_the_key_and_value_heads_that_serve_them) {
    struct example {
        attention_heads heads;
        std::int64_t ranks;
    };
    for (auto const& [heads, ranks] :
         {example{{8, 2, 2}, 2}, example{{8, 2, 2}, 8}, example{{10, 5, 1}, 2},
          example{{6, 2, 3}, 4}, example{{4, 4, 1}, 3}, example{{4, 1, 2}, 3}}) {
        std::vector<int> held(static_cast<std::size_t>(heads.query), 0);
        for (std::int64_t r = 0; r < ranks; ++r) {
            auto const own = head_bounds_of(heads, {r, ranks});
            for (auto q = own.query.first; q < own.query.last; ++q) {
                ++held[static_cast<std::size_t>(q)];
                auto const kv = q / (heads.query / heads.key_value);
                BOOST_TEST((own.key_value.first <= kv && kv < own.key_value.last));
            }
            checkpoint c;
            auto const layout_of_rank = fused_qkv(
                c("q", {heads.query * heads.size, 3}), c("k", {heads.key_value * heads.size, 3}),
                c("v", {heads.key_value * heads.size, 3}), heads, {r, ranks});
            auto const rows = [&](std::string const& name, index_range b) {
                return dense_slice(c[name], 0, b.first * heads.size, b.last * heads.size);
            };
            check_equal(layout_of_rank, c,
                        dense_cat(0, {rows("q", own.query), rows("k", own.key_value),
                                      rows("v", own.key_value)}));
        }
        BOOST_TEST(std::all_of(held.begin(), held.end(), [](int n) { return n == 1; }));
    }
}

BOOST_AUTO_TEST_CASE(fewer_key_and_value_heads_than_ranks_are_replicated) {
    attention_heads const heads{8, 2, 4};
    BOOST_TEST((head_bounds_of(heads, {0, 4}).key_value == index_range{0, 1}));
    BOOST_TEST((head_bounds_of(heads, {1, 4}).key_value == index_range{0, 1}));
    BOOST_TEST((head_bounds_of(heads, {2, 4}).key_value == index_range{1, 2}));
    BOOST_TEST((head_bounds_of(heads, {3, 4}).query == index_range{6, 8}));
}

BOOST_AUTO_TEST_CASE(biases_have_one_dimension) {
    checkpoint c;
    auto const own = fused_qkv(c("q", {8}), c("k", {4}), c("v", {4}), {4, 2, 2}, {1, 2});
    check_equal(own, c,
                dense_cat(0, {dense_slice(c["q"], 0, 4, 8), dense_slice(c["k"], 0, 2, 4),
                              dense_slice(c["v"], 0, 2, 4)}));
}

BOOST_AUTO_TEST_CASE(head_counts_that_do_not_fit_are_refused) {
    checkpoint c;
    BOOST_CHECK_EXCEPTION(head_bounds_of({8, 3, 1}, {0, 1}), bad_argument,
                          (says{"8 query", "3 key and value"}));
    BOOST_CHECK_EXCEPTION(head_bounds_of({8, 0, 1}, {0, 1}), bad_argument, says{"0 key"});
    BOOST_CHECK_EXCEPTION(head_bounds_of({0, 1, 1}, {0, 1}), bad_argument, says{"0 query"});
    BOOST_CHECK_EXCEPTION(head_bounds_of({1, 1, 0}, {0, 1}), bad_argument, says{"0 rows"});
    BOOST_CHECK_EXCEPTION(head_bounds_of({8, 2, 1}, {0, 3}), bad_argument,
                          (says{"2 key and value heads on 3 ranks"}));
    BOOST_CHECK_EXCEPTION(head_bounds_of({8, 2, 1}, {2, 2}), bad_argument, says{"rank 2"});
    BOOST_CHECK_EXCEPTION(fused_qkv(c("q", {8, 1}), c("k", {5, 1}), c("v", {4, 1}), {4, 2, 2}, {}),
                          bad_argument, (says{"'k'", "[5, 1]", "2 heads of 2 rows"}));
    BOOST_CHECK_EXCEPTION(fused_qkv(c("q", {}), c("k", {4}), c("v", {4}), {4, 2, 2}, {}),
                          bad_argument, says{"no dimension 0"});
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(layout_interleaved)

BOOST_AUTO_TEST_CASE(parts_take_turns_by_blocks) {
    for (std::int64_t block : {1, 2, 3, 6}) {
        for (std::size_t dim : {0U, 1U}) {
            checkpoint c;
            auto const shape = with(extents{2, 2}, dim, 6);
            auto const own = interleaved(dim, {c("a", shape), c("b", shape), c("d", shape)}, block);
            check_equal(own, c,
                        dense_interleave(dim, {c["a"], c["b"], c["d"]}, {block, block, block}));
        }
    }
}

BOOST_AUTO_TEST_CASE(single_rows_in_turn_are_one_region_a_part) {
    checkpoint c;
    auto const own = interleaved(0, {c("gate", {3, 2}), c("up", {3, 2})});
    BOOST_TEST((resolved(own, "gate").regions ==
                std::vector<tensor_region>{{{0, 0}, {3, 2}, 0, 0, {4, 1}}}));
    BOOST_TEST((resolved(own, "up").regions ==
                std::vector<tensor_region>{{{0, 0}, {3, 2}, 0, 2, {4, 1}}}));
}

BOOST_AUTO_TEST_CASE(unequal_blocks_give_each_group_its_query_key_and_value_rows) {
    checkpoint c;
    auto const own = interleaved(0, {c("q", {8, 2}), c("k", {2, 2}), c("v", {2, 2})}, {4, 1, 1});
    check_equal(own, c, dense_interleave(0, {c["q"], c["k"], c["v"]}, {4, 1, 1}));
    // ... and a rank's shard of whole groups
    check_equal(sharded(own, 0, {1, 2}), c,
                dense_slice(dense_interleave(0, {c["q"], c["k"], c["v"]}, {4, 1, 1}), 0, 6, 12));
}

BOOST_AUTO_TEST_CASE(interleaved_layouts_are_sharded_and_interleaved_again) {
    checkpoint c;
    auto const ab = interleaved(0, {c("a", {4, 1}), c("b", {4, 1})});
    auto const dense_ab = dense_interleave(0, {c["a"], c["b"]}, {1, 1});
    for (std::int64_t r = 0; r < 3; ++r) {
        auto const b = shard_bounds(8, {r, 3});
        check_equal(sharded(ab, 0, {r, 3}), c, dense_slice(dense_ab, 0, b.first, b.last));
    }
    for (std::int64_t block : {1, 2, 4, 8}) {
        auto const own = interleaved(0, {ab, c("d", {8, 1})}, block);
        check_equal(own, c, dense_interleave(0, {dense_ab, c["d"]}, {block, block}));
    }
}

BOOST_AUTO_TEST_CASE(blocks_that_do_not_fit_are_refused_with_their_numbers) {
    checkpoint c;
    auto const a = c("a", {6, 2});
    BOOST_CHECK_EXCEPTION(interleaved(0, {a, c("b", {4, 2})}), bad_argument,
                          (says{"part 1", "'b'", "[4, 2]", "6 of blocks of 1"}));
    BOOST_CHECK_EXCEPTION(interleaved(0, {a, a}, 4), bad_argument, (says{"part 0", "blocks of 4"}));
    BOOST_CHECK_EXCEPTION(interleaved(0, {a, a}, 0), bad_argument, says{"blocks of 0"});
    BOOST_CHECK_EXCEPTION(interleaved(0, {a, a}, std::vector<std::int64_t>{1}), bad_argument,
                          says{"1 interleaved blocks for 2 parts"});
    BOOST_CHECK_EXCEPTION(interleaved(2, {a, a}), bad_argument, says{"no dimension 2"});
    BOOST_CHECK_EXCEPTION(interleaved(0, {}), bad_argument, says{"at least one part"});
}

BOOST_AUTO_TEST_CASE(b54_equal_shapes_fused_or_interleaved_get_their_own_places) {
    checkpoint c;
    auto const gate = c("gate", {4, 4});
    auto const up = c("up", {4, 4});
    auto const halves = fused(0, {gate, up});
    auto const turns = interleaved(0, {gate, up});
    BOOST_TEST(halves.shape() == turns.shape());
    auto const first_column = [&](layout const& own) {
        auto const t = loaded(own, c);
        std::vector<std::int64_t> column;
        for (std::int64_t row = 0; row < 8; ++row) column.push_back(t.at({row, 0}));
        return column;
    };
    // gate holds 1, 5, 9, 13 in its first column, up 17, 21, 25, 29
    BOOST_TEST(first_column(halves) == (std::vector<std::int64_t>{1, 5, 9, 13, 17, 21, 25, 29}),
               boost::test_tools::per_element());
    BOOST_TEST(first_column(turns) == (std::vector<std::int64_t>{1, 17, 5, 21, 9, 25, 13, 29}),
               boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(layout_stored)

BOOST_AUTO_TEST_CASE(padded_vocabulary_rows_belong_to_nobody) {
    for (std::int64_t ranks : {1, 2, 4, 8}) {
        for (std::int64_t r = 0; r < ranks; ++r) {
            checkpoint c;
            auto const own = sharded(padded(c("embed", {5, 3}), 0, 8), 0, {r, ranks});
            auto const b = shard_bounds(8, {r, ranks});
            check_equal(own, c, dense_slice(dense_pad(c["embed"], 0, 8), 0, b.first, b.last));
            if (b.first >= 5) {
                BOOST_TEST(resolved(own, "embed").regions.empty());
                BOOST_TEST(unowned_regions(own).size() == 1U);
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(no_padding_leaves_nothing_unowned) {
    checkpoint c;
    BOOST_TEST(unowned_regions(padded(c("w", {5, 3}), 1, 3)).empty());
    BOOST_TEST(unowned_regions(padded(c("n", {0, 3}), 0, 2)).size() == 1U);
    auto const gap = fused(0, {c("a", {2}), unowned(dtype::bfloat16, {3}), c("b", {2})});
    BOOST_TEST(loaded(gap, c).at({5}) == c["b"].at({0}));
    BOOST_TEST(loaded(gap, c).at({3}) == untouched);
}

BOOST_AUTO_TEST_CASE(any_order_of_dimensions) {
    for (auto const& shape : shapes) {
        std::vector<std::size_t> order;
        for (std::size_t d = 0; d < shape.size(); ++d) order.push_back(d);
        do {
            checkpoint c;
            auto const w = c("w", shape);
            check_equal(permuted(w, order), c, dense_permute(c["w"], order));
        } while (std::next_permutation(order.begin(), order.end()));
    }
}

BOOST_AUTO_TEST_CASE(transposed_swaps_the_last_two) {
    checkpoint c;
    auto const w = c("w", {2, 3});
    auto const x = c("x", {4, 2, 3});
    check_equal(transposed(w), c, dense_permute(c["w"], {1, 0}));
    check_equal(transposed(x), c, dense_permute(c["x"], {0, 2, 1}));
    BOOST_TEST((resolved(transposed(w), "w").regions[0].strides == extents{1, 2}));
}

BOOST_AUTO_TEST_CASE(wrong_orders_and_paddings_are_refused) {
    checkpoint c;
    auto const w = c("w", {2, 3});
    BOOST_CHECK_EXCEPTION(permuted(w, {0}), bad_argument, (says{"'w'", "[0]", "2 dimensions"}));
    BOOST_CHECK_EXCEPTION(permuted(w, {0, 0}), bad_argument, says{"[0, 0]"});
    BOOST_CHECK_EXCEPTION(permuted(w, {0, 2}), bad_argument, says{"[0, 2]"});
    BOOST_CHECK_EXCEPTION(transposed(c("v", {2})), bad_argument, says{"'v'"});
    BOOST_CHECK_EXCEPTION(padded(w, 1, 2), bad_argument, (says{"padded to 2", "its 3"}));
    BOOST_CHECK_EXCEPTION(padded(w, 2, 9), bad_argument, says{"no dimension 2"});
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(layout_experts)

/// A rank's slots as the reference takes them, -1 where empty.
std::vector<std::int64_t> slots_of(expert_map const& map, index_range slots) {
    return {map.slots().begin() + slots.first, map.slots().begin() + slots.last};
}

/// One tensor an expert.
layout separate(checkpoint& c, std::int64_t experts) {
    std::vector<layout> all;
    for (std::int64_t e = 0; e < experts; ++e) all.push_back(c("e" + std::to_string(e), {2, 3}));
    return stacked(all);
}
dense dense_separate(checkpoint const& c, std::int64_t experts) {
    std::vector<dense> all;
    for (std::int64_t e = 0; e < experts; ++e) all.push_back(c["e" + std::to_string(e)]);
    return dense_stack(all);
}

BOOST_AUTO_TEST_CASE(experts_come_one_tensor_each_or_stacked) {
    auto const map = expert_map::linear(5);
    for (std::int64_t r = 0; r < 3; ++r) {
        auto const slots = shard_bounds(5, {r, 3});
        checkpoint c;
        auto const each = expert_parallel(separate(c, 5), map, slots);
        check_equal(each, c, dense_take(dense_separate(c, 5), 0, slots_of(map, slots)));
        auto const stack = expert_parallel(c("all", {5, 2, 3}), map, slots);
        check_equal(stack, c, dense_take(c["all"], 0, slots_of(map, slots)));
        // consecutive experts of a stacked tensor stay one region
        BOOST_TEST(resolved(stack, "all").regions.size() == 1U);
    }
}

BOOST_AUTO_TEST_CASE(experts_of_other_ranks_have_no_region_and_are_no_error) {
    checkpoint c;
    auto const own = expert_parallel(separate(c, 4), expert_map::linear(4), {2, 4});
    BOOST_TEST(own.sources().size() == 4U);
    BOOST_TEST(resolved(own, "e0").regions.empty());
    BOOST_TEST(resolved(own, "e3").regions.size() == 1U);
    auto const none = expert_parallel(separate(c, 4), expert_map::linear(4), {4, 4});
    BOOST_TEST((none.shape() == extents{0, 2, 3}));
    check_equal(none, c, dense{{0, 2, 3}, {}});
}

BOOST_AUTO_TEST_CASE(replicas_go_to_all_their_slots_and_empty_slots_to_nobody) {
    auto const map = expert_map::of_replicas({{0, 5, 1}, {4}, {}, {2}}, 7);
    BOOST_TEST(map.slots() == (std::vector<std::int64_t>{0, 0, 3, -1, 1, 0, -1}),
               boost::test_tools::per_element());
    for (index_range const slots : {index_range{0, 7}, index_range{0, 3}, index_range{3, 7},
                                    index_range{6, 7}, index_range{2, 2}}) {
        checkpoint c;
        auto const each = expert_parallel(separate(c, 4), map, slots);
        check_equal(each, c, dense_take(dense_separate(c, 4), 0, slots_of(map, slots)));
        auto const all = c("all", {4, 2, 3});
        check_equal(expert_parallel(all, map, slots), c,
                    dense_take(c["all"], 0, slots_of(map, slots)));
    }
    checkpoint c;
    BOOST_TEST(resolved(expert_parallel(separate(c, 4), map, {0, 7}), "e0").regions.size() == 3U);
}

BOOST_AUTO_TEST_CASE(another_map_between_updates_makes_another_layout_of_the_same_sources) {
    checkpoint c;
    auto const all = separate(c, 3);
    auto const before = expert_parallel(all, expert_map{3, {0, 1, 2, 2}}, {0, 2});
    auto const after = expert_parallel(all, expert_map{3, {2, 0, 1, 0}}, {0, 2});
    check_equal(before, c, dense_take(dense_separate(c, 3), 0, {0, 1}));
    check_equal(after, c, dense_take(dense_separate(c, 3), 0, {2, 0}));
    BOOST_TEST(before.sources().size() == after.sources().size());
}

BOOST_AUTO_TEST_CASE(wrong_maps_are_refused_with_their_numbers) {
    BOOST_CHECK_EXCEPTION(expert_map::of_replicas({{0}, {1, 0}}, 2), bad_argument,
                          (says{"slot 0", "expert 0", "expert 1"}));
    BOOST_CHECK_EXCEPTION(expert_map::of_replicas({{1, 1}}, 2), bad_argument, says{"slot 1"});
    BOOST_CHECK_EXCEPTION(expert_map::of_replicas({{2}}, 2), bad_argument, says{"slot 2 of 2"});
    BOOST_CHECK_EXCEPTION(expert_map::of_replicas({{-1}}, 2), bad_argument, says{"slot -1"});
    BOOST_CHECK_EXCEPTION(expert_map::of_replicas({}, -1), bad_argument, says{"-1 slots"});
    BOOST_CHECK_EXCEPTION((expert_map{2, {0, 2}}), bad_argument, (says{"slot 1", "expert 2 of 2"}));
    BOOST_CHECK_EXCEPTION((expert_map{2, {-2}}), bad_argument, says{"expert -2"});
    checkpoint c;
    auto const all = c("all", {4, 2});
    BOOST_CHECK_EXCEPTION(expert_parallel(all, expert_map::linear(3), {0, 1}), bad_argument,
                          (says{"'all'", "[4, 2]", "3 experts"}));
    BOOST_CHECK_EXCEPTION(expert_parallel(all, expert_map::linear(4), {3, 5}), bad_argument,
                          (says{"[3, 5)", "4"}));
    BOOST_CHECK_EXCEPTION(expert_parallel(all, expert_map::linear(4), {-1, 2}), bad_argument,
                          says{"[-1, 2)"});
    BOOST_CHECK_EXCEPTION(expert_parallel(all, expert_map::linear(4), {3, 2}), bad_argument,
                          says{"[3, 2)"});
    BOOST_CHECK_EXCEPTION(expert_parallel(c("s", {}), expert_map::linear(4), {0, 1}), bad_argument,
                          says{"no dimension 0"});
    BOOST_CHECK_EXCEPTION(taken(all, 1, {2}), bad_argument, (says{"no index 2", "dimension 1"}));
    BOOST_CHECK_EXCEPTION(taken(all, 1, {-1}), bad_argument, says{"no index -1"});
    BOOST_CHECK_EXCEPTION(taken(all, 2, {0}), bad_argument, says{"no dimension 2"});
}

/// w13 of a rank: [slots, in, 2 * intermediate / tp], each expert's up above its gate, stored transposed.
layout fused_w13(checkpoint& c, std::int64_t experts, std::int64_t rows, expert_map const& map,
                 index_range slots, shard_position tp) {
    std::vector<layout> all;
    for (std::int64_t e = 0; e < experts; ++e) {
        auto const name = "layers.0.experts." + std::to_string(e);
        auto const gate = c(name + ".w1", {rows, 2});
        auto const up = c(name + ".w3", {rows, 2});
        all.push_back(fused(0, {sharded(up, 0, tp), sharded(gate, 0, tp)}));
    }
    return transposed(expert_parallel(stacked(all), map, slots));
}

BOOST_AUTO_TEST_CASE(fused_w13_of_stacked_experts_is_sharded_and_transposed) {
    auto const map = expert_map::of_replicas({{0, 3}, {1}, {4}, {2}}, 6);
    for (std::int64_t ep = 0; ep < 2; ++ep) {
        for (std::int64_t tp = 0; tp < 3; ++tp) {
            checkpoint c;
            auto const slots = shard_bounds(6, {ep, 2});
            auto const own = fused_w13(c, 4, 5, map, slots, {tp, 3});
            auto const b = shard_bounds(5, {tp, 3});
            std::vector<dense> experts;
            for (std::int64_t e = 0; e < 4; ++e) {
                auto const name = "layers.0.experts." + std::to_string(e);
                experts.push_back(dense_cat(0, {dense_slice(c[name + ".w3"], 0, b.first, b.last),
                                                dense_slice(c[name + ".w1"], 0, b.first, b.last)}));
            }
            check_equal(own, c,
                        dense_permute(dense_take(dense_stack(experts), 0, slots_of(map, slots)),
                                      {0, 2, 1}));
        }
    }
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(layout_compositions)

/// A layout and what the reference makes of the same description.
struct described {
    layout own;
    dense expected;
};

class random_layouts {
  public:
    explicit random_layouts(std::uint32_t seed) : random_{seed} {}

    described make(int depth, extents const& shape) {
        if (depth == 0 || shape.empty()) return leaf(shape);
        auto const dim =
            static_cast<std::size_t>(upto(static_cast<std::int64_t>(shape.size()) - 1));
        switch (upto(6)) {
            case 0: return fuse(depth, shape, dim);
            case 1: return interleave(depth, shape, dim);
            case 2: return slice(depth, shape, dim);
            case 3: return pad(depth, shape, dim);
            case 4: return take(depth, shape, dim);
            case 5: return permute(depth, shape);
            default: return stack(depth, shape);
        }
    }
    checkpoint const& tensors() const { return checkpoint_; }
    std::int64_t upto(std::int64_t most) {
        return std::uniform_int_distribution<std::int64_t>{0, most}(random_);
    }

  private:
    described leaf(extents const& shape) {
        auto const name = "t" + std::to_string(count_++);
        auto own = checkpoint_(name, shape);
        return {std::move(own), checkpoint_[name]};
    }
    described fuse(int depth, extents const& shape, std::size_t dim) {
        auto const cut = upto(shape[dim]);
        auto const a = make(depth - 1, with(shape, dim, cut));
        auto const b = make(depth - 1, with(shape, dim, shape[dim] - cut));
        return {fused(dim, {a.own, b.own}), dense_cat(dim, {a.expected, b.expected})};
    }
    described interleave(int depth, extents const& shape, std::size_t dim) {
        if (shape[dim] == 0 || shape[dim] % 2 != 0) return leaf(shape);
        auto const half = shape[dim] / 2;
        auto block = 1 + upto(half - 1);
        while (half % block != 0) --block;
        auto const a = make(depth - 1, with(shape, dim, half));
        auto const b = make(depth - 1, with(shape, dim, half));
        return {interleaved(dim, {a.own, b.own}, block),
                dense_interleave(dim, {a.expected, b.expected}, {block, block})};
    }
    described slice(int depth, extents const& shape, std::size_t dim) {
        auto const before = upto(2);
        auto const of = make(depth - 1, with(shape, dim, shape[dim] + before + upto(2)));
        auto const last = before + shape[dim];
        return {sliced(of.own, dim, {before, last}), dense_slice(of.expected, dim, before, last)};
    }
    described pad(int depth, extents const& shape, std::size_t dim) {
        auto const of = make(depth - 1, with(shape, dim, upto(shape[dim])));
        return {padded(of.own, dim, shape[dim]), dense_pad(of.expected, dim, shape[dim])};
    }
    described take(int depth, extents const& shape, std::size_t dim) {
        auto const from = 1 + upto(shape[dim] + 1);
        std::vector<std::int64_t> indices;
        for (std::int64_t i = 0; i < shape[dim]; ++i) indices.push_back(upto(from - 1));
        auto const of = make(depth - 1, with(shape, dim, from));
        return {taken(of.own, dim, indices), dense_take(of.expected, dim, indices)};
    }
    described permute(int depth, extents const& shape) {
        std::vector<std::size_t> order;
        for (std::size_t d = 0; d < shape.size(); ++d) order.push_back(d);
        std::shuffle(order.begin(), order.end(), random_);
        auto from = shape;
        for (std::size_t d = 0; d < order.size(); ++d) from[order[d]] = shape[d];
        auto const of = make(depth - 1, from);
        return {permuted(of.own, order), dense_permute(of.expected, order)};
    }
    described stack(int depth, extents const& shape) {
        if (shape[0] == 0) return leaf(shape);
        extents inner;
        for (std::size_t d = 1; d < shape.size(); ++d) inner.push_back(shape[d]);
        std::vector<layout> owns;
        std::vector<dense> all;
        for (std::int64_t k = 0; k < shape[0]; ++k) {
            auto const part = make(depth - 1, inner);
            owns.push_back(part.own);
            all.push_back(part.expected);
        }
        return {stacked(owns), dense_stack(all)};
    }
    std::mt19937 random_;
    checkpoint checkpoint_;
    int count_ = 0;
};

BOOST_AUTO_TEST_CASE(random_compositions_equal_the_reference) {
    for (std::uint32_t seed = 0; seed < 1500; ++seed) {
        BOOST_TEST_CONTEXT("seed " << seed) {
            random_layouts random{seed};
            extents shape;
            for (auto rank = random.upto(4); rank > 0; --rank) shape.push_back(random.upto(6));
            auto const [own, expected] = random.make(static_cast<int>(1 + random.upto(3)), shape);
            check_equal(own, random.tensors(), expected);
        }
    }
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(layout_tables)

BOOST_AUTO_TEST_CASE(names_find_their_places_in_all_own_tensors) {
    checkpoint c;
    auto const embed = c("embed", {4, 2});
    layout_table table;
    BOOST_TEST(table.add(embed) == 0U);
    BOOST_TEST(table.add(fused(0, {c("a", {2, 2}), embed})) == 1U);
    BOOST_TEST(table.add(c("t", {2, 3}), {1, 2}) == 2U);
    auto const* found = table.find("embed");
    BOOST_REQUIRE(found != nullptr);
    BOOST_TEST((found->regions == std::vector<tensor_region>{{{0, 0}, {4, 2}, 0, 0, {2, 1}},
                                                             {{0, 0}, {4, 2}, 1, 4, {2, 1}}}));
    BOOST_TEST((table.find("t")->regions[0] == tensor_region{{0, 0}, {2, 3}, 2, 0, {1, 2}}));
    BOOST_TEST(table.find("embe") == nullptr);
    BOOST_TEST(table.layouts().size() == 3U);
    BOOST_TEST(table.resolutions().size() == 3U);
    BOOST_TEST(table.resolutions()[1].expected.name == "a");
}

BOOST_AUTO_TEST_CASE(a_source_that_is_described_twice_differently_is_refused_and_changes_nothing) {
    layout_table table;
    table.add(whole({"w", dtype::bfloat16, {4}}));
    auto const other =
        fused(0, {whole({"new", dtype::float32, {1}}), whole({"w", dtype::float32, {4}})});
    BOOST_CHECK_EXCEPTION(table.add(other), bad_argument,
                          (says{"'w'", "bfloat16[4]", "float32[4]"}));
    BOOST_TEST(table.find("new") == nullptr);
    BOOST_TEST(table.layouts().size() == 1U);
    BOOST_TEST(table.find("w")->regions.size() == 1U);
}

double seconds_of(std::function<void()> const& work) {
    auto const start = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

BOOST_AUTO_TEST_CASE(b93_names_of_256_fused_experts_are_found_by_hash) {
    auto const map = expert_map::linear(256);
    layout_table table;
    std::size_t names = 0;
    for (int layer = 0; layer < 40; ++layer) {
        std::vector<layout> all;
        for (int e = 0; e < 256; ++e) {
            auto const at = "layers." + std::to_string(layer) + ".experts." + std::to_string(e);
            all.push_back(fused(0, {whole({at + ".w1", dtype::bfloat16, {8, 4}}),
                                    whole({at + ".w3", dtype::bfloat16, {8, 4}})}));
            names += 2;
        }
        table.add(expert_parallel(stacked(all), map, {32, 64}));
    }
    BOOST_TEST(table.resolutions().size() == names);
    // 20,480 names, each looked up in each of 20 chunks: a scan would compare 4 * 10^9 names.
    std::size_t regions = 0;
    auto const took = seconds_of([&] {
        for (int chunk = 0; chunk < 20; ++chunk) {
            for (auto const& one : table.resolutions()) {
                regions += table.find(one.expected.name)->regions.size();
            }
        }
    });
    BOOST_TEST(regions == 20U * 40U * 32U * 2U);
    BOOST_TEST(took < 10.0);
    auto const& w3 = *table.find("layers.39.experts.40.w3");
    BOOST_TEST(
        (w3.regions == std::vector<tensor_region>{{{0, 0}, {8, 4}, 39, 8 * 64 + 32, {4, 1}}}));
    BOOST_TEST(table.find("layers.39.experts.64.w3")->regions.empty());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weightcast::test
