// SPDX-License-Identifier: Apache-2.0
#include <program/model_difference.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <weightcast/kernels/model_digest.hpp>

namespace weightcast::program {

namespace {

std::uint64_t first_difference(const_tensor_view<> const& a, const_tensor_view<> const& b) {
    auto const* const bytes = static_cast<std::byte const*>(a.data());
    auto const* const end = bytes + a.bytes();
    auto const [at, _] = std::mismatch(bytes, end, static_cast<std::byte const*>(b.data()));
    return static_cast<std::uint64_t>(at - bytes);
}

std::optional<tensor_difference> compare(named_view<> const& a, named_view<> const& b) {
    tensor_difference found{
        std::string{a.name}, difference_reason::dtype, {}, &a.tensor, &b.tensor};
    if (a.tensor.type() != b.tensor.type()) return found;
    found.reason = difference_reason::shape;
    if (a.tensor.shape() != b.tensor.shape()) return found;
    if (tensor_digest(a.tensor) == tensor_digest(b.tensor)) return std::nullopt;
    found.reason = difference_reason::bytes;
    found.first_byte = first_difference(a.tensor, b.tensor);
    return found;
}

}  // namespace

std::string_view to_string(difference_reason reason) noexcept {
    switch (reason) {
        case difference_reason::missing: return "missing";
        case difference_reason::dtype: return "dtype";
        case difference_reason::shape: return "shape";
        case difference_reason::bytes: break;
    }
    return "bytes";
}

model_comparison compare(std::span<named_view<> const> a, std::span<named_view<> const> b) {
    std::map<std::string_view, named_view<> const*> others;
    for (auto const& t : b) others.emplace(t.name, &t);
    model_comparison result;
    for (auto const& t : a) {
        auto const other = others.extract(t.name);
        if (other.empty()) {
            result.differences.push_back(
                {std::string{t.name}, difference_reason::missing, {}, &t.tensor, nullptr});
        } else if (auto const found = compare(t, *other.mapped())) {
            result.differences.push_back(*found);
        }
    }
    for (auto const& t : b) {
        if (!others.contains(t.name)) continue;
        result.differences.push_back(
            {std::string{t.name}, difference_reason::missing, {}, nullptr, &t.tensor});
    }
    result.tensors = a.size() + others.size();
    return result;
}

}  // namespace weightcast::program
