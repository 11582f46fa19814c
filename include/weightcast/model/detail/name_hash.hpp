// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/model is host-only: include it from a .cpp file"
#endif
// Hashes names so that a std::string_view finds a std::string without a copy of it.

#include <cstddef>
#include <functional>
#include <string_view>

namespace weightcast::detail {

struct name_hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view name) const noexcept {
        return std::hash<std::string_view>{}(name);
    }
};

}  // namespace weightcast::detail
