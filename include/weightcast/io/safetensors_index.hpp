// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/io is host-only: include it from a .cpp file"
#endif
// The index of a sharded model, as a pure function of its text.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <weightcast/base/error.hpp>
#include <weightcast/io/detail/in_quotes.hpp>
#include <weightcast/io/detail/json_events.hpp>

namespace weightcast {

/// What `model.safetensors.index.json` says: which shard holds which tensor.
struct safetensors_index {
    std::vector<std::string> shards{};  ///< file names, in the order of their first mention
    std::unordered_map<std::string, std::size_t>
        weights{};  ///< checkpoint name to index of `shards`
};

namespace detail {

/// {"metadata": ..., "weight_map": {"name": "file name", ...}, ...}: all but weight_map is skipped.
class index_grammar {
  public:
    explicit index_grammar(std::string file) : file_{std::move(file)} {}

    /// @throws bad_input  when there was no weight_map, or an empty one
    safetensors_index take() {
        if (!members_.contains("weight_map")) refuse("it has no weight_map");
        if (index_.weights.empty()) refuse("its weight_map is empty");
        return std::move(index_);
    }

    void begin_object() {
        if (place_ == place::outside) {
            place_ = place::top;
        } else if (at_map()) {
            place_ = place::map;
        } else {
            skip("an object");
        }
    }
    void end_object() {
        if (place_ == place::skipped) return leave_skipped();
        place_ = place_ == place::map ? place::top : place::outside;
    }
    void begin_array() { skip("an array"); }
    void end_array() { leave_skipped(); }
    void key(std::string text) {
        if (place_ == place::skipped) return;
        if (place_ == place::top && !members_.insert(text).second) {
            refuse("its member " + in_quotes(text) + " comes twice");
        }
        if (place_ == place::map && index_.weights.contains(text)) {
            refuse("the name " + in_quotes(text) + " comes twice in its weight_map");
        }
        key_ = std::move(text);
    }
    void text(std::string value) {
        if (place_ != place::map) return scalar("a string");
        check_shard(value);
        auto const [found, added] = numbers_.try_emplace(value, index_.shards.size());
        if (added) index_.shards.push_back(std::move(value));
        index_.weights.emplace(std::move(key_), found->second);
    }
    void number(std::uint64_t) { scalar("a number"); }
    void other(char const* what) { scalar(what); }

  private:
    enum class place { outside, top, map, skipped };

    [[noreturn]] void refuse(std::string const& why) const {
        throw bad_input{"file " + file_ + ": " + why};
    }
    bool at_map() const { return place_ == place::top && key_ == "weight_map"; }
    void scalar(char const* what) const {
        if (place_ == place::outside) refuse(std::string{"expected an object, got "} + what);
        if (place_ == place::map) {
            refuse("expected a file name for tensor " + in_quotes(key_) + ", got " + what);
        }
        if (at_map()) refuse(std::string{"expected an object as its weight_map, got "} + what);
    }
    void skip(char const* what) {
        scalar(what);
        place_ = place::skipped;
        ++skipped_depth_;
    }
    void leave_skipped() {
        if (--skipped_depth_ == 0) place_ = place::top;
    }
    // A shard lies beside its index: a name never leads out of the folder.
    void check_shard(std::string const& shard) const {
        bool plain = !shard.empty() && shard != "." && shard != "..";
        for (char const c : shard) {
            plain = plain && c != '/' && c != '\\' && static_cast<unsigned char>(c) >= 0x20;
        }
        if (plain) return;
        refuse("tensor " + in_quotes(key_) + " is said to be in " + in_quotes(shard) +
               ", which is no plain file name");
    }

    std::string file_;
    place place_ = place::outside;
    std::size_t skipped_depth_ = 0;
    std::string key_{};
    std::unordered_set<std::string> members_{};
    std::unordered_map<std::string, std::size_t> numbers_{};
    safetensors_index index_{};
};

}  // namespace detail

/// Reads an index; `file` names it in messages.
/// @throws bad_input  for text that is no index, a name that comes twice, or a shard that is no
///                    file name
inline safetensors_index read_safetensors_index(std::string_view text, std::string const& file) {
    detail::index_grammar grammar{file};
    detail::read_json(text, grammar, "file " + file);
    return grammar.take();
}

}  // namespace weightcast
