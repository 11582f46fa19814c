// SPDX-License-Identifier: Apache-2.0
// Memory is given back in the order of a stream, and the same stream reads it afterwards. The pool keeps the
// block, so that only poisoning lets the address sanitizer see it.
// With the argument "control" the read comes first, and no one may complain.
// expect address: ERROR: AddressSanitizer: use-after-poison
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include <weightcast/runtime/host_runtime.hpp>

using namespace weightcast;
using runtime = host_runtime;

int main(int argc, char** argv) {
    bool const control = argc > 1 && std::string_view{argv[1]} == "control";
    std::uint64_t const seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
    runtime::configure(
        {.poison_freed = true, .max_delay = std::chrono::microseconds{500}, .delay_seed = seed});
    device const where{device_kind::host, 0};
    std::size_t volatile const size = 4096;
    std::size_t const bytes = size;
    std::vector<std::byte> target(bytes);
    auto const stream = runtime::create_stream(where);

    void* const memory = runtime::allocate(bytes, where, stream);
    runtime::enqueue(stream, [memory, bytes]() noexcept { std::memset(memory, 1, bytes); });
    if (!control) runtime::deallocate(memory, stream);
    runtime::enqueue(
        stream, [to = target.data(), memory, bytes]() noexcept { std::memcpy(to, memory, bytes); });
    if (control) runtime::deallocate(memory, stream);
    bool const done = runtime::wait(stream, deadline::after(std::chrono::seconds{20}));

    runtime::destroy_stream(stream);
    std::puts(done ? "done" : "not done in time");
    return done ? 0 : 3;
}
