// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/model is host-only: include it from a .cpp file"
#endif
// Which box of a checkpoint tensor lies where in a tensor that an engine holds.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <weightcast/base/error.hpp>
#include <weightcast/model/parameter.hpp>
#include <weightcast/tensor/extents.hpp>
#include <weightcast/tensor/tensor_view.hpp>

namespace weightcast {

/// Indices [first, last) of one dimension.
struct index_range {
    std::int64_t first = 0;
    std::int64_t last = 0;

    std::int64_t size() const noexcept { return last - first; }
    friend bool operator==(index_range const&, index_range const&) = default;
};

/// A box of a tensor, in elements: where it begins and how far it reaches, one number a dimension.
struct tensor_box {
    extents offset{};
    extents sizes{};
    friend bool operator==(tensor_box const&, tensor_box const&) = default;
};

/// "[0:4, 2:3]", "[]" for a scalar: the indices that a box holds.
inline std::string to_string(tensor_box const& box) {
    std::string text = "[";
    for (std::size_t d = 0; d < box.offset.size(); ++d) {
        text += (d == 0 ? "" : ", ") + std::to_string(box.offset[d]) + ":" +
                std::to_string(box.offset[d] + box.sizes[d]);
    }
    return text + "]";
}

/// A box of a checkpoint tensor and its place in one of the engine's own tensors. Element (i, j, ...) of the
/// box, counted from its offset, is element first_element + i * strides[0] + j * strides[1] + ... of the own
/// tensor's memory. Affine, so a copy, a scatter of single elements and an intersection all read it alike.
struct tensor_region {
    extents offset{};                 ///< in the checkpoint tensor, one number a dimension of it
    extents sizes{};                  ///< none is 0: what holds no element is no region
    std::size_t own = 0;              ///< index of the own tensor
    std::uint64_t first_element = 0;  ///< in the own tensor's memory, in elements
    extents strides{};                ///< in elements of the own tensor; 0 only where the size is 1
    friend bool operator==(tensor_region const&, tensor_region const&) = default;
};

/// A region, and the memory of the own tensor that it is in.
template <MemorySpace Space = host_space>
struct placed_region {
    tensor_region region{};
    tensor_view<Space> own{};  ///< all of it: the region says where in it
};

/// What becomes of one checkpoint tensor.
struct resolution {
    parameter expected{};                  ///< name, dtype and shape as they must be announced
    std::vector<tensor_region> regions{};  ///< none where this rank holds nothing of it: no error
};

/// Elements that the region holds.
inline std::uint64_t element_count(tensor_region const& region) {
    return element_count(region.sizes);
}

/// The part of a region whose elements lie in a box of the checkpoint tensor, or nothing.
/// @pre region and box have the checkpoint tensor's number of dimensions
inline std::optional<tensor_region> intersection(tensor_region const& region,
                                                 tensor_box const& box) {
    tensor_region part = region;
    for (std::size_t d = 0; d < region.sizes.size(); ++d) {
        auto const first = std::max(region.offset[d], box.offset[d]);
        auto const last =
            std::min(region.offset[d] + region.sizes[d], box.offset[d] + box.sizes[d]);
        if (first >= last) return std::nullopt;
        part.offset[d] = first;
        part.sizes[d] = last - first;
        part.first_element += static_cast<std::uint64_t>(first - region.offset[d]) *
                              static_cast<std::uint64_t>(region.strides[d]);
    }
    return part;
}

namespace detail {

/// Cuts elements [first, last) of the dimensions from `dim` on; those before are fixed in the box already.
inline void append_boxes(extents const& shape, std::size_t dim, tensor_box box, std::int64_t first,
                         std::int64_t last, std::vector<tensor_box>& boxes) {
    if (first >= last) return;
    if (dim == shape.size()) {
        boxes.push_back(box);
        return;
    }
    std::int64_t row = 1;  // elements of one index of this dimension
    for (std::size_t d = dim + 1; d < shape.size(); ++d) row *= shape[d];
    auto const partial = [&](std::int64_t index, std::int64_t from, std::int64_t to) {
        tensor_box inner = box;
        inner.offset[dim] = index;
        inner.sizes[dim] = 1;
        append_boxes(shape, dim + 1, inner, from, to, boxes);
    };
    auto const head = first / row;
    auto const tail = last / row;
    if (head == tail) return partial(head, first % row, last % row);
    auto const full = head + (first % row == 0 ? 0 : 1);
    if (full != head) partial(head, first % row, row);
    if (full < tail) {
        box.offset[dim] = full;
        box.sizes[dim] = tail - full;
        boxes.push_back(box);
    }
    partial(tail, 0, last % row);
}

}  // namespace detail

/// Elements [first, last) of a tensor, counted row-major, as boxes in that order: what of a tensor a chunk holds.
/// At most two a dimension.
/// @throws bad_argument  for a range outside the tensor
inline std::vector<tensor_box> boxes_of(extents const& shape, std::uint64_t first,
                                        std::uint64_t last) {
    auto const count = element_count(shape);
    if (first > last || last > count) {
        throw bad_argument{"elements [" + std::to_string(first) + ", " + std::to_string(last) +
                           ") are no part of a tensor of shape " + to_string(shape) + " (" +
                           std::to_string(count) + " elements)"};
    }
    tensor_box whole{shape, shape};
    for (std::size_t d = 0; d < shape.size(); ++d) whole.offset[d] = 0;
    std::vector<tensor_box> boxes;
    detail::append_boxes(shape, 0, whole, static_cast<std::int64_t>(first),
                         static_cast<std::int64_t>(last), boxes);
    return boxes;
}

}  // namespace weightcast
