// SPDX-License-Identifier: Apache-2.0
// alignment_scope: what it sends from where it lies, what it stages, what it refuses, and what it gives back.
#include <algorithm>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <support/local_ranks.hpp>
#include <support/says.hpp>
#include <weightcast/align/alignment_scope.hpp>
#include <weightcast/tensor/range_tensor.hpp>

namespace weightcast::test {
namespace {

using group_type = local_communicator;
using scope_type = alignment_scope<group_type>;

/// The only rank of a group on that device: what it enqueues meets nobody and ends at once.
group_type lone(device where) { return local_group{1, {.where = {where}}}.join(0); }

/// What is in a proof's memory once the copies that were put on the group's streams are done.
template <class Proof>
contents bytes_of_proof(group_type& group, Proof const& proof) {
    settle(group.core().copy_stream());
    auto const* const bytes = static_cast<std::byte const*>(proof.data());
    return {bytes, bytes + proof.bytes()};
}

std::uint64_t active(device where) { return runtime::memory(where).active; }

BOOST_AUTO_TEST_SUITE(alignment_scope_suite)

BOOST_AUTO_TEST_CASE(a_tensor_on_the_groups_device_is_sent_from_its_own_address) {
    for (auto const where : {host0, host1, cpu_device}) {
        BOOST_TEST_CONTEXT(where) {
            placed_bytes const memory{where, 1000, 1};
            auto group = lone(where);
            settled const group_done{group};
            auto const before = runtime::memory(where);
            scope_type scope{group};
            auto const proof = scope.align(memory.view());
            BOOST_TEST(proof.data() == memory.data());
            BOOST_TEST(proof.bytes() == 1000U);
            BOOST_TEST(!proof.staged());
            BOOST_TEST((runtime::memory(where) == before));
        }
    }
}

BOOST_AUTO_TEST_CASE(a_mismatched_tensor_is_staged_on_the_groups_device) {
    struct way {
        device from;
        device to;
    };
    for (auto const& [from, to] :
         {way{host0, host1}, way{cpu_device, host1}, way{host1, cpu_device}}) {
        BOOST_TEST_CONTEXT(from << " to " << to) {
            placed_bytes const memory{from, 1000, 2};
            auto group = lone(to);
            settled const group_done{group};
            auto const before = active(to);
            {
                scope_type scope{group};
                BOOST_TEST(active(to) == before);  // a slot comes when it is needed
                auto const proof = scope.align(memory.view());
                BOOST_TEST(proof.staged());
                BOOST_TEST(proof.data() != memory.data());
                BOOST_TEST(runtime::locate(proof.data()) == to);
                BOOST_TEST(active(to) == before + 1000);
                BOOST_TEST((bytes_of_proof(group, proof) == memory.read()));
            }
            BOOST_TEST(active(to) == before);
        }
    }
}

BOOST_AUTO_TEST_CASE(ordinary_memory_is_resident_for_a_group_on_cpu) {
    std::vector<float> const weights(100, 1.0F);
    auto group = lone(cpu_device);
    settled const group_done{group};
    scope_type scope{group};
    BOOST_TEST(scope.align(weights).data() == weights.data());
    std::vector<float> target(100);
    BOOST_TEST(scope.require(target).data() == target.data());
}

BOOST_AUTO_TEST_CASE(strided_tensors_are_packed) {
    placed_bytes const memory{host0, 4096, 3};
    std::vector<tensor_view<>> const strided{
        memory.view(dtype::float32, {8, 16}, {1, 8}),                // transposed
        memory.view(dtype::int16, {10, 3}, {17, 2}),                 // gaps in both dimensions
        memory.view(dtype::uint8, {5}, {0}),                         // one element five times
        memory.view(dtype::complex64, {3, 1, 2}, {20, 999, 7}),      // a stride that is never taken
        memory.view(dtype::float64, {2, 3, 4, 2}, {100, 30, 7, 3}),  // four dimensions
    };
    for (auto const to : {host0, host1, cpu_device}) {
        auto group = lone(to);
        settled const group_done{group};
        scope_type scope{group};
        for (auto const& tensor : strided) {
            BOOST_TEST_CONTEXT(to_string(tensor.shape()) << " on " << to) {
                auto const proof = scope.align(tensor);
                BOOST_TEST(proof.staged());
                BOOST_TEST(proof.bytes() == tensor.bytes());
                BOOST_TEST((bytes_of_proof(group, proof) == gathered(tensor)));
            }
        }
    }
}

BOOST_AUTO_TEST_CASE(a_tensor_with_one_row_of_any_stride_is_resident) {
    placed_bytes const memory{host0, 64, 3};
    auto group = lone(host0);
    settled const group_done{group};
    scope_type scope{group};
    BOOST_TEST(!scope.align(memory.view(dtype::float32, {1, 16}, {1234, 1})).staged());
    BOOST_TEST(!scope.align(memory.view(dtype::float32, {})).staged());
}

BOOST_AUTO_TEST_CASE(tensors_without_bytes_need_no_slot) {
    auto group = lone(host1);
    settled const group_done{group};
    scope_type scope{group, {.slots = 1}};
    tensor_view<> empty{nullptr, dtype::float32, {3, 0, 2}, host0};
    auto const first = scope.align(empty);
    auto const second = scope.align(tensor_view<>{nullptr, dtype::float32, {0}});
    BOOST_TEST(first.bytes() == 0U);
    BOOST_TEST(!first.staged());
    BOOST_TEST(!second.staged());
    group.broadcast_from(first, patiently());
    BOOST_TEST(active(host1) == 0U);
}

BOOST_AUTO_TEST_CASE(slots_are_bounded_and_grow_to_their_largest_tensor) {
    placed_bytes const memory{host0, 10'000, 4};
    auto group = lone(host1);
    settled const group_done{group};
    auto const part = [&](std::int64_t bytes) {
        return tensor_view<>{memory.data(), dtype::uint8, {bytes}, host0};
    };
    {
        scope_type scope{group, {.slots = 2}};
        for (std::int64_t const bytes : {100, 50, 1000, 1000, 300, 10'000, 10'000, 7}) {
            auto const proof = scope.align(part(bytes));
            group.broadcast_from(proof, patiently());
            BOOST_TEST((bytes_of_proof(group, proof) == gathered(part(bytes))));
            BOOST_TEST(active(host1) <= 2 * 10'000U);
        }
        BOOST_TEST(active(host1) == 2 * 10'000U);
    }
    BOOST_TEST(active(host1) == 0U);
    {
        scope_type scope{group, {.slots = 2, .slot_bytes = 4096}};
        BOOST_TEST(scope.align(part(1)).staged());
        BOOST_TEST(active(host1) == 4096U);
        BOOST_TEST(scope.align(part(5000)).staged());
        BOOST_TEST(active(host1) == 4096U + 5000U);
    }
    BOOST_TEST(active(host1) == 0U);
}

BOOST_AUTO_TEST_CASE(more_live_proofs_than_slots_are_refused) {
    placed_bytes const memory{host0, 100, 5};
    auto group = lone(host1);
    settled const group_done{group};
    scope_type scope{group, {.slots = 2}};
    auto const first = scope.align(memory.view());
    {
        auto const second = scope.align(memory.view());
        BOOST_CHECK_EXCEPTION(static_cast<void>(scope.align(memory.view())), lifecycle_error,
                              says({"live proofs hold all 2 slots"}));
        placed_bytes const here{host1, 100, 5};
        BOOST_TEST(!scope.align(here.view()).staged());  // what needs no slot is not refused
    }
    BOOST_TEST(scope.align(memory.view()).staged());
}

BOOST_AUTO_TEST_CASE(a_number_of_slots_out_of_range_is_refused) {
    auto group = lone(host1);
    settled const group_done{group};
    for (int const slots : {0, -1, 9, 1000}) {
        BOOST_CHECK_EXCEPTION(static_cast<void>(scope_type{group, {.slots = slots}}), bad_argument,
                              says({"from 1 to 8 slots", std::to_string(slots)}));
    }
    BOOST_TEST(runtime::current_device() == 0);
    scope_type const most{group, {.slots = 8}};
}

BOOST_AUTO_TEST_CASE(receiving_goes_into_the_callers_own_buffer) {
    placed_bytes memory{host1, 1000, 6};
    auto group = lone(host1);
    settled const group_done{group};
    auto const before = runtime::memory(host1);
    scope_type scope{group};
    auto view = memory.view();
    auto const proof = scope.require(view);
    BOOST_TEST(proof.data() == memory.data());
    BOOST_TEST(!proof.staged());
    BOOST_TEST((runtime::memory(host1) == before));
}

BOOST_AUTO_TEST_CASE(receiving_never_stages_across_devices) {
    placed_bytes const on0{host0, 100, 7};
    placed_bytes const on1{host1, 100, 7};
    std::vector<float> ordinary(10);
    struct way {
        device group;
        tensor_view<> buffer;
    };
    for (auto [where, buffer] : {way{host1, on0.view()}, way{host1, writable_view_of(ordinary)},
                                 way{cpu_device, on1.view()}}) {
        auto group = lone(where);
        settled const group_done{group};
        scope_type scope{group};
        try {
            static_cast<void>(scope.require(buffer, {phase::payload, "layers.0.w"}));
            BOOST_ERROR("received into " << buffer.where() << " by a group on " << where);
        } catch (device_mismatch const& e) {
            auto const& facts = e.facts();
            BOOST_TEST((facts.where == phase::payload));
            BOOST_TEST(facts.tensor == "layers.0.w");
            BOOST_TEST(facts.rank == 0);
            BOOST_TEST(facts.expected.find(to_string(where)) != std::string::npos);
            BOOST_TEST(facts.actual == to_string(buffer.where()));
            BOOST_TEST(says(
                {"payload: tensor 'layers.0.w'", to_string(where), to_string(buffer.where())})(e));
        }
        BOOST_TEST(active(where) == (where == host1 ? 100U : 0U));
    }
}

BOOST_AUTO_TEST_CASE(a_strided_destination_is_unpacked_from_a_slot) {
    contents const sent = pattern(60, 8);
    auto const said = run_ranks(2, host1, [&](group_type& c) -> std::string {
        if (c.rank() == 0) {
            placed_bytes const memory{host1, sent};
            scope_type scope{c};
            c.broadcast_from(scope.align(memory.view()), patiently());
            finish(c, patiently());
            return "";
        }
        placed_bytes memory{host1, contents(400, std::byte{0x55})};
        auto view = memory.view(dtype::int32, {5, 3}, {17, 2});
        {
            scope_type scope{c};
            auto const proof = scope.require(view);
            if (!proof.staged() || proof.data() == memory.data()) return "not staged";
            c.broadcast_into(proof, 0, patiently());
        }
        settle(c.core().unpack_stream());
        if (gathered(memory.view(dtype::int32, {5, 3}, {17, 2})) != sent) return "other bytes came";
        auto const all = memory.read();
        auto const untouched = std::count(all.begin(), all.end(), std::byte{0x55});
        return unless(untouched >= 400 - 60, "bytes between the elements were written");
    });
    check_ranks(said, "strided destination");
}

BOOST_AUTO_TEST_CASE(a_strided_destination_that_received_nothing_is_left_alone) {
    placed_bytes memory{host1, contents(400, std::byte{0x55})};
    auto group = lone(host1);
    settled const group_done{group};
    {
        scope_type scope{group};
        auto view = memory.view(dtype::int32, {5, 3}, {17, 2});
        BOOST_TEST(scope.require(view).staged());
    }
    settle(group.core().unpack_stream());
    BOOST_TEST((memory.read() == contents(400, std::byte{0x55})));
    BOOST_TEST(active(host1) == 400U);
}

BOOST_AUTO_TEST_CASE(a_destination_whose_elements_overlap_is_refused_before_anything_moves) {
    placed_bytes memory{host1, 400, 9};
    auto group = lone(host1);
    settled const group_done{group};
    scope_type scope{group};
    auto overlapping = memory.view(dtype::int32, {4, 4}, {2, 1});
    BOOST_CHECK_EXCEPTION(static_cast<void>(scope.require(overlapping, {phase::payload, "w"})),
                          bad_argument, says("overlap"));
    auto one_element = memory.view(dtype::int32, {4}, {0});
    BOOST_CHECK_THROW(static_cast<void>(scope.require(one_element)), bad_argument);
    BOOST_TEST(scope.align(overlapping).staged());  // to read from it is fine
}

BOOST_AUTO_TEST_CASE(received_bytes_come_after_those_who_still_read_the_buffer) {
    auto const said = run_ranks(2, host1, [&](group_type& c) -> std::string {
        auto const old_bytes = pattern(4096, 10);
        auto const new_bytes = pattern(4096, 11);
        if (c.rank() == 0) {
            placed_bytes const memory{host1, new_bytes};
            scope_type scope{c};
            c.broadcast_from(scope.align(memory.view()), patiently());
            finish(c, patiently());
            return "";
        }
        placed_bytes memory{host1, old_bytes};
        contents seen(4096);
        weightcast::stream<runtime> const reader{host1};
        stream_blocker<runtime> blocker{reader.ref()};
        runtime::copy(seen.data(), cpu_device, memory.data(), host1, seen.size(), reader);
        {
            scope_type scope{c};
            auto view = memory.view();
            c.broadcast_into(scope.require(view, after(reader.ref()), {phase::payload, "w"}), 0,
                             patiently());
        }
        std::this_thread::sleep_for(std::chrono::milliseconds{20});
        if (runtime::query(c.core().collective_stream()))
            return "received while the buffer was read";
        blocker.open();
        finish(c, patiently());
        settle(reader);
        if (seen != old_bytes) return "the earlier reader saw other bytes";
        return unless(memory.read() == new_bytes, "the new bytes did not come");
    });
    check_ranks(said, "after(stream)");
}

BOOST_AUTO_TEST_CASE(a_pointer_that_is_not_where_the_tensor_says_is_refused) {
    placed_bytes const on0{host0, 100, 12};
    contents ordinary(100);
    auto group = lone(host1);
    settled const group_done{group};
    scope_type scope{group};
    auto const refuse = [&](tensor_view<> lie, std::string const& said, std::string const& actual) {
        BOOST_CHECK_EXCEPTION(static_cast<void>(scope.align(lie, {}, {phase::payload, "w"})),
                              device_mismatch, says({"tensor 'w'", said, actual}));
        BOOST_CHECK_THROW(static_cast<void>(scope.require(lie)), device_mismatch);
    };
    refuse({on0.data(), dtype::uint8, {100}, host1}, "host:1", "host:0");
    refuse({on0.data(), dtype::uint8, {100}, cpu_device}, "cpu", "host:0");
    refuse({ordinary.data(), dtype::uint8, {100}, host1}, "host:1", "cpu");
    void* const freed = [] {
        placed_bytes gone{host1, 100, 13};
        return gone.data();
    }();
    refuse({freed, dtype::uint8, {100}, host1}, "host:1", "cpu");
    BOOST_TEST(active(host1) == 0U);
}

BOOST_AUTO_TEST_CASE(a_tensor_of_another_kind_of_device_is_refused) {
    contents ordinary(100);
    auto group = lone(host1);
    settled const group_done{group};
    scope_type scope{group};
    tensor_view<> foreign{ordinary.data(), dtype::uint8, {100}, device{device_kind::cuda, 1}};
    BOOST_CHECK_EXCEPTION(static_cast<void>(scope.align(foreign)), device_mismatch,
                          says({"kind host", "cuda:1"}));
    BOOST_CHECK_THROW(static_cast<void>(scope.require(foreign)), device_mismatch);
    tensor_view<> far{ordinary.data(), dtype::uint8, {100}, device{device_kind::cuda, 70}};
    BOOST_CHECK_THROW(static_cast<void>(scope.align(far)), device_mismatch);
}

BOOST_AUTO_TEST_CASE(a_tensor_that_cannot_be_aligned_leaves_the_scope_usable) {
    contents ordinary(100);
    placed_bytes const good{host0, 100, 14};
    auto group = lone(host1);
    settled const group_done{group};
    scope_type scope{group, {.slots = 1}};
    for (int i = 0; i < 3; ++i) {
        BOOST_CHECK_THROW(static_cast<void>(scope.align(
                              tensor_view<>{ordinary.data(), dtype::uint8, {100}, host1})),
                          device_mismatch);
    }
    BOOST_TEST((bytes_of_proof(group, scope.align(good.view())) == good.read()));
}

// --- devices and threads ---

BOOST_AUTO_TEST_CASE(each_source_device_is_waited_for_and_no_other) {
    placed_bytes const on0{host0, 100, 15};
    contents ordinary(100);
    auto group = lone(host1);
    settled const group_done{group};
    auto const counts = [] {
        std::vector<std::uint64_t> all;
        for (int i = 0; i < runtime::device_count(); ++i)
            all.push_back(runtime::device_wait_count(i));
        return all;
    };
    scope_type scope{group};
    auto expected = counts();
    static_cast<void>(scope.align(on0.view()));
    ++expected[0];
    BOOST_TEST(counts() == expected, boost::test_tools::per_element());
    static_cast<void>(scope.align(tensor_view<>{ordinary.data(), dtype::uint8, {100}}));
    static_cast<void>(scope.align(on0.view(), already_ready{}));
    static_cast<void>(scope.align(on0.view(), produced_on{on0.stream()}));
    BOOST_TEST(counts() == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(communicators_own_streams_are_never_waited_for) {
    placed_bytes const memory{host1, 100, 16};
    auto busy = lone(host1);
    settled const busy_done{busy};
    auto group = lone(host1);
    settled const group_done{group};
    stream_blocker<runtime> const collective{busy.core().collective_stream()};
    stream_blocker<runtime> const copying{busy.core().copy_stream()};
    stream_blocker<runtime> const unpacking{busy.core().unpack_stream()};
    stream_blocker<runtime> const own{group.core().unpack_stream()};
    scope_type scope{group};
    BOOST_TEST(!scope.align(memory.view(), produced_anywhere{soon()}).staged());
}

BOOST_AUTO_TEST_CASE(a_source_device_that_stays_busy_is_a_timeout_that_names_the_remedy) {
    placed_bytes const memory{host0, 100, 17};
    auto group = lone(host1);
    settled const group_done{group};
    scope_type scope{group};
    stream_blocker<runtime> blocker{memory.stream()};
    BOOST_CHECK_EXCEPTION(
        static_cast<void>(scope.align(memory.view(), produced_anywhere{at_once()})), timeout,
        says({"host:0", "busy", "produced_on"}));
    BOOST_TEST(active(host1) == 0U);
    weightcast::stream<runtime> const other{host0};
    BOOST_TEST(scope.align(memory.view(), produced_on{other.ref()}).staged());
    blocker.open();
    BOOST_TEST(scope.align(memory.view()).staged());
}

BOOST_AUTO_TEST_CASE(produced_on_orders_without_waiting) {
    for (auto const from : {host1, host0}) {  // sent from its address, and staged
        BOOST_TEST_CONTEXT(from) {
            auto const new_bytes = pattern(5000, 18);
            placed_bytes memory{from, contents(5000)};
            auto group = lone(host1);
            settled const group_done{group};
            stream_blocker<runtime> blocker{memory.stream()};
            runtime::copy(memory.data(), from, new_bytes.data(), cpu_device, 5000, memory.stream());
            scope_type scope{group};
            auto const proof = scope.align(memory.view(), produced_on{memory.stream()});
            group.broadcast_from(
                proof, patiently());  // all this returned, and the stream is still blocked
            BOOST_TEST(!runtime::query(group.core().collective_stream()));
            blocker.open();
            finish(group, patiently());
            BOOST_TEST((bytes_of_proof(group, proof) == new_bytes));
        }
    }
}

BOOST_AUTO_TEST_CASE(work_is_on_streams_of_the_groups_device_and_the_callers_device_is_restored) {
    placed_bytes const memory{host0, 100, 19};
    for (int const ambient : {0, 1, 2}) {
        runtime::set_current_device(ambient);
        auto group = lone(host1);
        settled const group_done{group};
        BOOST_TEST(runtime::device_of(group.core().collective_stream()) == host1);
        BOOST_TEST(runtime::device_of(group.core().copy_stream()) == host1);
        BOOST_TEST(runtime::device_of(group.core().unpack_stream()) == host1);
        {
            scope_type scope{group};
            BOOST_TEST(runtime::current_device() == 1);
            static_cast<void>(scope.align(memory.view()));
        }
        BOOST_TEST(runtime::current_device() == ambient);
        try {
            scope_type scope{group};
            throw std::runtime_error{"the caller's own"};
        } catch (std::runtime_error const&) {
            BOOST_TEST(runtime::current_device() == ambient);
        }
        BOOST_CHECK_THROW(static_cast<void>(scope_type{group, {.slots = 0}}), bad_argument);
        BOOST_TEST(runtime::current_device() == ambient);
        auto on_cpu = lone(cpu_device);
        settled const on_cpu_done{on_cpu};
        scope_type const scope{on_cpu};
        BOOST_TEST(runtime::current_device() == ambient);  // `cpu` is no device to make current
    }
    runtime::set_current_device(0);
}

BOOST_AUTO_TEST_CASE(a_scope_belongs_to_one_thread) {
    placed_bytes const memory{host0, 100, 20};
    auto group = lone(host1);
    settled const group_done{group};
    scope_type scope{group};
    std::string said;
    std::jthread{[&] {
        try {
            static_cast<void>(scope.align(memory.view()));
        } catch (contract_violation const& e) {
            said = e.what();
        }
    }}.join();
    BOOST_TEST(said.find("one thread") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_proof_is_good_for_its_own_communicator_only) {
    placed_bytes memory{host1, 100, 21};
    auto first = lone(host1);
    settled const first_done{first};
    auto second = lone(host1);
    settled const second_done{second};
    scope_type scope{first};
    auto view = memory.view();
    BOOST_CHECK_EXCEPTION(second.broadcast_from(scope.align(view)), contract_violation,
                          says("another communicator"));
    BOOST_CHECK_EXCEPTION(second.broadcast_into(scope.require(view), 0), contract_violation,
                          says("another communicator"));
    auto group = scope.send_group();
    BOOST_CHECK_THROW(second.broadcast_from(group), contract_violation);
    BOOST_TEST(!second.outstanding());
}

// --- sharing ---

BOOST_AUTO_TEST_CASE(a_staged_tensor_is_shared_between_groups_on_one_device) {
    placed_bytes const memory{host0, 3000, 22};
    auto first = lone(host1);
    settled const first_done{first};
    auto second = lone(host1);
    settled const second_done{second};
    auto third = lone(host1);
    settled const third_done{third};
    {
        scope_type owner{first, {.slots = 1}};
        scope_type borrower{second, {.slots = 1}};
        scope_type last{third, {.slots = 1}};
        for (int round = 0; round < 5; ++round) {
            auto const original = owner.align(memory.view());
            auto const shared = borrower.share(original);
            auto const again = last.share(shared);  // of a share: the slot is still the first one's
            BOOST_TEST(shared.data() == original.data());
            BOOST_TEST(again.data() == original.data());
            BOOST_TEST(active(host1) == 3000U);
            first.broadcast_from(original, patiently());
            second.broadcast_from(shared, patiently());
            third.broadcast_from(again, patiently());
        }
    }
    for (auto* const group : {&first, &second, &third}) finish(*group, patiently());
    BOOST_TEST(active(host1) == 0U);
}

BOOST_AUTO_TEST_CASE(a_shared_slot_is_not_filled_again_before_every_group_has_read_it) {
    for (bool const of_a_share : {false, true}) {
        auto const first_bytes = pattern(3000, 23);
        auto const said = [&] {
            local_group const one{1, {.where = {host1}}};
            local_group const two{2, {.where = {host1}}};
            auto owner_group = one.join(0);
            auto middle_group = lone(host1);
            settled const middle_group_done{middle_group};
            return run_ranks(two, [&](group_type& c) -> std::string {
                if (c.rank() ==
                    1) {  // late, so that the bytes are read long after they were staged
                    std::this_thread::sleep_for(std::chrono::milliseconds{50});
                    placed_bytes received{host1, contents(3000)};
                    scope_type scope{c};
                    auto view = received.view();
                    c.broadcast_into(scope.require(view), 0, patiently());
                    finish(c, patiently());
                    return unless(received.read() == first_bytes,
                                  "the slot was filled before it was read");
                }
                placed_bytes const first{host0, first_bytes};
                placed_bytes const second{host0, 3000, 24};
                scope_type owner{owner_group, {.slots = 1}};
                scope_type middle{middle_group, {.slots = 1}};
                scope_type borrower{c, {.slots = 1}};
                {
                    auto const original = owner.align(first.view());
                    auto const link = middle.share(original);
                    c.broadcast_from(borrower.share(of_a_share ? link : original), patiently());
                }
                {
                    auto const next = owner.align(second.view());
                    owner_group.broadcast_from(next, patiently());
                }
                finish(c, patiently());
                finish(owner_group, patiently());
                return "";
            });
        }();
        check_ranks(said, of_a_share ? "share of a share" : "share");
    }
}

BOOST_AUTO_TEST_CASE(a_share_of_a_resident_tensor_keeps_the_order_after_its_producer) {
    auto const new_bytes = pattern(5000, 25);
    placed_bytes memory{host1, contents(5000)};
    auto first = lone(host1);
    settled const first_done{first};
    auto second = lone(host1);
    settled const second_done{second};
    stream_blocker<runtime> blocker{memory.stream()};
    runtime::copy(memory.data(), host1, new_bytes.data(), cpu_device, 5000, memory.stream());
    scope_type owner{first};
    scope_type borrower{second};
    auto const original = owner.align(memory.view(), produced_on{memory.stream()});
    auto const shared = borrower.share(original);
    BOOST_TEST(!shared.staged());
    second.broadcast_from(shared, patiently());
    std::this_thread::sleep_for(std::chrono::milliseconds{20});
    BOOST_TEST(!runtime::query(second.core().collective_stream()));
    blocker.open();
    finish(second, patiently());
}

BOOST_AUTO_TEST_CASE(a_proof_of_another_device_is_not_shared) {
    placed_bytes const memory{host0, 100, 26};
    auto first = lone(host1);
    settled const first_done{first};
    auto second = lone(host2);
    settled const second_done{second};
    scope_type owner{first};
    auto const original = owner.align(memory.view());
    scope_type borrower{second};
    BOOST_CHECK_EXCEPTION(static_cast<void>(borrower.share(original)), device_mismatch,
                          says({"host:1", "host:2"}));
}

// --- chunks ---

BOOST_AUTO_TEST_CASE(members_are_packed_where_the_chunk_says) {
    placed_bytes const on0{host0, 500, 27};
    placed_bytes const on1{host1, 800, 28};
    auto group = lone(host1);
    settled const group_done{group};
    scope_type scope{group, {.slots = 1}};
    auto const strided = on1.view(dtype::int16, {10, 3}, {17, 2});
    std::vector<packed_member<host_space>> const members{
        {on0.view(), 100, 350, 0}, {strided, 0, 60, 256}, {strided, 20, 33, 320}};
    auto const chunk = scope.pack(members, 333, {phase::payload, "chunk"});
    auto const bytes = bytes_of_proof(group, chunk);
    auto const first = on0.read();
    auto const second = gathered(strided);
    BOOST_TEST(std::equal(first.begin() + 100, first.begin() + 350, bytes.begin()));
    BOOST_TEST(std::equal(second.begin(), second.end(), bytes.begin() + 256));
    BOOST_TEST(std::equal(second.begin() + 20, second.begin() + 33, bytes.begin() + 320));
}

BOOST_AUTO_TEST_CASE(a_member_that_cannot_be_packed_gives_its_slot_back) {
    placed_bytes const good{host0, 500, 29};
    contents gone(500);
    auto group = lone(host1);
    settled const group_done{group};
    std::vector<packed_member<host_space>> const members{
        {good.view(), 0, 500, 0},
        {tensor_view<>{gone.data(), dtype::uint8, {500}, host0}, 0, 600, 500}};
    void* const freed = [] {
        placed_bytes block{host2, 500, 30};
        return block.data();
    }();
    std::vector<packed_member<host_space>> const dangling{
        {good.view(), 0, 500, 0}, {tensor_view<>{freed, dtype::uint8, {500}, host2}, 0, 500, 500}};
    scope_type scope{group, {.slots = 1}};
    for (int i = 0; i < 3; ++i) {
        BOOST_CHECK_THROW(static_cast<void>(scope.pack(dangling, 1000, {phase::payload, "chunk"})),
                          error);
    }
    BOOST_TEST(scope.align(good.view()).staged());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weightcast::test
