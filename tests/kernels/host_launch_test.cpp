// SPDX-License-Identifier: Apache-2.0
#include <weightcast/kernels/host_launch.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <thread>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "laws/kernel_laws.hpp"

namespace {

using namespace weightcast;

static_assert(explain_kernel_runtime<host_runtime>());

BOOST_AUTO_TEST_SUITE(host_launch_suite)

BOOST_AUTO_TEST_CASE(launches_keep_the_laws_on_a_virtual_device) {
    test::check_kernel_laws<host_runtime>({device_kind::host, 0});
}

BOOST_AUTO_TEST_CASE(launches_keep_the_laws_on_ordinary_memory) {
    test::check_kernel_laws<host_runtime>(cpu_device);
}

BOOST_AUTO_TEST_CASE(what_cannot_be_right_is_refused_at_the_call) {
    test::check_kernel_refusals<host_runtime>({device_kind::host, 0});
    test::check_kernel_refusals<host_runtime>(cpu_device);
}

BOOST_AUTO_TEST_CASE(a_launch_runs_after_what_the_stream_holds_and_not_on_the_caller) {
    auto const stream = host_runtime::create_stream(cpu_device);
    std::vector<float> source(64, 1.0F);
    std::vector<float> dense(32, 0.0F);
    static std::atomic<bool> open{false};
    open = false;
    host_runtime::enqueue(stream, []() noexcept {
        while (!open.load()) std::this_thread::yield();
    });
    auto* const first = source.data();
    host_runtime::enqueue(stream, [first]() noexcept {
        for (int i = 0; i < 64; ++i) first[i] = static_cast<float>(i);
    });
    const_tensor_view<> const every_second{source.data(), dtype::float32, {32}, {2}};
    kernel_launcher<host_runtime>::pack_async(every_second, 0, every_second.bytes(), dense.data(),
                                              stream);
    BOOST_TEST(!host_runtime::query(stream));
    open = true;
    BOOST_TEST_REQUIRE(test::wait_for<host_runtime>(stream));
    bool equal = true;
    for (int i = 0; i < 32; ++i)
        equal = equal && dense[static_cast<std::size_t>(i)] == static_cast<float>(2 * i);
    BOOST_TEST(equal);
    host_runtime::destroy_stream(stream);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
