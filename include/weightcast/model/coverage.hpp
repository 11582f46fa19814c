// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/model is host-only: include it from a .cpp file"
#endif
// Which elements of an engine's tensors an update has written: exactly, however they came.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <weightcast/base/error.hpp>
#include <weightcast/kernels/strided_region.hpp>
#include <weightcast/model/detail/interval_set.hpp>
#include <weightcast/model/detail/strided_runs.hpp>
#include <weightcast/model/layout.hpp>
#include <weightcast/model/tensor_region.hpp>
#include <weightcast/tensor/extents.hpp>

namespace weightcast {

/// What became of an own tensor.
struct coverage_report {
    std::uint64_t missing = 0;  ///< elements that nothing wrote
    std::uint64_t doubled = 0;  ///< elements that were written more than once
    std::uint64_t outside = 0;  ///< elements that were written and are none of the tensor's
    std::optional<tensor_box>
        first_missing{};  ///< own indices, from the first one on as far as a box goes
    std::optional<tensor_box> first_doubled{};

    bool exact() const noexcept { return missing == 0 && doubled == 0 && outside == 0; }
};

/// "is written exactly", or e.g. "misses 8 elements, the first at [2:4, 0:4]".
inline std::string to_string(coverage_report const& report) {
    std::string text;
    auto const say = [&](char const* verb, std::uint64_t count, char const* what,
                         std::optional<tensor_box> const& at) {
        if (count == 0) return;
        text += (text.empty() ? "" : "; ") + std::string{verb} + std::to_string(count) + what;
        if (at) text += ", the first at " + to_string(*at);
    };
    say("misses ", report.missing, " elements", report.first_missing);
    say("has ", report.doubled, " elements written more than once", report.first_doubled);
    say("was written at ", report.outside, " elements outside", std::nullopt);
    return text.empty() ? "is written exactly" : text;
}

/// Written elements by own tensor. Boxes are kept as boxes until a report asks: a box costs the same whether it holds
/// a column or a whole tensor. One thread at a time.
class coverage {
  public:
    /// Takes note of an own tensor with these strides, in elements; returns its index.
    /// @throws bad_argument  when its elements overlap or interleave in memory
    std::size_t add_tensor(extents const& shape, extents const& strides) {
        own_tensor tensor{shape, strides, {}, {}};
        bool const negative =
            std::any_of(strides.begin(), strides.end(), [](std::int64_t s) { return s < 0; });
        if (negative || strides.size() != shape.size() ||
            !has_separate_elements({dtype::uint8, shape, strides})) {
            throw bad_argument{"coverage: elements of a tensor of shape " + to_string(shape) +
                               " and strides " + to_string(strides) + " are not separate"};
        }
        tensors_.push_back(std::move(tensor));
        return tensors_.size() - 1;
    }
    /// The same for a dense row-major one.
    std::size_t add_tensor(extents const& shape) {
        return add_tensor(shape, contiguous_strides(shape));
    }
    /// A layout's own tensor; what belongs to nobody is exempt.
    std::size_t add_tensor(layout const& own, extents const& strides) {
        auto const index = add_tensor(own.shape(), strides);
        for (auto const& region : unowned_regions(own, index, strides)) exempt(region);
        return index;
    }
    std::size_t add_tensor(layout const& own) {
        return add_tensor(own, contiguous_strides(own.shape()));
    }

    /// A region, or a part of one, is written. @throws bad_argument  for an own tensor that is not here
    void mark(tensor_region const& region) { put(at(region.own).written, region); }
    /// Elements [first, last) of an own tensor's memory are written.
    /// @throws bad_argument  for an own tensor that is not here, or first > last
    void add(std::size_t own, std::uint64_t first, std::uint64_t last) {
        auto& tensor = at(own);
        if (first > last) {
            throw bad_argument{"coverage: elements [" + std::to_string(first) + ", " +
                               std::to_string(last) + ") of own tensor " + std::to_string(own)};
        }
        if (first < last) tensor.written.push_back({{}, 0, first, last - first});
    }
    /// A region belongs to nobody: not missing, and doubled when something writes it.
    /// @throws bad_argument  for an own tensor that is not here
    void exempt(tensor_region const& region) { put(at(region.own).exempt, region); }
    /// Forgets what is written, for the next update; what is exempt stays.
    void clear() noexcept {
        for (auto& tensor : tensors_) tensor.written.clear();
    }

