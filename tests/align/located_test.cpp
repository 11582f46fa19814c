// SPDX-License-Identifier: Apache-2.0
// What a tensor says of its place, against what the runtime knows.
#include <vector>

#include <boost/test/unit_test.hpp>

#include <support/local_ranks.hpp>
#include <support/says.hpp>
#include <weightcast/align/located.hpp>

namespace weightcast::test {
namespace {

operation_label const label{phase::preflight, "w"};

BOOST_AUTO_TEST_SUITE(located_suite)

BOOST_AUTO_TEST_CASE(a_device_without_an_index_is_the_current_one) {
    placed_bytes const memory{host2, 100, 1};
    tensor_view<> const unresolved{
        memory.data(), dtype::uint8, {100}, device{device_kind::host, device::unresolved}};
    BOOST_TEST(located<runtime>(unresolved, 2, label, 0).where() == host2);
    BOOST_CHECK_THROW(static_cast<void>(located<runtime>(unresolved, 1, label, 0)),
                      device_mismatch);
}

BOOST_AUTO_TEST_CASE(all_but_the_device_stays) {
    placed_bytes const memory{host2, 400, 1};
    auto const strided = memory.view(dtype::int16, {10, 3}, {17, 2});
    auto const found = located<runtime>(strided, 0, label, 0);
    BOOST_TEST(found.data() == strided.data());
    BOOST_TEST((found.layout() == strided.layout()));
    static_assert(std::is_same_v<decltype(found), tensor_view<> const>);
}

BOOST_AUTO_TEST_CASE(memory_of_any_part_of_a_block_is_found) {
    placed_bytes const memory{host2, 100, 1};
    auto* const bytes = static_cast<std::byte*>(memory.data());
    BOOST_TEST(located<runtime>(tensor_view<>{bytes + 99, dtype::uint8, {1}, host2}, 0, label, 0)
                   .where() == host2);
}

BOOST_AUTO_TEST_CASE(an_empty_tensor_has_no_memory_to_be_elsewhere) {
    BOOST_TEST(
        located<runtime>(tensor_view<>{nullptr, dtype::uint8, {0}, host1}, 0, label, 0).where() ==
        host1);
}

BOOST_AUTO_TEST_CASE(messages_name_the_tensor_the_rank_and_both_places) {
    std::vector<std::byte> ordinary(10);
    tensor_view<> const lie{ordinary.data(), dtype::uint8, {10}, host1};
    BOOST_CHECK_EXCEPTION(static_cast<void>(located<runtime>(lie, 0, label, 3)), device_mismatch,
                          says({"preflight: tensor 'w'", "host:1", "cpu", "rank 3"}));
    tensor_view<> const foreign{ordinary.data(), dtype::uint8, {10}, device{device_kind::cuda, 0}};
    BOOST_CHECK_EXCEPTION(static_cast<void>(located<runtime>(foreign, 0, label, 3)),
                          device_mismatch, says({"cuda:0", "kind host"}));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weightcast::test
