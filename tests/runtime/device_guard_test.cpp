// SPDX-License-Identifier: Apache-2.0
#include <weightcast/runtime/device_guard.hpp>

#include <stdexcept>
#include <thread>
#include <type_traits>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "runtime/host_support.hpp"
#include "support/says.hpp"

namespace {

using namespace weightcast;
using namespace weightcast::test;
using guard = device_guard<runtime>;

static_assert(!std::is_copy_constructible_v<guard>);
static_assert(!std::is_move_constructible_v<guard>);
static_assert(!std::is_copy_assignable_v<guard>);
static_assert(!std::is_move_assignable_v<guard>);
static_assert(!std::is_default_constructible_v<guard>);
static_assert(!std::is_convertible_v<device, guard>);
static_assert(std::is_nothrow_destructible_v<guard>);

/// host_runtime that tells what a guard calls.
struct recording_runtime : host_runtime {
    static inline std::vector<int> set{};
    static void set_current_device(int index) {
        host_runtime::set_current_device(index);
        set.push_back(index);
    }
};

struct back_to_zero {
    ~back_to_zero() { runtime::set_current_device(0); }
};

BOOST_AUTO_TEST_SUITE(device_guard_suite)

BOOST_AUTO_TEST_CASE(a_guard_that_changes_nothing_calls_nothing) {
    back_to_zero const after;
    recording_runtime::set.clear();
    runtime::set_current_device(2);
    {
        device_guard<recording_runtime> const same{host2};
        device_guard<recording_runtime> const nothing{cpu_device};
    }
    BOOST_TEST(recording_runtime::set.empty());
    { device_guard<recording_runtime> const other{host1}; }
    BOOST_TEST((recording_runtime::set == std::vector<int>{1, 2}));
}

BOOST_AUTO_TEST_CASE(an_exception_restores_the_device) {
    back_to_zero const after;
    runtime::set_current_device(1);
    try {
        guard const there{host2};
        guard const further{host0};
        throw std::runtime_error{"elsewhere"};
    } catch (std::runtime_error const&) {}
    BOOST_TEST(runtime::current_device() == 1);
}

BOOST_AUTO_TEST_CASE(what_is_no_device_here_is_refused_on_entry) {
    back_to_zero const after;
    runtime::set_current_device(1);
    BOOST_CHECK_EXCEPTION(guard const refused(device(device_kind::cuda, 0)), bad_argument,
                          says({"expected cpu or host:N", "got cuda:0"}));
    BOOST_CHECK_EXCEPTION(guard const refused(device(device_kind::host, device::unresolved)),
                          bad_argument, says({"expected cpu or host:N", "got host"}));
    BOOST_CHECK_EXCEPTION(guard const refused(device(device_kind::host, 4)), bad_argument,
                          says({"host:4", "host:0 to host:3"}));
    BOOST_TEST(runtime::current_device() == 1);
}

BOOST_AUTO_TEST_CASE(threads_do_not_see_each_others_guards) {
    back_to_zero const after;
    guard const here{host2};
    std::vector<int> there;
    std::thread{[&] {
        there.push_back(runtime::current_device());
        guard const own{host1};
        there.push_back(runtime::current_device());
    }}.join();
    BOOST_TEST((there == std::vector<int>{0, 1}));
    BOOST_TEST(runtime::current_device() == 2);
}

BOOST_AUTO_TEST_CASE(a_device_that_is_gone_is_no_reason_to_end) {
    back_to_zero const after;
    settings_scope const restored{{.device_count = 4}};
    runtime::set_current_device(3);
    {
        guard const there{host0};
        runtime::configure({.device_count = 2});
    }
    BOOST_TEST(runtime::current_device() == 0);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
