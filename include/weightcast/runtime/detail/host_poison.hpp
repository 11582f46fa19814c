// SPDX-License-Identifier: Apache-2.0
#pragma once
// Makes memory that a pool holds unfit for reading: filled with a pattern, and closed to the address
// sanitizer where the program has one.

#include <cstddef>
#include <cstring>

#include <dlfcn.h>

namespace weightcast::detail {

/// What freed memory reads as.
inline constexpr int host_poison_pattern = 0xDB;

/// The address sanitizer's two entry points, found by name: no macro, so that every object file has the
/// same inline bodies whatever it was compiled with.
class host_poison {
  public:
    host_poison() noexcept
        : close_{find("__asan_poison_memory_region")},
          open_{find("__asan_unpoison_memory_region")} {}

    /// Fills what was used and closes all of it.
    void poison(void* data, std::size_t used, std::size_t capacity) const noexcept {
        std::memset(data, host_poison_pattern, used);
        if (close_ != nullptr) close_(data, capacity);
    }
    void unpoison(void* data, std::size_t bytes) const noexcept {
        if (open_ != nullptr) open_(data, bytes);
    }

  private:
    using entry = void (*)(void const volatile*, std::size_t);
    static entry find(char const* name) noexcept {
        return reinterpret_cast<entry>(::dlsym(RTLD_DEFAULT, name));
    }
    entry close_;
    entry open_;
};

}  // namespace weightcast::detail
