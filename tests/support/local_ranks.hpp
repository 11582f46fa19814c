// SPDX-License-Identifier: Apache-2.0
// Ranks of a group on threads of the test, and tensors on virtual devices for them to send and receive.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <laws/group_maker.hpp>
#include <runtime/host_support.hpp>
#include <weightcast/base/error.hpp>
#include <weightcast/comm/local_communicator.hpp>
#include <weightcast/runtime/device_buffer.hpp>
#include <weightcast/runtime/stream.hpp>
#include <weightcast/tensor/tensor_view.hpp>

namespace weightcast::test {

/// Runs `body(communicator)` for each rank on a thread of its own and returns what each said: "" when all is
/// well; an exception that leaves the body as its text. Ranks keep their communicators until all are done, so
/// that one that is ready early is not one that left.
template <class Body>
std::vector<std::string> run_ranks(local_group const& group, Body const& body) {
    std::vector<local_communicator> members;
    for (int rank = 0; rank < group.size(); ++rank) members.push_back(group.join(rank));
    std::vector<std::string> said(members.size());
    {
        std::vector<std::jthread> threads;
        for (std::size_t rank = 0; rank < members.size(); ++rank) {
            threads.emplace_back([&, rank] {
                try {
                    said[rank] = body(members[rank]);
                } catch (...) {
                    said[rank] = describe_exception();
                    members[rank].abort();  // nobody waits for it
                }
            });
        }
    }
    return said;
}
template <class Body>
std::vector<std::string> run_ranks(int size, Body const& body) {
    return run_ranks(local_group{size}, body);
}
/// On that device, or on one a rank.
template <class Body>
std::vector<std::string> run_ranks(int size, device where, Body const& body) {
    return run_ranks(local_group{size, {.where = {where}}}, body);
}
template <class Body>
std::vector<std::string> run_ranks(int size, std::vector<device> const& where, Body const& body) {
    return run_ranks(local_group{size, {.where = where}}, body);
}

/// What a rank's body says of a condition that must hold.
inline std::string unless(bool holds, std::string_view sentence) {
    return holds ? std::string{} : std::string{sentence};
}

/// True under a sanitizer, where tests of large sizes take smaller ones.
inline bool is_sanitized() {
    char const* const name = std::getenv("WEIGHTCAST_SANITIZER");
    return name != nullptr && *name != '\0';
}

/// A device that no other test uses, so that its peak is that of this test alone.
inline device fresh_device() {
    auto settings = runtime::settings();
    device const fresh{device_kind::host, settings.device_count++};
    runtime::configure(settings);
    return fresh;
}

/// Bytes that a device owns, written and read by waiting for a stream of its own.
class placed_bytes {
  public:
    placed_bytes(device where, contents const& initial)
        : where_{where}, stream_{where}, buffer_{initial.size(), where, stream_.ref()} {
        write(initial);
    }
    placed_bytes(device where, std::size_t bytes, std::uint64_t seed)
        : placed_bytes{where, pattern(bytes, seed)} {}

    void* data() const noexcept { return buffer_.data(); }
    std::size_t size() const noexcept { return buffer_.bytes(); }
    device where() const noexcept { return where_; }
    host_stream_ref stream() const { return stream_.ref(); }

    void write(contents const& bytes) {
        runtime::copy(data(), where_, bytes.data(), cpu_device, bytes.size(), stream_);
        settle();
    }
    contents read() const {
        contents now(size());
        runtime::copy(now.data(), cpu_device, data(), where_, now.size(), stream_);
        settle();
        return now;
    }
    tensor_view<> view() const {
        return {data(), dtype::uint8, {static_cast<std::int64_t>(size())}, where_};
    }
    tensor_view<> view(dtype type, extents const& shape) const {
        return {data(), type, shape, where_};
    }
    tensor_view<> view(dtype type, extents const& shape, extents const& strides) const {
        return {data(), type, shape, strides, where_};
    }

  private:
    void settle() const {
        if (!runtime::wait(stream_.ref(), soon())) throw timeout{"a copy of the test did not end"};
    }
    device where_;
    weightcast::stream<runtime> stream_;
    device_buffer<runtime> buffer_;
};

/// The elements of a strided tensor, one after the other, gathered one by one.
inline contents gathered(const_tensor_view<> const& tensor) {
    auto const size = item_size(tensor.type());
    contents all;
    if (element_count(tensor.shape()) == 0) return all;
    extents at = tensor.shape();
    for (std::size_t d = 0; d < at.size(); ++d) at[d] = 0;
    for (;;) {
        std::int64_t offset = 0;
        for (std::size_t d = 0; d < at.size(); ++d) offset += at[d] * tensor.strides()[d];
        auto const* const element =
            static_cast<std::byte const*>(tensor.data()) + static_cast<std::size_t>(offset) * size;
        all.insert(all.end(), element, element + size);
        std::size_t d = at.size();
        while (d > 0 && ++at[d - 1] == tensor.shape()[d - 1]) at[--d] = 0;
        if (d == 0) return all;
    }
}

/// Waits for what a stream holds now.
inline void settle(host_stream_ref stream) {
    if (!runtime::wait(stream, soon()))
        throw timeout{"a stream of the test did not come to its end"};
}

/// At its end, all streams of a communicator are done with what tests lent them.
template <Communicator C>
class settled {
  public:
    explicit settled(C& communicator) : communicator_{communicator} {}
    settled(settled&&) = delete;
    ~settled() {
        settle(communicator_.core().copy_stream());
        settle(communicator_.core().collective_stream());
        settle(communicator_.core().unpack_stream());
    }

  private:
    C& communicator_;
};

}  // namespace weightcast::test
