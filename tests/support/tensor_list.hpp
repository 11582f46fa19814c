// SPDX-License-Identifier: Apache-2.0
#pragma once
// Lists of tensors for tests of plans: they own the names that planned tensors refer to.

#include <cstdint>
#include <deque>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <weightcast/plan/planned_tensor.hpp>

namespace weightcast::test {

class tensor_list {
  public:
    tensor_list& add(std::string name, dtype type, extents shape, bool contiguous = true,
                     int root = 0) {
        names_.push_back(std::move(name));
        tensors_.push_back({.name = names_.back(),
                            .type = type,
                            .shape = shape,
                            .bytes = element_count(shape) * item_size(type),
                            .contiguous = contiguous,
                            .root = root});
        return *this;
    }
    /// A contiguous uint8 tensor of so many bytes.
    tensor_list& add_bytes(std::uint64_t bytes, int root = 0) {
        return add("b" + std::to_string(tensors_.size()), dtype::uint8,
                   {static_cast<std::int64_t>(bytes)}, true, root);
    }
    std::span<planned_tensor const> view() const noexcept { return tensors_; }
    std::vector<planned_tensor>& tensors() noexcept { return tensors_; }

  private:
    std::deque<std::string> names_;  // never moves what is in it
    std::vector<planned_tensor> tensors_;
};

/// Any dtype, 0 to 3 dimensions of 0 to 9, some strided, some large, roots below `roots`.
inline tensor_list random_tensors(std::mt19937& random, std::size_t count, int roots) {
    auto const below = [&random](std::uint32_t bound) {
        return static_cast<std::uint32_t>(random() % bound);
    };
    tensor_list list;
    for (std::size_t i = 0; i < count; ++i) {
        extents shape;
        for (auto rank = below(4); rank > 0; --rank) shape.push_back(below(10));
        if (below(8) == 0) shape = {static_cast<std::int64_t>(below(3000))};
        list.add("layers." + std::to_string(below(7)) + ".w" + std::to_string(i),
                 static_cast<dtype>(below(dtype_count)), shape, below(4) != 0,
                 static_cast<int>(below(static_cast<std::uint32_t>(roots))));
    }
    return list;
}

}  // namespace weightcast::test
