// SPDX-License-Identifier: Apache-2.0
// A folder of one test's own, and files written and read whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace weightcast::test {

class temporary_folder {
  public:
    temporary_folder() {
        auto name = (std::filesystem::temp_directory_path() / "weightcast-test-XXXXXX").string();
        if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error{"mkdtemp failed"};
        path_ = name;
    }
    temporary_folder(temporary_folder const&) = delete;
    ~temporary_folder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    std::filesystem::path const& path() const noexcept { return path_; }
    std::filesystem::path operator/(std::string_view name) const { return path_ / name; }
    /// Names of everything in it.
    std::vector<std::string> names() const {
        std::vector<std::string> found;
        for (auto const& e : std::filesystem::directory_iterator{path_}) {
            found.push_back(e.path().filename().string());
        }
        return found;
    }

  private:
    std::filesystem::path path_;
};

inline void write_file(std::filesystem::path const& path, std::string_view bytes) {
    std::ofstream out{path, std::ios::binary | std::ios::trunc};
    out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    if (!out.flush()) throw std::runtime_error{"cannot write " + path.string()};
}

inline std::string read_file(std::filesystem::path const& path) {
    std::ifstream in{path, std::ios::binary};
    return {std::istreambuf_iterator<char>{in}, {}};
}

/// A safetensors file of that header and data.
inline std::string safetensors_bytes(std::string_view header, std::string_view data) {
    std::string bytes;
    for (unsigned i = 0; i < 8; ++i) {
        bytes += static_cast<char>(std::uint64_t{header.size()} >> (8 * i) & 0xFFU);
    }
    return bytes.append(header).append(data);
}

}  // namespace weightcast::test
