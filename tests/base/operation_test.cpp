// SPDX-License-Identifier: Apache-2.0
#include <weightcast/base/operation.hpp>

#include <chrono>
#include <string>
#include <type_traits>

#include <boost/test/unit_test.hpp>

namespace {

using namespace weightcast;
using namespace std::chrono_literals;

// Queues hold labels by value, without allocating.
static_assert(std::is_trivially_copyable_v<operation_label>);
static_assert(sizeof(operation_label) == 88);

BOOST_AUTO_TEST_SUITE(operation_suite)

BOOST_AUTO_TEST_CASE(a_label_keeps_phase_and_name) {
    operation_label const label{phase::vote, "model.embed.weight"};
    BOOST_CHECK(label.where() == phase::vote);
    BOOST_TEST(label.tensor() == "model.embed.weight");
    BOOST_TEST(operation_label{}.tensor().empty());
    BOOST_CHECK(operation_label{}.where() == phase::payload);
}

BOOST_AUTO_TEST_CASE(a_name_of_exactly_the_capacity_fits) {
    std::string const name(operation_label::capacity, 'n');
    BOOST_TEST(operation_label(phase::payload, name).tensor() == name);
}

BOOST_AUTO_TEST_CASE(a_longer_name_keeps_its_tail) {
    std::string const tail(operation_label::capacity, 't');
    BOOST_TEST(operation_label(phase::payload, "h" + tail).tensor() == tail);
    BOOST_TEST(operation_label(phase::payload, std::string(100'000, 'h') + tail).tensor() == tail);
}

BOOST_AUTO_TEST_CASE(limits_end_by_default) {
    op_limits const limits;
    BOOST_CHECK(limits.stall == 20s);
    BOOST_CHECK(limits.at.remaining() > 200s);
    BOOST_CHECK(limits.at.remaining() <= 300s);
    BOOST_CHECK(operation{}.limits.stall == 20s);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
