// SPDX-License-Identifier: Apache-2.0
#include <weightcast/tensor/device.hpp>

#include <sstream>
#include <string>
#include <string_view>

#include <boost/test/unit_test.hpp>

#include "support/says.hpp"

namespace {

using namespace weightcast;
using test::says;

constexpr device cuda{device_kind::cuda, device::unresolved};

BOOST_AUTO_TEST_SUITE(device_suite)

BOOST_AUTO_TEST_CASE(texts_read_and_print_back_alike) {
    for (std::string const text :
         {"cpu", "cuda", "cuda:0", "cuda:1", "cuda:15", "host", "host:0", "host:2147483647"}) {
        BOOST_TEST(to_string(parse_device(text)) == text);
        std::ostringstream out;
        out << parse_device(text);
        BOOST_TEST(out.str() == text);
    }
}

BOOST_AUTO_TEST_CASE(parts_are_what_the_text_says) {
    BOOST_CHECK(parse_device("cpu") == cpu_device);
    BOOST_CHECK(parse_device("cpu:0") == cpu_device);
    BOOST_CHECK((parse_device("cuda:3") == device{device_kind::cuda, 3}));
    BOOST_CHECK((parse_device("host:3") == device{device_kind::host, 3}));
    BOOST_CHECK(parse_device("cuda") == cuda);
    BOOST_TEST(!parse_device("host").is_resolved());
}

BOOST_AUTO_TEST_CASE(what_is_no_device_is_refused_and_repeated) {
    for (std::string const text : {"",
                                   ":",
                                   "cpu:",
                                   "cpu:1",
                                   "cuda:",
                                   "cuda:-1",
                                   "cuda:-0",
                                   "cuda:+1",
                                   "cuda:00",
                                   "cuda:01",
                                   "cuda: 1",
                                   "cuda:1 ",
                                   " cuda",
                                   "cuda:1:1",
                                   "cuda:x",
                                   "cuda:1x",
                                   "CUDA",
                                   "gpu",
                                   "host:",
                                   "host:2147483648",
                                   "host:99999999999999999999",
                                   "mps",
                                   "cuda:0x1"}) {
        BOOST_CHECK_EXCEPTION(parse_device(text), bad_argument,
                              says({"device '" + text + "'", "cpu, cuda, cuda:N, host, host:N"}));
    }
    using namespace std::string_view_literals;
    BOOST_CHECK_THROW(parse_device("cpu\0"sv), bad_argument);
    BOOST_CHECK_THROW(parse_device("cuda:1\0"sv), bad_argument);
}

BOOST_AUTO_TEST_CASE(a_missing_index_is_resolved_once) {
    BOOST_CHECK((cuda.resolved_to(2) == device{device_kind::cuda, 2}));
    BOOST_CHECK((device{device_kind::cuda, 1}.resolved_to(2) == device{device_kind::cuda, 1}));
    BOOST_CHECK(cuda != (device{device_kind::cuda, 0}));  // not the same before it is resolved
    BOOST_CHECK(cpu_device.resolved_to(5) == cpu_device);
}

BOOST_AUTO_TEST_CASE(only_cpu_is_no_accelerator) {
    BOOST_TEST(!cpu_device.is_accelerator());
    BOOST_TEST(cuda.is_accelerator());
    BOOST_TEST((device{device_kind::host, 0}.is_accelerator()));
    BOOST_CHECK(device{} == cpu_device);
}

BOOST_AUTO_TEST_CASE(devices_are_ordered_for_use_as_keys) {
    BOOST_CHECK((device{device_kind::cuda, 0} < device{device_kind::cuda, 1}));
    BOOST_CHECK((device{device_kind::cuda, 7} < device{device_kind::host, 0}));
    BOOST_CHECK(cuda < (device{device_kind::cuda, 0}));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
