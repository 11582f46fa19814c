// SPDX-License-Identifier: Apache-2.0
#include <program/copy_meter.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <weightcast/model/parameter.hpp>
#include <weightcast/tensor/dtype.hpp>

namespace weightcast::program {

namespace {

weight_memory bytes_for(std::uint64_t count) {
    return weight_memory{
        {parameter{"target of memcpy", dtype::uint8, {static_cast<std::int64_t>(count)}}}};
}

}  // namespace

copy_meter::copy_meter(weight_memory const& weights)
    : weights_{weights}, target_{bytes_for(std::min<std::uint64_t>(weights.bytes(), most_bytes))} {}

double copy_meter::seconds() const {
    auto const target = target_.bytes_of(0);
    auto const begin = std::chrono::steady_clock::now();
    std::size_t at = 0;
    for (std::size_t i = 0; i < weights_.size(); ++i) {
        for (auto left = weights_.bytes_of(i); !left.empty();) {
            if (at == target.size()) at = 0;
            // a tensor goes in one piece where it fits at all
            if (left.size() > target.size() - at && left.size() <= target.size()) at = 0;
            auto const now = std::min(left.size(), target.size() - at);
            std::memcpy(target.data() + at, left.data(), now);
            left = left.subspan(now);
            at += now;
        }
    }
    return std::chrono::duration<double>{std::chrono::steady_clock::now() - begin}.count();
}

}  // namespace weightcast::program
