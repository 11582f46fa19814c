// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/io is host-only: include it from a .cpp file"
#endif
// One safetensors file, read in place.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <weightcast/base/error.hpp>
#include <weightcast/io/detail/in_quotes.hpp>
#include <weightcast/io/mapped_file.hpp>
#include <weightcast/io/safetensors_header.hpp>
#include <weightcast/tensor/named_view.hpp>

namespace weightcast {

/// An open safetensors file. Its views point into the mapped file (see mapped_file for files that
/// change) and stay valid while the object lives, also when it moves. They need not be aligned to
/// their dtype. Reading from several threads is safe.
class safetensors_file {
  public:
    /// Opens and checks a file. Cost: its header is read; of its data, no page is touched.
    /// @throws bad_input  for a file that is missing, cut short or malformed: one line, naming the
    ///                    tensor
    static safetensors_file open(std::filesystem::path const& path) {
        return safetensors_file{path, mapped_file::open(path)};
    }
    safetensors_file(safetensors_file&&) = default;
    safetensors_file& operator=(safetensors_file&&) = default;
    ~safetensors_file() = default;

    std::filesystem::path const& path() const noexcept { return path_; }
    /// All tensors, in the order of their data.
    std::span<named_view<host_space> const> tensors() const noexcept { return tensors_; }
    /// The tensor of that name, or null.
    named_view<host_space> const* find(std::string_view name) const noexcept {
        auto const found = index_.find(name);
        return found == index_.end() ? nullptr : &tensors_[found->second];
    }
    /// `__metadata__`, empty where there is none.
    safetensors_metadata const& metadata() const noexcept { return header_.metadata; }

  private:
    safetensors_file(std::filesystem::path path, mapped_file file)
        : path_{std::move(path)}, file_{std::move(file)} {
        auto const data = read_header();
        tensors_.reserve(header_.entries.size());
        index_.reserve(header_.entries.size());
        for (auto const& e : header_.entries) {
            index_.emplace(e.name, tensors_.size());
            tensors_.push_back({e.name, {data.data() + e.begin, e.type, e.shape}});
        }
    }
    // Returns the data behind the header.
    std::span<std::byte const> read_header() {
        auto const name = detail::in_quotes(path_.native());
        auto const bytes = file_.bytes();
        std::uint64_t length = 0;
        if (bytes.size() < sizeof length) {
            throw bad_input{"file " + name + " has " + std::to_string(bytes.size()) +
                            " bytes: too few for a safetensors file"};
        }
        std::memcpy(&length, bytes.data(), sizeof length);
        auto const rest = bytes.subspan(sizeof length);
        if (length > safetensors_header_limit) {
            throw bad_input{"file " + name + " claims a header of " + std::to_string(length) +
                            " bytes; at most " + std::to_string(safetensors_header_limit) +
                            " are read: is it a safetensors file?"};
        }
        if (length > rest.size()) {
            throw bad_input{"file " + name + " claims a header of " + std::to_string(length) +
                            " bytes, but only " + std::to_string(rest.size()) +
                            " follow: it is cut short, or no safetensors file"};
        }
        auto const size = static_cast<std::size_t>(length);
        std::string_view const text{reinterpret_cast<char const*>(rest.data()), size};
        header_ = detail::read_safetensors_header(text, rest.size() - size, name);
        return rest.subspan(size);
    }

    std::filesystem::path path_;
    mapped_file file_;
    detail::safetensors_header header_{};
    std::vector<named_view<host_space>> tensors_{};  // names point into header_
    std::unordered_map<std::string_view, std::size_t> index_{};
};

}  // namespace weightcast
