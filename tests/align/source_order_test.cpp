// SPDX-License-Identifier: Apache-2.0
// Which devices a call waits for, and the three spellings of "ready".
#include <chrono>
#include <concepts>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <support/local_ranks.hpp>
#include <support/says.hpp>
#include <weightcast/align/source_order.hpp>

namespace weightcast::test {
namespace {

static_assert(SourceOrder<produced_anywhere, runtime>);
static_assert(SourceOrder<already_ready, runtime>);
static_assert(SourceOrder<produced_on<host_stream_ref>, runtime>);
static_assert(!SourceOrder<produced_on<int>, runtime>);
static_assert(!SourceOrder<readers_on<host_stream_ref>, runtime>);  // a reader is no producer
static_assert(!SourceOrder<host_stream_ref, runtime>);
static_assert(std::same_as<decltype(produced_on{std::declval<host_stream_ref>()}),
                           produced_on<host_stream_ref>>);
static_assert(
    std::same_as<decltype(after(std::declval<host_stream_ref>())), readers_on<host_stream_ref>>);

std::vector<std::uint64_t> wait_counts() {
    std::vector<std::uint64_t> all;
    for (int i = 0; i < runtime::device_count(); ++i) all.push_back(runtime::device_wait_count(i));
    return all;
}

BOOST_AUTO_TEST_SUITE(source_order)

BOOST_AUTO_TEST_CASE(each_device_is_waited_for_once_and_the_cpu_never) {
    source_devices devices;
    for (auto const where : {host2, cpu_device, host0, host2, host2, host0}) devices.add(where);
    auto expected = wait_counts();
    devices.wait<runtime>(soon());
    ++expected[0];
    ++expected[2];
    BOOST_TEST(wait_counts() == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(nothing_to_wait_for_is_nothing_waited_for) {
    auto const before = wait_counts();
    source_devices{}.wait<runtime>(at_once());
    source_devices ordinary;
    ordinary.add(cpu_device);
    ordinary.wait<runtime>(at_once());
    BOOST_TEST(wait_counts() == before, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_device_without_an_index_or_out_of_range_is_refused) {
    source_devices devices;
    BOOST_CHECK_EXCEPTION(devices.add({device_kind::host, device::unresolved}), bad_argument,
                          says("host"));
    BOOST_CHECK_EXCEPTION(devices.add({device_kind::host, 64}), bad_argument, says("host:64"));
    devices.add({device_kind::host, 63});
    BOOST_CHECK_EXCEPTION(devices.wait<runtime>(at_once()), bad_argument, says("host:63"));
}

BOOST_AUTO_TEST_CASE(a_busy_device_is_named_with_the_remedy) {
    weightcast::stream<runtime> const producer{host2};
    stream_blocker<runtime> blocker{producer.ref()};
    source_devices devices;
    devices.add(host0);
    devices.add(host2);
    BOOST_CHECK_EXCEPTION(devices.wait<runtime>(at_once()), timeout,
                          says({"host:2", "busy", "produced_on"}));
    blocker.open();
    devices.wait<runtime>(soon());
}

BOOST_AUTO_TEST_CASE(the_default_deadline_is_finite) {
    produced_anywhere const order;
    BOOST_TEST((order.until.remaining() > std::chrono::seconds{1}));
    BOOST_TEST((order.until.remaining() <= std::chrono::seconds{20}));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weightcast::test
