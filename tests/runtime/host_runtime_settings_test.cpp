// SPDX-License-Identifier: Apache-2.0
#include <weightcast/runtime/host_runtime_settings.hpp>

#include <chrono>
#include <cstdint>
#include <limits>

#include <boost/test/unit_test.hpp>

#include "runtime/host_support.hpp"

namespace {

using namespace weightcast;
using namespace weightcast::test;

BOOST_AUTO_TEST_SUITE(host_runtime_settings_suite)

BOOST_AUTO_TEST_CASE(the_defaults_check_and_delay_nothing) {
    host_runtime_settings const settings;
    BOOST_TEST(settings.device_count == 4);
    BOOST_TEST(!settings.poison_freed);
    BOOST_TEST((settings.max_delay == std::chrono::microseconds{0}));
    BOOST_TEST(settings.delay_seed == 0U);
    BOOST_TEST(settings.device_memory_limit.value == std::numeric_limits<std::uint64_t>::max());
}

BOOST_AUTO_TEST_CASE(what_is_set_is_what_is_read) {
    host_runtime_settings const wanted{.device_count = 9,
                                       .poison_freed = true,
                                       .max_delay = std::chrono::microseconds{17},
                                       .delay_seed = 0xFFFFFFFFFFFFFFFF,
                                       .device_memory_limit = byte_count{12'345}};
    {
        settings_scope const set{wanted};
        BOOST_TEST((runtime::settings() == wanted));
        BOOST_TEST(runtime::device_count() == 9);
    }
    BOOST_TEST((runtime::settings() == host_runtime_settings{}));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
