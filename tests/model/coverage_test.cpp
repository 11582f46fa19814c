// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <support/says.hpp>
#include <weightcast/model/coverage.hpp>
#include <weightcast/model/expert_layout.hpp>
#include <weightcast/model/fused_layout.hpp>
#include <weightcast/model/interleaved_layout.hpp>
#include <weightcast/model/layout_table.hpp>

namespace weightcast::test {
namespace {

using namespace layouts;

parameter bf16(std::string const& name, extents const& shape) {
    return {name, dtype::bfloat16, shape};
}
void mark_all(coverage& seen, layout_table const& table, std::string const& but = {}) {
    for (auto const& one : table.resolutions()) {
        if (one.expected.name == but) continue;
        for (auto const& region : one.regions) seen.mark(region);
    }
}
/// The report of one layout's tensor after all its checkpoint tensors came, but for one.
coverage_report after_all(layout const& own, std::string const& but = {}) {
    layout_table table;
    coverage seen;
    table.add(own);
    seen.add_tensor(own);
    mark_all(seen, table, but);
    return seen.report(0);
}

BOOST_AUTO_TEST_SUITE(coverages)

BOOST_AUTO_TEST_CASE(nothing_written_is_all_missing) {
    coverage seen;
    BOOST_TEST(seen.add_tensor(extents{2, 3}) == 0U);
    BOOST_TEST(seen.add_tensor(extents{}) == 1U);
    BOOST_TEST(seen.add_tensor(extents{3, 0}) == 2U);
    BOOST_TEST(seen.size() == 3U);
    BOOST_TEST(to_string(seen.report(0)) == "misses 6 elements, the first at [0:2, 0:3]");
    BOOST_TEST(to_string(seen.report(1)) == "misses 1 elements, the first at []");
    BOOST_TEST(seen.report(2).exact());
    BOOST_TEST(to_string(seen.report(2)) == "is written exactly");
}

BOOST_AUTO_TEST_CASE(intervals_in_any_order_cover) {
    coverage seen;
    seen.add_tensor(extents{4, 5});
    seen.add(0, 12, 20);
    seen.add(0, 0, 7);
    seen.add(0, 9, 9);
    auto const report = seen.report(0);
    BOOST_TEST(report.missing == 5U);
    BOOST_TEST((report.first_missing == tensor_box{{1, 2}, {1, 3}}));
    seen.add(0, 7, 12);
    BOOST_TEST(seen.report(0).exact());
    seen.clear();
    BOOST_TEST(seen.report(0).missing == 20U);
}

BOOST_AUTO_TEST_CASE(a_missing_part_is_named_by_its_indices) {
    auto const own =
        fused(0, {whole(bf16("q", {4, 2})), whole(bf16("k", {2, 2})), whole(bf16("v", {2, 2}))});
    BOOST_TEST(to_string(after_all(own)) == "is written exactly");
    BOOST_TEST(to_string(after_all(own, "k")) == "misses 4 elements, the first at [4:6, 0:2]");
    BOOST_TEST(to_string(after_all(fused(1, {whole(bf16("a", {3, 2})), whole(bf16("b", {3, 4}))}),
                                   "b")) == "misses 12 elements, the first at [0:1, 2:6]");
}

BOOST_AUTO_TEST_CASE(an_element_that_is_written_twice_is_told) {
    coverage seen;
    seen.add_tensor(extents{4, 5});
    tensor_region const all{{0, 0}, {4, 5}, 0, 0, {5, 1}};
    tensor_region const column{{0, 0}, {4, 1}, 0, 3, {5, 1}};
    seen.mark(all);
    seen.mark(column);
    seen.mark(column);
    auto const report = seen.report(0);
    BOOST_TEST(report.doubled == 4U);
    BOOST_TEST((report.first_doubled == tensor_box{{0, 3}, {1, 1}}));
    BOOST_TEST(to_string(report) ==
               "has 4 elements written more than once, the first at [0:1, 3:4]");
    BOOST_TEST(!report.exact());
}

BOOST_AUTO_TEST_CASE(padding_that_is_nobodys_is_not_missing_but_must_not_be_written) {
    auto const own = sharded(padded(whole(bf16("embed", {5, 3})), 0, 8), 0, {1, 2});
    BOOST_TEST(after_all(own).exact());
    BOOST_TEST(to_string(after_all(own, "embed")) == "misses 3 elements, the first at [0:1, 0:3]");
    coverage seen;
    seen.add_tensor(own);
    seen.add(0, 0, 4);
    BOOST_TEST(seen.report(0).doubled == 1U);
    seen.clear();
    BOOST_TEST(seen.report(0).missing == 3U);
}

BOOST_AUTO_TEST_CASE(elements_outside_a_tensor_are_told) {
    coverage seen;
    seen.add_tensor(extents{2, 3}, extents{5, 1});  // rows with a gap of two
    seen.add(0, 0, 11);
    auto const report = seen.report(0);
    BOOST_TEST(report.missing == 0U);
    BOOST_TEST(report.outside == 5U);
    BOOST_TEST(to_string(report) == "was written at 5 elements outside");
    BOOST_TEST(!report.exact());
    seen.clear();
    seen.add(0, 0, 3);
    seen.add(0, 6, 8);
    BOOST_TEST((seen.report(0).first_missing == tensor_box{{1, 0}, {1, 1}}));
}

BOOST_AUTO_TEST_CASE(a_transposed_tensors_indices_are_its_own) {
    coverage seen;
    seen.add_tensor(extents{2, 3}, extents{1, 2});
    seen.add(0, 0, 2);
    auto const report = seen.report(0);
    BOOST_TEST(report.missing == 4U);
    BOOST_TEST((report.first_missing == tensor_box{{0, 1}, {2, 2}}));
}

BOOST_AUTO_TEST_CASE(what_is_no_tensor_or_interval_is_refused) {
    coverage seen;
    BOOST_CHECK_EXCEPTION(seen.add_tensor(extents{2, 3}, extents{1, 1}), bad_argument,
                          (says{"[2, 3]", "[1, 1]", "not separate"}));
    BOOST_CHECK_EXCEPTION(seen.add_tensor(extents{2, 3}, extents{1}), bad_argument, says{"[1]"});
    BOOST_CHECK_EXCEPTION(seen.add_tensor(extents{2, 3}, extents{3, 1, 1}), bad_argument,
                          says{"[3, 1, 1]"});
    seen.add_tensor(extents{2, 3});
    BOOST_TEST(seen.size() == 1U);
    BOOST_CHECK_EXCEPTION(seen.add(0, 3, 2), bad_argument, says{"[3, 2)"});
    BOOST_CHECK_EXCEPTION(seen.add(1, 0, 2), bad_argument, says{"own tensor 1 of 1"});
    BOOST_CHECK_EXCEPTION(seen.report(1), bad_argument, says{"own tensor 1 of 1"});
    BOOST_CHECK_EXCEPTION(seen.mark({{}, {}, 4, 0, {}}), bad_argument, says{"own tensor 4 of 1"});
    BOOST_CHECK_EXCEPTION(seen.exempt({{}, {}, 4, 0, {}}), bad_argument, says{"own tensor 4"});
}

BOOST_AUTO_TEST_CASE(chunks_of_a_checkpoint_tensor_are_marked_part_by_part) {
    auto const own = transposed(interleaved(0, {sharded(whole(bf16("gate", {6, 4})), 0, {1, 2}),
                                                sharded(whole(bf16("up", {6, 4})), 0, {1, 2})}));
    layout_table table;
    table.add(own);
    coverage seen;
    seen.add_tensor(own);
    for (auto const& one : table.resolutions()) {
        for (std::uint64_t first = 0; first < 24; first += 7) {
            for (auto const& box :
                 boxes_of({6, 4}, first, std::min<std::uint64_t>(first + 7, 24))) {
                for (auto const& region : one.regions) {
                    if (auto const part = intersection(region, box)) seen.mark(*part);
                }
            }
        }
    }
    BOOST_TEST(to_string(seen.report(0)) == "is written exactly");
}

/// Writes a few random regions and compares with a count of each element of memory.
class counted_writes {
  public:
    explicit counted_writes(std::uint32_t seed) : random_{seed} {
        auto const rank = static_cast<std::size_t>(upto(4));
        for (std::size_t d = 0; d < rank; ++d) shape_.push_back(upto(4));
        strides_ = contiguous_strides(shape_);
        if (rank > 1 && upto(1) == 0) {  // stored in reverse order, with gaps
            std::int64_t step = 1;
            for (std::size_t d = 0; d < rank; ++d) {
                strides_[d] = step;
                step = step * std::max<std::int64_t>(shape_[d], 1) + upto(1);
            }
        }
        seen_.add_tensor(shape_, strides_);
        counts_.assign(5000, 0);
    }
    void write(bool exempt) {
        if (element_count(shape_) == 0) return;
        tensor_region region{{}, {}, 0, 0, {}};
        for (std::size_t d = 0; d < shape_.size(); ++d) {
            auto const first = upto(shape_[d] - 1);
            auto const step = 1 + upto(2);
            auto const size = 1 + upto((shape_[d] - 1 - first) / step);
            region.offset.push_back(0);
            region.sizes.push_back(size);
            region.strides.push_back(strides_[d] * step);
            region.first_element += static_cast<std::uint64_t>(first * strides_[d]);
        }
        count(region, 0, region.first_element);
        exempt ? seen_.exempt(region) : seen_.mark(region);
    }
    void write_interval() {
        auto const first = static_cast<std::uint64_t>(upto(60));
        auto const last = first + static_cast<std::uint64_t>(upto(20));
        for (auto n = first; n < last; ++n) ++counts_[n];
        seen_.add(0, first, last);
    }
    void check() {
        std::vector<bool> own(counts_.size());
        mark_own(own, 0, 0);
        std::uint64_t missing = 0;
        std::uint64_t doubled = 0;
        std::uint64_t outside = 0;
        for (std::size_t n = 0; n < own.size(); ++n) {
            missing += own[n] && counts_[n] == 0 ? 1U : 0U;
            doubled += own[n] && counts_[n] > 1 ? 1U : 0U;
            outside += !own[n] && counts_[n] > 0 ? 1U : 0U;
        }
        auto const report = seen_.report(0);
        BOOST_TEST(report.missing == missing);
        BOOST_TEST(report.doubled == doubled);
        BOOST_TEST(report.outside == outside);
        check_first(report.first_missing, own, [](int n) { return n == 0; });
        check_first(report.first_doubled, own, [](int n) { return n > 1; });
    }
    std::int64_t upto(std::int64_t most) {
        return std::uniform_int_distribution<std::int64_t>{0, most}(random_);
    }

