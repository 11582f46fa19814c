// SPDX-License-Identifier: Apache-2.0
// What the launches of every KernelRuntime keep to.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <weightcast/base/error.hpp>
#include <weightcast/kernels/concepts.hpp>
#include <weightcast/kernels/strided_region.hpp>
#include "kernels/strided_tensors.hpp"

namespace weightcast::test {

/// Memory of one device of R, as long as the object lives.
template <DeviceRuntime R>
class device_bytes {
  public:
    device_bytes(std::size_t bytes, device where, typename R::stream_ref stream)
        : data_{R::allocate(bytes, where, stream)}, stream_{stream} {}
    device_bytes(device_bytes const&) = delete;
    ~device_bytes() { R::deallocate(data_, stream_); }
    std::byte* data() const { return static_cast<std::byte*>(data_); }

  private:
    void* data_;
    typename R::stream_ref stream_;
};

template <DeviceRuntime R>
bool wait_for(typename R::stream_ref stream) {
    auto const event = R::create_event();
    R::record(event, stream);
    bool const done = R::wait(event, deadline::after(std::chrono::seconds{60}));
    R::destroy_event(event);
    return done;
}

/// Launched packing and unpacking give what the obvious loops give, part by part, in the stream's
/// order.
template <KernelRuntime R>
void check_kernel_laws(device where) {
    using launcher = kernel_launcher<R>;
    auto const stream = R::create_stream(where);
    for (auto const& c : strided_cases()) {
        BOOST_TEST_CONTEXT(c.name) {
            auto const memory = random_bytes(reach(c), 1);
            auto const expected = flattened(c, memory.data());
            auto const cut = expected.size() / 3;
            device_bytes<R> tensor{memory.size(), where, stream};
            device_bytes<R> dense{expected.size() + 1, where, stream};
            R::copy(tensor.data(), where, memory.data(), cpu_device, memory.size(), stream);
            const_tensor_view<typename R::space> const view{tensor.data(), c.type, c.shape,
                                                            c.strides, where};
            launcher::pack_async(view, 0, cut, dense.data(), stream);
            launcher::pack_async(view, cut, expected.size(), dense.data() + cut, stream);
            std::vector<std::byte> packed(expected.size());
            R::copy(packed.data(), cpu_device, dense.data(), where, packed.size(), stream);
            BOOST_TEST_REQUIRE(wait_for<R>(stream));
            BOOST_TEST((packed == expected));
            if (!has_separate_elements({c.type, c.shape, c.strides})) continue;

            tensor_view<typename R::space> const target{tensor.data(), c.type, c.shape, c.strides,
                                                        where};
            std::vector<std::byte> const zeros(memory.size());
            R::copy(tensor.data(), where, zeros.data(), cpu_device, zeros.size(), stream);
            launcher::unpack_async(dense.data() + cut, target, cut, expected.size(), stream);
            launcher::unpack_async(dense.data(), target, 0, cut, stream);
            std::vector<std::byte> back(memory.size());
            R::copy(back.data(), cpu_device, tensor.data(), where, back.size(), stream);
            BOOST_TEST_REQUIRE(wait_for<R>(stream));
            BOOST_TEST((flattened(c, back.data()) == expected));
        }
    }
    R::destroy_stream(stream);
}

/// What cannot be right is refused at the call, and the stream goes on.
template <KernelRuntime R>
void check_kernel_refusals(device where) {
    using launcher = kernel_launcher<R>;
    auto const stream = R::create_stream(where);
    {
        device_bytes<R> memory{64, where, stream};
        device_bytes<R> dense{64, where, stream};
        tensor_view<typename R::space> const good{
            memory.data(), dtype::float32, {4, 4}, {1, 4}, where};
        tensor_view<typename R::space> const shared{
            memory.data(), dtype::float32, {4, 4}, {0, 1}, where};
        BOOST_CHECK_THROW(launcher::pack_async(good, 0, 65, dense.data(), stream), bad_argument);
        BOOST_CHECK_THROW(launcher::pack_async(good, 2, 1, dense.data(), stream), bad_argument);
        BOOST_CHECK_THROW(launcher::pack_async(good, 0, 64, nullptr, stream), bad_argument);
        BOOST_CHECK_THROW(launcher::unpack_async(dense.data(), good, 0, 65, stream), bad_argument);
        BOOST_CHECK_THROW(launcher::unpack_async(nullptr, good, 0, 64, stream), bad_argument);
        BOOST_CHECK_THROW(launcher::unpack_async(dense.data(), shared, 0, 64, stream),
                          bad_argument);
        BOOST_CHECK_NO_THROW(launcher::pack_async(good, 64, 64, nullptr, stream));
        BOOST_CHECK_NO_THROW(launcher::unpack_async(nullptr, good, 0, 0, stream));
        BOOST_TEST(wait_for<R>(stream));
    }
    R::destroy_stream(stream);
}

}  // namespace weightcast::test
