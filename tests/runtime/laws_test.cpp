// SPDX-License-Identifier: Apache-2.0
// The laws of DeviceRuntime over host_runtime: as fast as it goes, with delays, and with poisoned memory.
#include <cstdint>

#include <boost/test/unit_test.hpp>

#include "runtime/host_support.hpp"

namespace {

using namespace weightcast;
using namespace weightcast::test;

static_assert(explain_device_runtime<host_runtime>());

BOOST_AUTO_TEST_SUITE(runtime_laws_suite)

BOOST_AUTO_TEST_CASE(hold_without_delays) {
    runtime_laws<runtime>{host0, host1}.check_all();
    runtime_laws<runtime>{host2, host0}.check_all();
}

BOOST_AUTO_TEST_CASE(hold_with_random_delays) {
    for (std::uint64_t const seed : {1U, 2U, 3U}) {
        BOOST_TEST_CONTEXT("seed " << seed) {
            settings_scope const delayed{
                {.max_delay = std::chrono::microseconds{200}, .delay_seed = seed}};
            runtime_laws<runtime>{host0, host1}.check_all();
        }
    }
}

BOOST_AUTO_TEST_CASE(hold_with_poisoned_memory) {
    settings_scope const poisoning{
        {.poison_freed = true, .max_delay = std::chrono::microseconds{100}, .delay_seed = 4}};
    runtime_laws<runtime>{host0, host1}.check_all();
    runtime::trim(host0);
    runtime::trim(host1);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