  private:
    void count(tensor_region const& r, std::size_t dim, std::uint64_t at) {
        if (dim == r.sizes.size()) {
            ++counts_[at];
            return;
        }
        for (std::int64_t i = 0; i < r.sizes[dim]; ++i) {
            count(r, dim + 1, at + static_cast<std::uint64_t>(i * r.strides[dim]));
        }
    }
    void mark_own(std::vector<bool>& own, std::size_t dim, std::size_t at) const {
        if (dim == shape_.size()) {
            own[at] = true;
            return;
        }
        for (std::int64_t i = 0; i < shape_[dim]; ++i) {
            mark_own(own, dim + 1, at + static_cast<std::size_t>(i * strides_[dim]));
        }
    }
    template <class Is>
    void check_first(std::optional<tensor_box> const& box, std::vector<bool> const& own, Is is) {
        std::vector<std::size_t> all;
        for (std::size_t n = 0; n < own.size(); ++n) {
            if (own[n] && is(counts_[n])) all.push_back(n);
        }
        BOOST_REQUIRE(box.has_value() == !all.empty());
        if (!box) return;
        std::vector<std::size_t> held{0};
        for (std::size_t d = 0; d < shape_.size(); ++d) {
            std::vector<std::size_t> next;
            for (auto const n : held) {
                for (std::int64_t i = 0; i < box->sizes[d]; ++i) {
                    next.push_back(n +
                                   static_cast<std::size_t>((box->offset[d] + i) * strides_[d]));
                }
            }
            held = next;
        }
        std::sort(held.begin(), held.end());
        BOOST_TEST(held[0] == all[0]);
        BOOST_TEST(std::includes(all.begin(), all.end(), held.begin(), held.end()));
    }
    std::mt19937 random_;
    extents shape_;
    extents strides_;
    coverage seen_;
    std::vector<int> counts_;
};

BOOST_AUTO_TEST_CASE(random_writes_are_counted_as_element_by_element) {
    for (std::uint32_t seed = 0; seed < 3000; ++seed) {
        BOOST_TEST_CONTEXT("seed " << seed) {
            counted_writes writes{seed};
            for (auto n = writes.upto(6); n > 0; --n) {
                writes.upto(4) == 0 ? writes.write_interval() : writes.write(writes.upto(5) == 0);
            }
            writes.check();
        }
    }
}

/// Intervals that a complete update of the layout comes to.
std::size_t intervals_after_all(layout const& own) {
    std::vector<detail::strided_runs> boxes;
    for (auto const& one : resolve(own)) {
        for (auto const& r : one.regions) {
            boxes.push_back(detail::runs_of_box(r.first_element, r.sizes, r.strides));
        }
    }
    return detail::intervals_of(boxes).size();
}

BOOST_AUTO_TEST_CASE(complete_updates_join_to_one_interval_before_rows_are_counted) {
    auto const gate = whole(bf16("gate", {3000, 2000}));
    auto const up = whole(bf16("up", {3000, 2000}));
    BOOST_TEST(intervals_after_all(gate) == 1U);
    BOOST_TEST(intervals_after_all(transposed(gate)) == 1U);
    BOOST_TEST(intervals_after_all(fused(1, {gate, up})) == 1U);
    BOOST_TEST(intervals_after_all(interleaved(0, {gate, up})) == 1U);
    BOOST_TEST(intervals_after_all(interleaved(1, {gate, up})) == 1U);
    BOOST_TEST(intervals_after_all(transposed(interleaved(0, {gate, up}))) == 1U);
    BOOST_TEST(intervals_after_all(transposed(fused(0, {gate, up}))) == 1U);
    // a lone shard of dimension 1 has an interval a row
    BOOST_TEST(intervals_after_all(fused(1, {gate, unowned(dtype::bfloat16, {3000, 1})})) == 3000U);
}

BOOST_AUTO_TEST_CASE(b93_256_fused_transposed_experts_are_covered_by_one_interval) {
    std::vector<layout> all;
    for (int e = 0; e < 256; ++e) {
        auto const name = "experts." + std::to_string(e);
        all.push_back(fused(
            0, {whole(bf16(name + ".w1", {1024, 512})), whole(bf16(name + ".w3", {1024, 512}))}));
    }
    auto const own = transposed(expert_parallel(stacked(all), expert_map::linear(256), {0, 256}));
    BOOST_TEST(intervals_after_all(own) == 1U);
    BOOST_TEST(after_all(own).exact());
    BOOST_TEST(to_string(after_all(own, "experts.17.w3")) ==
               "misses 524288 elements, the first at [17:18, 0:1, 1024:2048]");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weightcast::test
