// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/io is host-only: include it from a .cpp file"
#endif
// A model as it lies on disk: one safetensors file, or shards and their index.

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <utility>
#include <vector>

#include <weightcast/base/error.hpp>
#include <weightcast/io/detail/in_quotes.hpp>
#include <weightcast/io/mapped_file.hpp>
#include <weightcast/io/safetensors_file.hpp>
#include <weightcast/io/safetensors_index.hpp>
#include <weightcast/tensor/named_view.hpp>

namespace weightcast {

namespace detail {

inline constexpr std::string_view index_suffix = ".safetensors.index.json";

/// The file that a folder's model begins with.
/// @throws bad_input  for a folder with no model, or with several
inline std::filesystem::path model_in_folder(std::filesystem::path const& folder) {
    std::vector<std::filesystem::path> indices;
    std::vector<std::filesystem::path> files;
    std::error_code code;
    for (std::filesystem::directory_iterator at{folder, code}, end; !code && at != end;
         at.increment(code)) {
        auto const name = at->path().filename().native();
        if (name.ends_with(index_suffix)) indices.push_back(at->path());
        if (name.ends_with(".safetensors") && !name.starts_with('.')) files.push_back(at->path());
    }
    if (code)
        throw bad_input{"cannot read folder " + in_quotes(folder.native()) + ": " + code.message()};
    auto const& found = indices.empty() ? files : indices;
    if (found.size() == 1) return found.front();
    for (auto const* const usual : {"model.safetensors.index.json", "model.safetensors"}) {
        if (std::ranges::find(found, folder / usual) != found.end()) return folder / usual;
    }
    throw bad_input{"folder " + in_quotes(folder.native()) + " has " +
                    std::to_string(indices.size()) + " safetensors indices and " +
                    std::to_string(files.size()) + " safetensors files: name the one to open"};
}

}  // namespace detail

/// An open model. Its views are those of its files (safetensors_file) and stay valid while the
/// object lives, also when it moves.
class safetensors_model {
  public:
    /// Opens a .safetensors file, a .safetensors.index.json with its shards beside it, or a folder
    /// that has one of them. Every tensor must be where the index says, and nowhere else.
    /// @throws bad_input  for anything that is missing, cut short, malformed or contradictory: one
    ///                    line, naming file and tensor
    static safetensors_model open(std::filesystem::path const& path) {
        std::error_code code;
        auto const chosen =
            std::filesystem::is_directory(path, code) ? detail::model_in_folder(path) : path;
        safetensors_model model;
        if (chosen.native().ends_with(".json")) {
            model.open_shards(chosen);
        } else {
            model.files_.push_back(safetensors_file::open(chosen));
        }
        model.collect();
        return model;
    }
    safetensors_model(safetensors_model&&) = default;
    safetensors_model& operator=(safetensors_model&&) = default;
    ~safetensors_model() = default;

    /// All tensors: shards in the order of their first mention in the index, each in the order of
    /// its data.
    std::span<named_view<host_space> const> tensors() const noexcept { return tensors_; }
    /// The tensor of that name, or null.
    named_view<host_space> const* find(std::string_view name) const noexcept {
        auto const found = index_.find(name);
        return found == index_.end() ? nullptr : &tensors_[found->second];
    }
    /// The files, each with its own metadata.
    std::span<safetensors_file const> files() const noexcept { return files_; }
    /// Bytes of all tensors.
    std::uint64_t bytes() const noexcept { return bytes_; }

  private:
    safetensors_model() = default;

    void open_shards(std::filesystem::path const& path) {
        auto const name = detail::in_quotes(path.native());
        auto const mapped = mapped_file::open(path);
        auto const text = mapped.bytes();
        if (text.size() > safetensors_header_limit) {
            throw bad_input{"file " + name + " has " + std::to_string(text.size()) +
                            " bytes: too many for an index"};
        }
        auto const index =
            read_safetensors_index({reinterpret_cast<char const*>(text.data()), text.size()}, name);
        for (auto const& shard : index.shards) {
            files_.push_back(safetensors_file::open(path.parent_path() / shard));
        }
        for (std::size_t shard = 0; shard < files_.size(); ++shard) check_shard(index, shard, name);
        check_complete(index, name);
    }
    void check_shard(safetensors_index const& index, std::size_t shard,
                     std::string const& name) const {
        for (auto const& t : files_[shard].tensors()) {
            auto const found = index.weights.find(std::string{t.name});
            if (found != index.weights.end() && found->second == shard) continue;
            throw bad_input{"file " + name + ": tensor " + detail::in_quotes(t.name) +
                                " is in shard " + detail::in_quotes(index.shards[shard]) +
                                ", but not by the index",
                            {.tensor = std::string{t.name}}};
        }
    }
    void check_complete(safetensors_index const& index, std::string const& name) const {
        for (auto const& [tensor, shard] : index.weights) {
            if (files_[shard].find(tensor) != nullptr) continue;
            throw bad_input{"file " + name + ": tensor " + detail::in_quotes(tensor) +
                                " is not in shard " + detail::in_quotes(index.shards[shard]),
                            {.tensor = tensor}};
        }
    }
    void collect() {
        for (auto const& file : files_) {
            for (auto const& t : file.tensors()) {
                index_.emplace(t.name, tensors_.size());
                tensors_.push_back(t);
                bytes_ += t.tensor.bytes();
            }
        }
    }

    std::vector<safetensors_file> files_{};
    std::vector<named_view<host_space>> tensors_{};
    std::unordered_map<std::string_view, std::size_t> index_{};
    std::uint64_t bytes_ = 0;
};

}  // namespace weightcast
