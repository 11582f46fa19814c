// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/model is host-only: include it from a .cpp file"
#endif
// The embedded target: whole tensors by checkpoint name.

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <weightcast/base/error.hpp>
#include <weightcast/model/parameter.hpp>
#include <weightcast/tensor/concepts.hpp>
#include <weightcast/tensor/tensor_view.hpp>

namespace weightcast {

/// Writable tensors by name; refers to their memory, which must outlive it. Names are unique.
template <MemorySpace Space = host_space>
class parameter_table {
  public:
    using view = tensor_view<Space>;

    /// Takes note of a tensor that updates of that name are written into.
    /// @throws bad_argument  for a name that is there already, or an empty one
    template <WritableDeviceTensor T>
        requires std::same_as<space_of<T>, Space>
    void add(std::string_view name, T&& tensor) {
        if (name.empty()) throw bad_argument{"a parameter needs a name"};
        auto const [place, added] =
            tensors_.try_emplace(std::string{name}, writable_view_of(tensor));
        if (!added) throw bad_argument{"parameter '" + place->first + "' is in the table already"};
    }

    /// The tensor of that name, or null.
    view const* find(std::string_view name) const {
        auto const found = tensors_.find(name);
        return found == tensors_.end() ? nullptr : &found->second;
    }
    std::size_t size() const noexcept { return tensors_.size(); }
    /// (name, tensor) in name order.
    auto begin() const noexcept { return tensors_.begin(); }
    auto end() const noexcept { return tensors_.end(); }

    /// What is wrong with an update of these parameters, or nothing. Writes nothing.
    std::optional<std::string> objection(parameter const* parameters, std::size_t count) const {
        std::vector<std::string_view> unknown;
        std::map<std::string_view, std::size_t> seen;
        for (std::size_t i = 0; i < count; ++i) {
            auto const& p = parameters[i];
            if (!seen.emplace(p.name, i).second) {
                return "tensor '" + p.name + "' is announced twice";
            }
            auto const* here = find(p.name);
            if (here == nullptr) {
                unknown.push_back(p.name);
            } else if (here->type() != p.type || here->shape() != p.shape) {
                return "tensor '" + p.name + "' is announced as " + describe_type(p.type, p.shape) +
                       ", held as " + describe_type(here->type(), here->shape());
            }
        }
        if (unknown.empty()) return std::nullopt;
        return list_unknown(unknown, count);
    }
    /// Names of the table that these parameters do not update, in name order.
    std::vector<std::string> not_covered(parameter const* parameters, std::size_t count) const {
        std::map<std::string_view, bool> covered;
        for (std::size_t i = 0; i < count; ++i) covered.emplace(parameters[i].name, true);
        std::vector<std::string> missing;
        for (auto const& [name, _] : tensors_) {
            if (!covered.contains(name)) missing.push_back(name);
        }
        return missing;
    }

  private:
    static std::string list_unknown(std::vector<std::string_view> const& unknown,
                                    std::size_t count) {
        std::string text = std::to_string(unknown.size()) + " of " + std::to_string(count) +
                           " announced names are unknown here:";
        for (std::size_t i = 0; i < unknown.size() && i < 3; ++i) {
            text.append(i == 0 ? " '" : ", '").append(unknown[i]).append("'");
        }
        return unknown.size() > 3 ? text + ", ..." : text;
    }
    std::map<std::string, view, std::less<>> tensors_;
};

}  // namespace weightcast
