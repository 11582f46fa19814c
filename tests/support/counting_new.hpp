// SPDX-License-Identifier: Apache-2.0
// Replaces operator new by one that counts. Included in exactly one file of a test program.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>

#include <support/allocation_count.hpp>

namespace weightcast::test {

inline void* counted(std::size_t bytes) noexcept {
    allocation_counter().fetch_add(1, std::memory_order_relaxed);
    return std::malloc(bytes == 0 ? 1 : bytes);
}
inline void* counted(std::size_t bytes, std::align_val_t alignment) noexcept {
    allocation_counter().fetch_add(1, std::memory_order_relaxed);
    auto const step = static_cast<std::size_t>(alignment);
    return std::aligned_alloc(step, (bytes + step - 1) / step * step);
}
inline void* or_throw(void* memory) {
    if (memory == nullptr) throw std::bad_alloc{};
    return memory;
}

}  // namespace weightcast::test

// NOLINTBEGIN: replacing the global operators is the purpose. All of one kind are replaced, because the address
// sanitizer compares who allocated with who frees; not inline, because g++ would compare the bodies.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
    return weightcast::test::or_throw(weightcast::test::counted(bytes));
}
[[gnu::noinline]] void* operator new(std::size_t bytes, std::align_val_t alignment) {
    return weightcast::test::or_throw(weightcast::test::counted(bytes, alignment));
}
[[gnu::noinline]] void* operator new(std::size_t bytes, std::nothrow_t const&) noexcept {
    return weightcast::test::counted(bytes);
}
[[gnu::noinline]] void* operator new(std::size_t bytes, std::align_val_t alignment,
                                     std::nothrow_t const&) noexcept {
    return weightcast::test::counted(bytes, alignment);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept {
    std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
    std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::nothrow_t const&) noexcept {
    std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t,
                                       std::nothrow_t const&) noexcept {
    std::free(memory);
}
// NOLINTEND
