// SPDX-License-Identifier: Apache-2.0
#pragma once
// A stream's thread runs code of whoever put an operation on it, later than the call: that code must not be
// unloaded in between.

#include <dlfcn.h>

namespace weightcast::detail {

/// From the first call on, the shared library (or program) that this call is compiled into stays loaded.
/// Hidden, so that each library has a static of its own: one that others see would keep the first caller only.
[[gnu::visibility("hidden")]] inline void keep_this_code_loaded() noexcept {
    [[maybe_unused]] static bool const kept = [] {
        static char const here = 0;
        Dl_info info{};
        return ::dladdr(&here, &info) != 0 && info.dli_fname != nullptr &&
               ::dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE) != nullptr;
    }();
}

}  // namespace weightcast::detail
