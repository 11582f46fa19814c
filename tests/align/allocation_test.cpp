// SPDX-License-Identifier: Apache-2.0
// A tensor that is resident already costs no allocation: not in a scope, not in broadcast_aligned, its pending
// and the queues behind them. Counts every operator new of this program.
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

#include <boost/test/unit_test.hpp>

#include <support/local_ranks.hpp>
#include <weightcast/align/broadcast_aligned.hpp>

namespace {
std::atomic<std::size_t> allocations{0};
}  // namespace

// NOLINTBEGIN(misc-new-delete-overloads): only counts; not inlined, so that new and delete stay a pair
[[gnu::noinline]] void* operator new(std::size_t bytes) {
    allocations.fetch_add(1, std::memory_order_relaxed);
    if (void* const memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
    throw std::bad_alloc{};
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
// NOLINTEND(misc-new-delete-overloads)

namespace weightcast::test {
namespace {

/// Allocations of `each` once queues, marks and caches have reached their size.
template <class Each>
std::size_t allocations_of(local_communicator& group, Each const& each) {
    for (int i = 0; i < 200; ++i) each();
    settle(group.core().collective_stream());
    auto const before = allocations.load();
    for (int i = 0; i < 20; ++i) each();
    auto const after = allocations.load();
    settle(group.core().collective_stream());
    return after - before;
}

BOOST_AUTO_TEST_SUITE(allocation)

BOOST_AUTO_TEST_CASE(allocations_are_counted) {
    auto const before = allocations.load();
    ::operator delete(::operator new(1000));
    BOOST_TEST(allocations.load() == before + 1);
}

BOOST_AUTO_TEST_CASE(a_scope_over_a_resident_tensor_allocates_nothing) {
    for (auto const where : {host1, cpu_device}) {
        BOOST_TEST_CONTEXT(where) {
            placed_bytes const memory{where, 1000, 1};
            auto group = local_group{1, {.where = {where}}}.join(0);
            settled const group_done{group};
            auto const op = patiently();
            BOOST_TEST(allocations_of(group, [&] {
                           alignment_scope<local_communicator> scope{group};
                           group.broadcast_from(scope.align(memory.view()), op);
                       }) == 0U);
            auto view = memory.view();
            BOOST_TEST(allocations_of(group, [&] {
                           alignment_scope<local_communicator> scope{group};
                           group.broadcast_into(scope.require(view), 0, op);
                       }) == 0U);
        }
    }
}

BOOST_AUTO_TEST_CASE(broadcast_aligned_and_its_pending_allocate_nothing) {
    placed_bytes const memory{host1, 1000, 2};
    auto group = local_group{1, {.where = {host1}}}.join(0);
    settled const group_done{group};
    auto const op = patiently();
    weightcast::stream<runtime> const producer{host1};
    BOOST_TEST(allocations_of(group, [&] {
                   auto sent =
                       broadcast_aligned(group, memory.view(), produced_anywhere{op.limits.at}, op);
                   sent.wait(op.limits.at);
               }) == 0U);
    BOOST_TEST(allocations_of(group, [&] {
                   auto sent =
                       broadcast_aligned(group, memory.view(), produced_on{producer.ref()}, op);
                   sent.then(producer.ref());
                   sent.wait(op.limits.at);
               }) == 0U);
}

BOOST_AUTO_TEST_CASE(a_mismatched_tensor_allocates_nothing_once_its_slot_is_there) {
    placed_bytes const memory{host0, 1000, 3};
    auto group = local_group{1, {.where = {host1}}}.join(0);
    settled const group_done{group};
    auto const op = patiently();
    alignment_scope<local_communicator> scope{group};
    BOOST_TEST(allocations_of(group, [&] {
                   group.broadcast_from(scope.align(memory.view(), already_ready{}), op);
                   settle(group.core().collective_stream());
               }) == 0U);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weightcast::test
