// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/io is host-only: include it from a .cpp file"
#endif
// What a safetensors header may say, checked while it is read; one clear refusal for everything
// else.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include <weightcast/base/byte_count.hpp>
#include <weightcast/base/error.hpp>
#include <weightcast/io/detail/in_quotes.hpp>
#include <weightcast/io/safetensors_dtype.hpp>
#include <weightcast/tensor/dtype.hpp>
#include <weightcast/tensor/extents.hpp>

namespace weightcast::detail {

/// One tensor of a header: [begin, end) are bytes of the data behind the header.
struct header_entry {
    std::string name{};
    dtype type = dtype::uint8;
    extents shape{};  ///< as torch has it: F4 counts bytes
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
};

/// {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ..., "__metadata__": {"k":
/// "v"}} Members of a tensor that the format does not know are skipped, as its reference
/// implementation does.
class header_grammar {
  public:
    /// `file` names the file in messages.
    explicit header_grammar(std::string file) : file_{std::move(file)} {}

    std::vector<header_entry> take_entries() { return std::move(entries_); }
    std::map<std::string, std::string> take_metadata() { return std::move(metadata_); }

    void begin_object() {
        switch (place_) {
            case place::outside: place_ = place::top; return;
            case place::top: return open_member();
            case place::tensor: return skip_or_refuse("an object");
            case place::skipped: ++skipped_depth_; return;
            default: refuse_value("an object");
        }
    }
    void end_object() {
        switch (place_) {
            case place::top: place_ = place::outside; return;
            case place::metadata: place_ = place::top; return;
            case place::tensor: return close_tensor();
            default: return leave_skipped();
        }
    }
    void begin_array() {
        if (place_ == place::skipped) {
            ++skipped_depth_;
        } else if (place_ == place::tensor && member_ == "shape") {
            place_ = place::shape;
        } else if (place_ == place::tensor && member_ == "data_offsets") {
            place_ = place::offsets;
        } else {
            skip_or_refuse("an array");
        }
    }
    void end_array() {
        if (place_ == place::skipped) return leave_skipped();
        place_ = place::tensor;
    }
    void key(std::string text) {
        if (place_ == place::top) return name(std::move(text));
        if (place_ == place::metadata && metadata_.contains(text)) {
            refuse("its metadata has the key " + in_quotes(text) + " twice");
        }
        if (place_ == place::tensor && !members_.insert(text).second) {
            refuse("its member " + in_quotes(text) + " comes twice");
        }
        if (place_ != place::skipped) member_ = std::move(text);
    }
    void text(std::string value) {
        if (place_ == place::metadata) {
            metadata_.emplace(member_, std::move(value));
        } else if (place_ == place::tensor && member_ == "dtype") {
            auto const found = find_safetensors_dtype(value);
            if (!found) refuse("unknown dtype " + in_quotes(value));
            type_ = *found;
        } else {
            scalar("a string");
        }
    }
    void number(std::uint64_t value) {
        if (place_ == place::shape) {
            add_extent(value);
        } else if (place_ == place::offsets) {
            if (offsets_.size() == 2) refuse("expected two data_offsets, got more");
            offsets_.push_back(value);
        } else {
            scalar("a number");
        }
    }
    void other(char const* what) { scalar(what); }

  private:
    enum class place { outside, top, metadata, tensor, shape, offsets, skipped };

    [[noreturn]] void refuse(std::string const& why) const {
        throw bad_input{
            "file " + file_ + (name_.empty() ? "" : ": tensor " + in_quotes(name_)) + ": " + why,
            {.tensor = name_}};
    }
    [[noreturn]] void refuse_value(char const* what) const {
        switch (place_) {
            case place::outside:
                refuse(std::string{"expected an object as its header, got "} + what);
            case place::top: refuse(std::string{"expected an object, got "} + what);
            case place::metadata:
                refuse("expected a string as metadata " + in_quotes(member_) + ", got " + what);
            case place::shape: refuse(std::string{"expected extents as its shape, got "} + what);
            case place::offsets:
                refuse(std::string{"expected numbers as data_offsets, got "} + what);
            default: refuse("expected another value of " + in_quotes(member_) + ", got " + what);
        }
    }
    bool is_unknown_member() const {
        return member_ != "dtype" && member_ != "shape" && member_ != "data_offsets";
    }
    void scalar(char const* what) const {
        if (place_ == place::skipped || (place_ == place::tensor && is_unknown_member())) return;
        refuse_value(what);
    }
    void skip_or_refuse(char const* what) {
        if (place_ != place::tensor || !is_unknown_member()) refuse_value(what);
        place_ = place::skipped;
        skipped_depth_ = 1;
    }
    void leave_skipped() {
        if (--skipped_depth_ == 0) place_ = place::tensor;
    }
    void name(std::string text) {
        name_.clear();
        if (!names_.insert(text).second) {
            refuse("the name " + in_quotes(text) + " comes twice in its header");
        }
        name_ = std::move(text);
    }
    void open_member() {
        if (name_ == "__metadata__") {
            name_.clear();
            place_ = place::metadata;
            return;
        }
        place_ = place::tensor;
        members_.clear();
        shape_ = {};
        offsets_.clear();
    }
    void add_extent(std::uint64_t value) {
        if (value > static_cast<std::uint64_t>(INT64_MAX))
            refuse("an extent does not fit in 63 bits");
        if (shape_.size() == extents::max_rank) refuse("its shape has more than 8 dimensions");
        shape_.push_back(static_cast<std::int64_t>(value));
    }
    void close_tensor() {
        for (auto const* const needed : {"dtype", "shape", "data_offsets"}) {
            if (!members_.contains(needed)) refuse(std::string{"it has no "} + needed);
        }
        if (offsets_.size() != 2) refuse("expected two data_offsets, got fewer");
        if (offsets_[1] < offsets_[0]) {
            refuse("its data_offsets run backwards, from " + std::to_string(offsets_[0]) + " to " +
                   std::to_string(offsets_[1]));
        }
        check_size();
        entries_.push_back({name_, type_, shape_, offsets_[0], offsets_[1]});
        name_.clear();
        place_ = place::top;
    }
    void check_size() {
        std::uint64_t bytes = 0;
        try {
            shape_ = shape_from_safetensors(type_, shape_);
            bytes = checked_multiply(element_count(shape_), item_size(type_));
        } catch (bad_input const& e) {
            refuse(e.what());
        }
        if (bytes == offsets_[1] - offsets_[0]) return;
        refuse("expected " + std::to_string(bytes) + " bytes for dtype " +
               std::string{safetensors_name(type_)} + " and its shape, got " +
               std::to_string(offsets_[1] - offsets_[0]) + " from its data_offsets");
    }

    std::string file_;
    place place_ = place::outside;
    std::uint64_t skipped_depth_ = 0;
    std::string name_{};    // of the tensor that is being read, empty outside
    std::string member_{};  // of the tensor or of the metadata
    std::unordered_set<std::string> names_{};
    std::unordered_set<std::string> members_{};
    dtype type_ = dtype::uint8;
    extents shape_{};
    std::vector<std::uint64_t> offsets_{};
    std::vector<header_entry> entries_{};
    std::map<std::string, std::string> metadata_{};
};

}  // namespace weightcast::detail
