// SPDX-License-Identifier: Apache-2.0
// One stream writes, another reads, and nothing makes the second wait for the first. Between the two calls
// the first stream gets an operation that has nothing to do with either: in a queue with a lock on the
// stream's side, that push would order the two by accident and hide the mistake.
// With the argument "control" the second stream waits, and no one may complain.
// expect thread: WARNING: ThreadSanitizer: data race
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
    runtime::configure({.max_delay = std::chrono::microseconds{500}, .delay_seed = seed});
    auto const until = [] { return deadline::after(std::chrono::seconds{20}); };

    std::size_t volatile const size = 4096;  // a size that the compiler cannot expand inline
    std::size_t const bytes = size;
    std::vector<std::byte> source(bytes, std::byte{1});
    std::vector<std::byte> shared(bytes);
    std::vector<std::byte> target(bytes);
    auto const first = runtime::create_stream({device_kind::host, 0});
    auto const second = runtime::create_stream({device_kind::host, 1});
    auto const written = runtime::create_event();

    runtime::enqueue(first, [to = shared.data(), from = source.data(), bytes]() noexcept {
        std::memcpy(to, from, bytes);
    });
    runtime::enqueue(first, []() noexcept {});
    if (control) {
        runtime::record(written, first);
        runtime::stream_wait(second, written);
    }
    runtime::enqueue(second, [to = target.data(), from = shared.data(), bytes]() noexcept {
        std::memcpy(to, from, bytes);
    });
    bool const done = runtime::wait(first, until()) && runtime::wait(second, until());

    runtime::destroy_event(written);
    runtime::destroy_stream(first);
    runtime::destroy_stream(second);
    std::puts(done ? "done" : "not done in time");
    return done ? 0 : 3;
}
