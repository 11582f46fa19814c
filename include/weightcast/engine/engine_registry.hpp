// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/engine is host-only: include it from a .cpp file"
#endif
// Engines by the name of their backend, for programs that learn the name at run time.

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <weightcast/base/error.hpp>
#include <weightcast/engine/any_engine.hpp>
#include <weightcast/engine/concepts.hpp>

namespace weightcast {

namespace detail {

/// How many characters have to be added, dropped or replaced (Levenshtein).
inline std::size_t edit_distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 0; i < a.size(); ++i) {
        std::size_t diagonal = std::exchange(row[0], i + 1);
        for (std::size_t j = 0; j < b.size(); ++j) {
            std::size_t const replaced = diagonal + (a[i] == b[j] ? 0 : 1);
            diagonal = row[j + 1];
            row[j + 1] = std::min({row[j] + 1, row[j + 1] + 1, replaced});
        }
    }
    return row.back();
}

}  // namespace detail

/// Makes an engine, each time a new one.
using engine_factory = std::function<any_engine()>;

/// Factories by backend name ("dense", "nccl", "ipc", ...). A value without hidden state: a program fills its
/// own with the engines whose headers it includes.
class engine_registry {
  public:
    /// `make()` returns an engine, or an any_engine.
    /// @throws bad_argument  for an empty name, or one that is taken; the registry is as it was
    template <class Make>
        requires std::same_as<std::invoke_result_t<Make&>, any_engine> ||
                 AnyTransferEngine<std::invoke_result_t<Make&>>
    engine_registry& add(std::string_view backend, Make make) {
        if (backend.empty()) throw bad_argument{"an engine's backend needs a name"};
        if (factories_.contains(backend)) {
            throw bad_argument{"backend '" + std::string{backend} + "' is registered already"};
        }
        factories_.emplace(backend,
                           [made_by = std::move(make)]() mutable { return any_engine{made_by()}; });
        return *this;
    }

    bool contains(std::string_view backend) const { return factories_.contains(backend); }
    /// In the order of the names.
    std::vector<std::string> backends() const {
        std::vector<std::string> names;
        for (auto const& [name, _] : factories_) names.push_back(name);
        return names;
    }
    /// The registered name that a wrong one is most like, if it is like any: a third of it may differ, and case.
    std::optional<std::string> nearest(std::string_view backend) const {
        std::optional<std::string> best;
        std::size_t least = std::max<std::size_t>(1, backend.size() / 3) + 1;
        for (auto const& [name, _] : factories_) {
            auto const distance = detail::edit_distance(lower(backend), lower(name));
            if (distance >= least) continue;
            least = distance;
            best = name;
        }
        return best;
    }
    /// @throws bad_argument  for an unknown backend, naming the known ones and the nearest; else what it throws
    any_engine make(std::string_view backend) const {
        auto const found = factories_.find(backend);
        if (found == factories_.end()) throw bad_argument{unknown(backend)};
        return found->second();
    }

  private:
    static std::string lower(std::string_view text) {
        std::string result{text};
        std::ranges::transform(result, result.begin(), [](char c) {
            return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
        });
        return result;
    }
    std::string unknown(std::string_view backend) const {
        std::string text = "unknown backend '" + std::string{backend} + "'; ";
        if (factories_.empty())
            return text + "none is registered: add the engines whose headers you include";
        if (auto const like = nearest(backend)) text += "did you mean '" + *like + "'? ";
        text += "Registered: ";
        for (auto const& [name, _] : factories_) text += (text.ends_with(": ") ? "" : ", ") + name;
        return text;
    }
    std::map<std::string, engine_factory, std::less<>> factories_;
};

/// A new engine of that backend.
/// @throws bad_argument  for an unknown backend, naming the known ones and the nearest
inline any_engine make_engine(engine_registry const& registry, std::string_view backend) {
    return registry.make(backend);
}

}  // namespace weightcast
