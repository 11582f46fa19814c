// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/model is host-only: include it from a .cpp file"
#endif
// From the names of a checkpoint or trainer to those of the engine.

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <weightcast/base/error.hpp>

namespace weightcast {

/// Renaming rules: the first prefix rule that matches replaces its prefix, then the functions run in the order in which
/// they were added. First match and not longest: what happens to a name is read from top to bottom, as in the loaders
/// of engines; a rule that an earlier one hides is refused, so that the order cannot go wrong silently.
class name_map {
  public:
    using rename_function = std::function<std::string(std::string_view)>;

    /// Names that begin with `from` begin with `to` instead. The text is taken as it stands: end it with '.' to match
    /// whole components. An empty `from` matches every name.
    /// @throws bad_argument  when an earlier rule matches all that this one would
    name_map& prefix(std::string_view from, std::string_view to) {
        for (auto const& rule : rules_) {
            if (!from.starts_with(rule.from)) continue;
            throw bad_argument{"name map: prefix '" + std::string{from} +
                               "' can never match behind prefix '" + rule.from + "'"};
        }
        rules_.push_back({std::string{from}, std::string{to}});
        return *this;
    }
    /// @throws bad_argument  for a function that is none
    name_map& function(rename_function rename) {
        if (!rename) throw bad_argument{"name map: the function is empty"};
        functions_.push_back(std::move(rename));
        return *this;
    }

    /// The engine's name: the same one where no rule matches, an empty one where nothing is left of it.
    /// @throws whatever a function throws
    /// Cost: linear in the number of rules, not of names.
    std::string operator()(std::string_view name) const {
        std::string renamed{name};
        for (auto const& rule : rules_) {
            if (!name.starts_with(rule.from)) continue;
            renamed = rule.to + std::string{name.substr(rule.from.size())};
            break;
        }
        for (auto const& rename : functions_) renamed = rename(renamed);
        return renamed;
    }

  private:
    struct prefix_rule {
        std::string from;
        std::string to;
    };
    std::vector<prefix_rule> rules_;
    std::vector<rename_function> functions_;
};

}  // namespace weightcast
