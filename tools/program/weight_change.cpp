// SPDX-License-Identifier: Apache-2.0
#include <program/weight_change.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include <weightcast/tensor/dtype.hpp>
#include <weightcast/tensor/extents.hpp>

namespace weightcast::program {

namespace {

// splitmix64: the same numbers on every platform
class random_bits {
  public:
    random_bits(std::uint64_t seed, std::uint64_t step) noexcept : state_{seed} {
        state_ = next() ^ step;
    }
    std::uint64_t next() noexcept {
        state_ += 0x9E3779B97F4A7C15U;
        auto z = state_;
        z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
        z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
        return z ^ (z >> 31U);
    }

  private:
    std::uint64_t state_;
};

std::uint64_t elements_of(weight_memory const& weights) {
    std::uint64_t count = 0;
    for (auto const& p : weights.parameters()) count += element_count(p.shape);
    return count;
}

std::uint64_t changes_of(std::uint64_t elements, double fraction) {
    if (elements == 0 || fraction <= 0) return 0;
    auto const wanted = std::llround(static_cast<double>(elements) * std::min(fraction, 1.0));
    return std::clamp<std::uint64_t>(static_cast<std::uint64_t>(wanted), 1, elements);
}

// The lowest byte, which holds the end of a mantissa; a bool stays a bool.
void flip_bits(std::byte& lowest, dtype type, std::uint64_t random) {
    lowest ^= type == dtype::bool_ ? std::byte{1} : static_cast<std::byte>(1 + random % 255);
}

}  // namespace

std::uint64_t change_weights(weight_memory const& weights, change_options const& options,
                             std::uint64_t step) {
    auto const elements = elements_of(weights);
    auto const changes = changes_of(elements, options.fraction);
    if (changes == 0) return 0;
    // one element of each of `changes` stretches of equal length: distinct, in order, none far away
    auto const length = elements / changes;
    auto const longer = elements % changes;
    random_bits random{options.seed, step};
    std::size_t tensor = 0;
    std::uint64_t first = 0;  // element of the model that the tensor begins with
    std::uint64_t count = element_count(weights.parameters()[0].shape);
    for (std::uint64_t i = 0; i < changes; ++i) {
        auto const begin = i * length + std::min(i, longer);
        auto const element = begin + random.next() % (length + (i < longer ? 1 : 0));
        while (element >= first + count) {
            first += count;
            count = element_count(weights.parameters()[++tensor].shape);
        }
        auto const type = weights.parameters()[tensor].type;
        auto const at = static_cast<std::size_t>((element - first) * item_size(type));
        flip_bits(weights.bytes_of(tensor)[at], type, random.next());
    }
    return changes;
}

}  // namespace weightcast::program
