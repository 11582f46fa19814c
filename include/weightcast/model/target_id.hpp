// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/model is host-only: include it from a .cpp file"
#endif
// Which of an engine's tables an update is for.

#include <compare>
#include <string>
#include <string_view>
#include <utility>

#include <weightcast/base/error.hpp>

namespace weightcast {

/// `main` (the served model), `draft` (its speculative draft) or `adapter{id}` (a LoRA set).
class target_id {
  public:
    target_id() = default;  ///< main
    static target_id main() { return {}; }
    static target_id draft() { return target_id{"draft"}; }
    /// @throws bad_argument  for an empty id
    static target_id adapter(std::string_view id) {
        if (id.empty()) throw bad_argument{"target: an adapter needs an id"};
        return target_id{"adapter:" + std::string{id}};
    }
    /// Reads "main", "draft", "adapter:ID". @throws bad_input  for any other text
    static target_id parse(std::string_view text) {
        if (text == "main") return main();
        if (text == "draft") return draft();
        if (text.starts_with("adapter:") && text.size() > 8) return adapter(text.substr(8));
        throw bad_input{"target '" + std::string{text} + "' is none of main, draft, adapter:ID"};
    }
    bool is_adapter() const noexcept { return text_.starts_with("adapter:"); }
    friend std::string const& to_string(target_id const& id) noexcept { return id.text_; }
    friend bool operator==(target_id const&, target_id const&) = default;
    friend auto operator<=>(target_id const&, target_id const&) = default;

  private:
    explicit target_id(std::string text) : text_{std::move(text)} {}
    std::string text_ = "main";
};

}  // namespace weightcast
