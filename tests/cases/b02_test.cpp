// SPDX-License-Identifier: Apache-2.0
// B02: a communicator made with a device that has no index refused a tensor on index 0.
#include <string>

#include <boost/test/unit_test.hpp>

#include <support/local_ranks.hpp>
#include <weightcast/align/alignment_scope.hpp>

namespace weightcast::test {
namespace {

constexpr device any_host{device_kind::host, device::unresolved};

/// The group of one rank that a thread on that device makes on "host", without an index.
local_communicator made_on(int current) {
    runtime::set_current_device(current);
    return local_group{1, {.where = {any_host}}}.join(0);
}

BOOST_AUTO_TEST_SUITE(b02)

BOOST_AUTO_TEST_CASE(b02_without_an_index_it_is_the_current_device_when_it_was_made) {
    placed_bytes memory{host0, 100, 1};
    auto group = made_on(0);
    settled const done{group};
    BOOST_TEST(group.where() == host0);
    alignment_scope<local_communicator> scope{group};
    BOOST_TEST(scope.align(memory.view()).data() == memory.data());
    auto view = memory.view();
    BOOST_TEST(scope.require(view).data() == memory.data());
}

BOOST_AUTO_TEST_CASE(b02_on_another_current_device_index_0_is_a_mismatch) {
    placed_bytes const memory{host0, 100, 2};
    auto group = made_on(1);
    settled const done{group};
    BOOST_TEST(group.where() == host1);
    runtime::set_current_device(0);  // what is current later does not matter
    alignment_scope<local_communicator> scope{group};
    auto const proof = scope.align(memory.view());
    BOOST_TEST(proof.staged());
    BOOST_TEST(runtime::locate(proof.data()) == host1);
    auto view = memory.view();
    BOOST_CHECK_THROW(static_cast<void>(scope.require(view)), device_mismatch);
}

BOOST_AUTO_TEST_CASE(b02_a_tensor_without_an_index_is_on_the_callers_current_device) {
    placed_bytes const memory{host1, 100, 3};
    tensor_view<> const tensor{memory.data(), dtype::uint8, {100}, any_host};
    auto group = made_on(1);
    settled const done{group};
    {
        alignment_scope<local_communicator> scope{group};
        BOOST_TEST(scope.align(tensor).data() == memory.data());
    }
    runtime::set_current_device(
        0);  // then the same tensor claims to be on device 0, which its memory is not
    alignment_scope<local_communicator> scope{group};
    BOOST_CHECK_THROW(static_cast<void>(scope.align(tensor)), device_mismatch);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weightcast::test
