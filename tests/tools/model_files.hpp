// SPDX-License-Identifier: Apache-2.0
// Small models in files, written byte by byte here and not by the library that is tested.
#pragma once

#include <stdlib.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace weightcast::test {

/// A folder that goes with its object.
class temporary_folder {
  public:
    temporary_folder() {
        auto pattern = (std::filesystem::temp_directory_path() / "weightcast-XXXXXX").string();
        if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error{"mkdtemp failed"};
        path_ = pattern;
    }
    temporary_folder(temporary_folder const&) = delete;
    temporary_folder& operator=(temporary_folder const&) = delete;
    ~temporary_folder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    std::string operator/(std::string const& name) const { return (path_ / name).string(); }
    std::filesystem::path const& path() const noexcept { return path_; }

  private:
    std::filesystem::path path_;
};

struct file_tensor {
    std::string name;
    std::string type;  ///< as safetensors spells it
    std::vector<std::int64_t> shape;
    std::string bytes;
};

/// A tensor with bytes that its name determines.
inline file_tensor made_tensor(std::string name, std::string type, std::vector<std::int64_t> shape,
                               std::size_t item_size) {
    std::size_t count = item_size;
    for (auto const e : shape) count *= static_cast<std::size_t>(e);
    std::string bytes(count, '\0');
    std::uint64_t state = 88172645463325252U;
    for (char const c : name) state = state * 31 + static_cast<unsigned char>(c);
    for (auto& b : bytes) {
        state ^= state << 13U;
        state ^= state >> 7U;
        state ^= state << 17U;
        b = static_cast<char>(state);
    }
    if (type == "BOOL") {
        for (auto& b : bytes) b = static_cast<char>(b & 1);
    }
    return {std::move(name), std::move(type), std::move(shape), std::move(bytes)};
}

/// As the trainers of the field write it: length, header, bytes without gaps.
inline std::string safetensors_bytes(std::vector<file_tensor> const& tensors) {
    std::string header = "{";
    std::string data;
    for (auto const& t : tensors) {
        if (header.size() > 1) header += ',';
        header += '"' + t.name + "\":{\"dtype\":\"" + t.type + "\",\"shape\":[";
        for (std::size_t i = 0; i < t.shape.size(); ++i) {
            header += (i == 0 ? "" : ",") + std::to_string(t.shape[i]);
        }
        header += "],\"data_offsets\":[" + std::to_string(data.size()) + ',' +
                  std::to_string(data.size() + t.bytes.size()) + "]}";
        data += t.bytes;
    }
    header += '}';
    while (header.size() % 8 != 0) header += ' ';
    std::uint64_t const length = header.size();
    std::string file(sizeof length, '\0');
    std::memcpy(file.data(), &length, sizeof length);
    return file + header + data;
}

inline void write_file(std::string const& path, std::string const& bytes) {
    std::ofstream out{path, std::ios::binary};
    out << bytes;
    if (!out.flush()) throw std::runtime_error{"cannot write " + path};
}

inline std::string read_file(std::string const& path) {
    std::ifstream in{path, std::ios::binary};
    if (!in) throw std::runtime_error{"cannot read " + path};
    return {std::istreambuf_iterator<char>{in}, {}};
}

/// Types, shapes and sizes as models have them, and as they should not have: a scalar, an empty tensor, odd
/// bytes, one that is sent by itself.
inline std::vector<file_tensor> mixed_model() {
    return {made_tensor("embed.weight", "BF16", {40, 33}, 2),
            made_tensor("layers.0.norm", "F32", {64}, 4),
            made_tensor("layers.0.large", "F32", {700, 400}, 4),
            made_tensor("layers.0.scale", "F64", {}, 8),
            made_tensor("layers.0.mask", "BOOL", {7}, 1),
            made_tensor("layers.1.empty", "F16", {0, 5}, 2),
            made_tensor("layers.1.ids", "I64", {3, 2}, 8),
            made_tensor("layers.1.fp8", "F8_E4M3", {5, 5}, 1),
            made_tensor("lm_head.weight", "F16", {9, 11}, 2)};
}

/// Bytes of its tensors.
inline std::uint64_t bytes_of(std::vector<file_tensor> const& model) {
    std::uint64_t sum = 0;
    for (auto const& t : model) sum += t.bytes.size();
    return sum;
}

}  // namespace weightcast::test
