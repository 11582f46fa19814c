// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/model is host-only: include it from a .cpp file"
#endif
// Which weights made which tokens of a request that went on while they were updated.

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <weightcast/base/byte_count.hpp>
#include <weightcast/base/error.hpp>
#include <weightcast/model/weight_version.hpp>

namespace weightcast {

/// Tokens [first, last) of a request, made by one version.
struct version_span {
    weight_version version{};
    std::uint64_t first = 0;
    std::uint64_t last = 0;
    friend bool operator==(version_span const&, version_span const&) = default;
};

/// The versions of a request's tokens, in the order in which the tokens were made. Equal neighbours are one span;
/// weights that were never set are a version of their own, whatever labels there are. Belongs to one thread.
class version_spans {
  public:
    /// The next tokens were made by that version. Nothing for 0 tokens.
    /// @throws bad_input  when all tokens do not fit in 64 bits; nothing changed
    /// Cost: a comparison of versions; an allocation only where the version changes.
    void add(weight_version const& version, std::uint64_t tokens = 1) {
        if (tokens == 0) return;
        auto const last = checked_add(size(), tokens);
        if (spans_.empty() || spans_.back().version != version) {
            spans_.push_back({version, size(), last});
        } else {
            spans_.back().last = last;
        }
    }

    /// They follow each other without gaps from token 0; none is empty.
    std::vector<version_span> const& spans() const noexcept { return spans_; }
    /// Tokens in all.
    std::uint64_t size() const noexcept { return spans_.empty() ? 0 : spans_.back().last; }

    /// The version that made a token, counted from 0. Valid until the next `add`.
    /// @throws bad_argument  for a token that was not added
    /// Cost: logarithmic in the number of spans.
    weight_version const& version_at(std::uint64_t token) const {
        if (token >= size()) {
            throw bad_argument{"token " + std::to_string(token) + " has no version: there are " +
                               std::to_string(size()) + " tokens"};
        }
        auto const found = std::upper_bound(
            spans_.begin(), spans_.end(), token,
            [](std::uint64_t t, version_span const& span) { return t < span.last; });
        return found->version;
    }

  private:
    std::vector<version_span> spans_;
};

}  // namespace weightcast
