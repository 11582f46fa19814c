// SPDX-License-Identifier: Apache-2.0
// Strided tensors to try packing on, and packing done the slow, obvious way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include <weightcast/tensor/tensor_view.hpp>

namespace weightcast::test {

struct strided_case {
    std::string name;
    dtype type;
    extents shape;
    extents strides;
};

/// Bytes from element 0 to the end of the last element.
inline std::size_t reach(strided_case const& c) {
    if (element_count(c.shape) == 0) return 0;
    std::size_t last = 0;
    for (std::size_t i = 0; i < c.shape.size(); ++i) {
        last += static_cast<std::size_t>((c.shape[i] - 1) * c.strides[i]);
    }
    return (last + 1) * item_size(c.type);
}

inline std::vector<strided_case> strided_cases() {
    using enum dtype;
    return {
        {"scalar", int64, {}, {}},
        {"one element", uint8, {1, 1, 1}, {7, 9, 11}},
        {"dense", float32, {3, 4, 5}, {20, 5, 1}},
        {"dense bytes", uint8, {17}, {1}},
        {"rows with gaps", float32, {5, 3}, {8, 1}},
        {"rows with gaps of bytes", int8, {5, 7}, {11, 1}},
        {"every second", float16, {4, 6}, {24, 2}},
        {"transposed 1", uint8, {6, 5}, {1, 6}},
        {"transposed 2", bfloat16, {6, 5}, {1, 6}},
        {"transposed 4", float32, {6, 5}, {1, 6}},
        {"transposed 8", complex64, {6, 5}, {1, 6}},
        {"transposed, wide", float32, {3, 100}, {1, 3}},
        {"transposed, tall", uint8, {100, 70}, {1, 100}},
        {"pairs", float32, {5, 4, 2}, {2, 10, 1}},
        {"pairs of doubles", float64, {5, 4, 2}, {2, 10, 1}},
        {"triples", float32, {5, 4, 3}, {3, 15, 1}},
        {"a column", float64, {9}, {5}},
        {"reversed order of three", int16, {4, 3, 5}, {1, 4, 12}},
        {"rows in blocks", int32, {2, 3, 4, 5}, {200, 20, 50, 1}},
        {"expanded", float32, {4, 3}, {0, 1}},
        {"expanded inside", float32, {3, 4}, {1, 0}},
        {"ones between", int8, {3, 1, 2, 1}, {5, 999, 2, 999}},
        {"eight dimensions", uint8, {2, 2, 2, 2, 2, 2, 2, 2}, {1, 2, 4, 8, 16, 32, 64, 128}},
        {"eight with gaps", int16, {2, 1, 2, 3, 2, 2, 1, 2}, {243, 0, 81, 25, 12, 5, 7, 2}},
    };
}

inline std::vector<std::byte> random_bytes(std::size_t n, unsigned seed) {
    std::mt19937 generator{seed};
    std::vector<std::byte> bytes(n);
    for (auto& b : bytes) b = static_cast<std::byte>(generator() & 0xFFU);
    return bytes;
}

/// Distance in bytes of byte i of the flattened tensor from element 0.
inline std::size_t offset_of_byte(strided_case const& c, std::size_t i) {
    auto element = i / item_size(c.type);
    std::size_t offset = 0;
    for (std::size_t d = c.shape.size(); d-- > 0;) {
        auto const extent = static_cast<std::size_t>(c.shape[d]);
        offset += element % extent * static_cast<std::size_t>(c.strides[d]);
        element /= extent;
    }
    return offset * item_size(c.type) + i % item_size(c.type);
}

/// The flattened tensor, one byte after the other.
inline std::vector<std::byte> flattened(strided_case const& c, std::byte const* data) {
    std::vector<std::byte> dense(element_count(c.shape) * item_size(c.type));
    for (std::size_t i = 0; i < dense.size(); ++i) dense[i] = data[offset_of_byte(c, i)];
    return dense;
}

}  // namespace weightcast::test
