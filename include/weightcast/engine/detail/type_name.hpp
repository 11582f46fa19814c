// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/engine is host-only: include it from a .cpp file"
#endif
// Names of types for messages, as a person would write them.

#include <cxxabi.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <typeinfo>

namespace weightcast::detail {

/// "weightcast::dense_update"; the mangled name where it cannot be read.
inline std::string readable_name(std::type_info const& type) {
    struct free_memory {
        void operator()(char* p) const noexcept { std::free(p); }
    };
    int status = 0;
    std::unique_ptr<char, free_memory> const name{
        abi::__cxa_demangle(type.name(), nullptr, nullptr, &status)};
    return status == 0 ? std::string{name.get()} : std::string{type.name()};
}

}  // namespace weightcast::detail