    std::size_t size() const noexcept { return tensors_.size(); }

    /// Exact. @throws bad_argument  for an own tensor that is not here
    /// Cost: n log n in the intervals of the boxes after neighbours were joined: an update that is complete joins to
    /// few; a lone shard of dimension 1 has one interval a row, a lone interleaved part of the innermost dimension
    /// one an element.
    coverage_report report(std::size_t own) const {
        auto const& tensor = checked(own);
        auto boxes = tensor.written;
        boxes.insert(boxes.end(), tensor.exempt.begin(), tensor.exempt.end());
        auto const found = detail::sweep(detail::intervals_of(std::move(boxes)));
        auto const expected = tensor.elements();
        auto const missing = detail::difference(expected, found.once);
        auto const outside = detail::difference(found.once, expected);
        auto const doubled = detail::difference(found.twice, outside);
        return {detail::element_count(missing), detail::element_count(doubled),
                detail::element_count(outside), tensor.first_box(missing),
                tensor.first_box(doubled)};
    }

  private:
    using box_list = std::vector<detail::strided_runs>;

    struct own_tensor {
        extents shape;
        extents strides;
        box_list written;
        box_list exempt;

        /// All of them, as memory holds them: one interval where it is dense.
        detail::interval_set elements() const {
            if (element_count(shape) == 0) return {};
            return detail::sweep(detail::intervals_of({detail::runs_of_box(0, shape, strides)}))
                .once;
        }
        /// Indices of the first interval's elements, as far as one box goes.
        std::optional<tensor_box> first_box(detail::interval_set const& set) const {
            if (set.empty()) return std::nullopt;
            return box_at(set.front());
        }
        /// @pre the interval holds elements of the tensor only
        tensor_box box_at(detail::element_interval interval) const {
            auto const order = by_stride();
            extents sorted;
            std::uint64_t first = 0;  // counted in the order of memory, without its gaps
            auto left = static_cast<std::int64_t>(interval.first);
            for (auto const d : order) {
                auto const i = shape[d] == 1 ? 0 : left / strides[d];
                left -= i * strides[d];
                first =
                    first * static_cast<std::uint64_t>(shape[d]) + static_cast<std::uint64_t>(i);
                sorted.push_back(shape[d]);
            }
            auto const box = boxes_of(sorted, first, first + interval.last - interval.first)[0];
            tensor_box own{shape, shape};
            for (std::size_t k = 0; k < order.size(); ++k) {
                own.offset[order[k]] = box.offset[k];
                own.sizes[order[k]] = box.sizes[k];
            }
            return own;
        }
        std::vector<std::size_t> by_stride() const {
            std::vector<std::size_t> order;
            for (std::size_t d = 0; d < shape.size(); ++d) order.push_back(d);
            std::stable_sort(order.begin(), order.end(), [this](std::size_t a, std::size_t b) {
                return strides[a] > strides[b];
            });
            return order;
        }
    };

    own_tensor const& checked(std::size_t own) const {
        if (own < tensors_.size()) return tensors_[own];
        throw bad_argument{"coverage: own tensor " + std::to_string(own) + " of " +
                           std::to_string(tensors_.size())};
    }
    own_tensor& at(std::size_t own) {
        static_cast<void>(checked(own));
        return tensors_[own];
    }
    static void put(box_list& to, tensor_region const& region) {
        if (element_count(region) == 0) return;
        to.push_back(detail::runs_of_box(region.first_element, region.sizes, region.strides));
    }
    std::vector<own_tensor> tensors_;
};

}  // namespace weightcast
