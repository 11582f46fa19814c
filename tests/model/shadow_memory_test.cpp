// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <runtime/host_support.hpp>
#include <support/says.hpp>
#include <weightcast/model/shadow_memory.hpp>
#include <weightcast/runtime/host_runtime.hpp>

namespace weightcast::test {
namespace {

using shadow = shadow_memory<runtime>;
using view = tensor_view<host_space>;

static_assert(std::is_nothrow_move_constructible_v<shadow>);
static_assert(!std::is_copy_constructible_v<shadow>);
static_assert(!std::is_move_assignable_v<shadow>);

std::uintptr_t address(void const* p) { return reinterpret_cast<std::uintptr_t>(p); }
std::uintptr_t address(view const& v) { return address(v.data()); }

/// 4096 numbered bytes of a device, aligned to 64.
class arena {
  public:
    explicit arena(device where) : on_{where}, memory_{size, where, on_.ref()} {
        for (std::size_t i = 0; i < size; ++i) at(i) = static_cast<unsigned char>(i % 251);
    }
    /// A tensor that begins at that byte.
    view tensor(std::size_t first, dtype type, extents const& shape) const {
        return {&at(first), type, shape, memory_.where()};
    }
    view tensor(std::size_t first, dtype type, extents const& shape, extents const& strides) const {
        return {&at(first), type, shape, strides, memory_.where()};
    }
    view bytes(std::size_t first, std::int64_t count) const {
        return tensor(first, dtype::uint8, {count});
    }
    unsigned char& at(std::size_t i) const {
        return static_cast<unsigned char*>(memory_.data())[i];
    }

  private:
    static constexpr std::size_t size = 4096;
    stream<runtime> on_;
    device_buffer<runtime> memory_;
};

unsigned char& byte_of(view const& v, std::size_t i) {
    return static_cast<unsigned char*>(v.data())[i];
}
void check_counterpart(shadow const& second, view const& own) {
    auto const other = second.counterpart(own);
    BOOST_TEST((other.layout() == own.layout()));
    BOOST_TEST(other.where() == own.where());
    BOOST_TEST(other.data() != own.data());
    BOOST_TEST(address(other) % 64 == address(own) % 64);
    BOOST_TEST(runtime::locate(other.data()) == own.where());
    BOOST_TEST(second.counterpart(own).data() == other.data());
}

std::array const devices{cpu_device, host0};

BOOST_AUTO_TEST_SUITE(shadow_memory_suite)

BOOST_AUTO_TEST_CASE(a_counterpart_is_the_same_tensor_elsewhere_aligned_alike) {
    for (auto const where : devices) {
        arena const a{where};
        std::vector<view> const tensors{a.tensor(0, dtype::float32, {4, 8}), a.bytes(201, 7),
                                        a.tensor(256, dtype::bfloat16, {3, 5}, {1, 3}),
                                        a.tensor(1002, dtype::float16, {}),
                                        a.tensor(1064, dtype::int64, {2, 2}, {8, 2})};
        shadow const second{tensors};
        for (auto const& tensor : tensors) check_counterpart(second, tensor);
        BOOST_TEST(second.bytes() == 128U + 7U + 30U + 2U + (8U + 2U + 1U) * 8U);
        BOOST_TEST(runtime::device_of(second.stream_of(where)) == where);
    }
}

BOOST_AUTO_TEST_CASE(tensors_of_several_devices_have_a_stream_each) {
    arena const a{host0};
    arena const b{host1};
    arena const c{cpu_device};
    std::vector const tensors{a.bytes(0, 10), b.bytes(0, 20), c.bytes(0, 30), a.bytes(100, 1)};
    shadow second{tensors};
    for (auto const& tensor : tensors) {
        check_counterpart(second, tensor);
        second.copy_from_first(tensor);
    }
    BOOST_REQUIRE(second.wait(soon()));
    for (auto const& tensor : tensors) {
        BOOST_TEST(byte_of(second.counterpart(tensor), 0) == byte_of(tensor, 0));
        BOOST_TEST(runtime::device_of(second.stream_of(tensor.where())) == tensor.where());
    }
    BOOST_TEST((second.stream_of(host0) != second.stream_of(host1)));
    BOOST_CHECK_EXCEPTION(second.stream_of(host2), bad_argument, says{"host:2"});
}

BOOST_AUTO_TEST_CASE(tensors_that_share_bytes_share_them_in_the_second_set) {
    arena const a{host0};
    auto const embedding = a.tensor(64, dtype::float32, {10, 4});
    auto const tied = a.tensor(64, dtype::float32, {10, 4});
    auto const row = a.tensor(64 + 3 * 16, dtype::float32, {4});
    auto const transposed = a.tensor(64, dtype::float32, {4, 10}, {1, 4});
    auto const reaches_over = a.bytes(64 + 159, 10);
    auto const chained = a.bytes(64 + 168, 32);  // shares nothing with the embedding itself
    std::vector const all{chained, embedding, row, tied, transposed, reaches_over};
    shadow const second{all};
    auto const base = second.counterpart(embedding).data();
    for (auto const& tensor : all) {
        check_counterpart(second, tensor);
        BOOST_TEST(address(second.counterpart(tensor)) - address(base) ==
                   address(tensor) - address(embedding));
    }
    BOOST_TEST(second.bytes() == 168U + 32U);
}

BOOST_AUTO_TEST_CASE(a_tensor_inside_another_does_not_end_what_is_merged) {
    arena const a{cpu_device};
    shadow const second{{a.bytes(0, 100), a.bytes(10, 5), a.bytes(90, 20)}};
    BOOST_TEST(second.bytes() == 110U);
}

BOOST_AUTO_TEST_CASE(tensors_that_only_touch_stay_apart) {
    arena const a{host0};
    shadow second{{a.bytes(0, 100), a.bytes(100, 50)}};
    BOOST_TEST(second.bytes() == 150U);
    check_counterpart(second, a.bytes(99, 1));
    check_counterpart(second, a.bytes(100, 1));
    BOOST_CHECK_THROW(static_cast<void>(second.counterpart(a.bytes(99, 2))), bad_argument);
}

BOOST_AUTO_TEST_CASE(equal_addresses_of_two_devices_are_two_ranges) {
    std::array<std::byte, 64> memory{};
    view const on_cpu{memory.data(), dtype::uint8, {64}};
    view const on_host{memory.data(), dtype::uint8, {64}, host0};
    shadow const second{{on_cpu, on_host}};
    BOOST_TEST(second.bytes() == 128U);
    check_counterpart(second, on_cpu);
    check_counterpart(second, on_host);
    BOOST_TEST(second.counterpart(on_cpu).data() != second.counterpart(on_host).data());
}

BOOST_AUTO_TEST_CASE(copies_go_both_ways_and_move_one_tensor_only) {
    for (auto const where : devices) {
        arena const a{where};
        auto const one = a.bytes(0, 40);
        auto const next = a.bytes(40, 40);
        shadow second{{one, next}};
        second.copy_from_first(one);
        second.copy_from_first(next);
        BOOST_REQUIRE(second.wait(soon()));
        for (std::size_t i = 0; i < 40; ++i) {
            BOOST_TEST(byte_of(second.counterpart(one), i) == i);
            BOOST_TEST(byte_of(second.counterpart(next), i) == i + 40);
            byte_of(second.counterpart(one), i) = 200;
            byte_of(second.counterpart(next), i) = 201;
        }
        BOOST_TEST(a.at(0) == 0U);
        second.copy_to_first(next);
        BOOST_REQUIRE(second.wait(soon()));
        for (std::size_t i = 0; i < 40; ++i) {
            BOOST_TEST(a.at(i) == i);
            BOOST_TEST(a.at(40 + i) == 201U);
        }
        BOOST_TEST(a.at(80) == 80U);
    }
}

BOOST_AUTO_TEST_CASE(a_strided_tensor_is_copied_from_its_first_byte_to_its_last) {
    arena const a{host0};
    auto const everything = a.bytes(0, 200);
    auto const strided = a.tensor(20, dtype::uint8, {3, 2}, {10, 3});  // last byte: 20 + 20 + 3
    shadow second{{everything, strided}};
    auto const copy = second.counterpart(everything);
    std::memset(copy.data(), 255, 200);
    second.copy_from_first(strided);
    BOOST_REQUIRE(second.wait(soon()));
    for (std::size_t i = 0; i < 200; ++i) {
        BOOST_TEST(byte_of(copy, i) == (i >= 20 && i <= 43 ? i : 255U));
    }
    auto const part = second.counterpart(strided);
    BOOST_TEST(address(part) == address(copy) + 20);
    BOOST_TEST(part.strides() == strided.strides());
}

BOOST_AUTO_TEST_CASE(tensors_without_elements_are_their_own_counterparts) {
    arena const a{host0};
    view const nowhere{nullptr, dtype::float32, {0, 3}, host0};
    view const on_a_foreign_device{nullptr, dtype::float32, {2, 0}, {device_kind::cuda, 3}};
    view const somewhere = a.tensor(10, dtype::float32, {0});
    shadow second{{nowhere, on_a_foreign_device, somewhere, a.bytes(0, 4)}};
    BOOST_TEST(second.bytes() == 4U);
    for (auto const& empty : {nowhere, on_a_foreign_device, somewhere}) {
        auto const same = second.counterpart(empty);
        BOOST_TEST(same.data() == empty.data());
        BOOST_TEST(same.where() == empty.where());
        BOOST_TEST((same.layout() == empty.layout()));
        second.copy_from_first(empty);
        second.copy_to_first(empty);
    }
    BOOST_TEST(second.wait(soon()));

    shadow none{{}};
    BOOST_TEST(none.bytes() == 0U);
    BOOST_TEST(none.wait(at_once()));
    BOOST_CHECK_THROW(none.stream_of(host0), bad_argument);
}

BOOST_AUTO_TEST_CASE(a_wait_ends_at_its_deadline_and_may_be_repeated) {
    arena const a{host0};
    auto const own = a.bytes(5, 9);
    shadow second{{own}};
    std::memset(second.counterpart(own).data(), 77, 9);
    {
        stream_blocker<runtime> const blocker{second.stream_of(host0)};
        second.copy_from_first(own);
        BOOST_TEST(!second.wait(at_once()));
    }
    BOOST_TEST(second.wait(soon()));
    BOOST_TEST(byte_of(second.counterpart(own), 0) == 5U);
}

BOOST_AUTO_TEST_CASE(one_late_device_is_waited_for_among_others) {
    arena const a{host0};
    arena const b{host1};
    shadow second{{a.bytes(0, 1), b.bytes(0, 1)}};
    for (auto const where : {host0, host1}) {
        stream_blocker<runtime> const blocker{second.stream_of(where)};
        BOOST_TEST(!second.wait(at_once()));
    }
    BOOST_TEST(second.wait(soon()));
}

BOOST_AUTO_TEST_CASE(memory_is_given_back_at_the_end) {
    arena const a{host0};
    arena const b{host1};
    auto const before = std::pair{runtime::memory(host0).active, runtime::memory(host1).active};
    {
        std::optional<shadow> second{
            std::in_place, std::vector{a.bytes(0, 1000), a.bytes(1500, 30), b.bytes(0, 9)}};
        auto const taken = runtime::memory(host0).active - before.first;
        BOOST_TEST(taken >= 1030U);
        BOOST_TEST(taken <= 1030U + 2 * 63U);
        BOOST_TEST(runtime::memory(host1).active > before.second);
        shadow moved{std::move(*second)};
        BOOST_TEST(second->bytes() == 0U);
        BOOST_TEST(second->wait(at_once()));
        BOOST_CHECK_THROW(static_cast<void>(second->counterpart(a.bytes(0, 1))), bad_argument);
        second.reset();
        check_counterpart(moved, a.bytes(1500, 30));
        BOOST_TEST(runtime::memory(host0).active - before.first == taken);
        for (int i = 0; i < 50; ++i) moved.copy_from_first(a.bytes(0, 1000));
    }
    BOOST_TEST(runtime::memory(host0).active == before.first);
    BOOST_TEST(runtime::memory(host1).active == before.second);
    BOOST_TEST(runtime::wait_device(0, soon()));  // the queued copies read the first set
}

BOOST_AUTO_TEST_CASE(what_cannot_be_allocated_leaves_nothing_behind) {
    arena const a{host0};
    auto const before = runtime::memory(host0).active;
    auto const make = [&](view const& last) { static_cast<void>(shadow{{a.bytes(0, 8), last}}); };
    auto const on = [&](device where) { return view{&a.at(0), dtype::uint8, {8}, where}; };
    make(on(cpu_device));
    BOOST_CHECK_THROW(make(on({device_kind::cuda, 0})), bad_argument);
    BOOST_CHECK_THROW(make(on({device_kind::host, 99})), bad_argument);
    auto settings = runtime::settings();
    settings.device_memory_limit = {runtime::memory(cpu_device).reserved + (1U << 20U)};
    settings_scope const limited{settings};
    view const huge{&a.at(0), dtype::uint8, {INT64_C(1) << 30}, cpu_device};
    BOOST_CHECK_THROW(make(huge), out_of_memory);
    BOOST_TEST(runtime::memory(host0).active == before);
}

BOOST_AUTO_TEST_CASE(tensors_outside_are_refused) {
    arena const a{host0};
    shadow second{{a.bytes(100, 50), a.bytes(200, 50)}};
    auto const refused = [&](view const& own) {
        says const message{"uint8" + to_string(own.shape()), "strides", to_string(own.where()),
                           "2 ranges", "100 bytes"};
        BOOST_CHECK_EXCEPTION(static_cast<void>(second.counterpart(own)), bad_argument, message);
        BOOST_CHECK_EXCEPTION(second.copy_from_first(own), bad_argument, message);
        BOOST_CHECK_EXCEPTION(second.copy_to_first(own), bad_argument, message);
    };
    refused(a.bytes(99, 1));
    refused(a.bytes(99, 51));
    refused(a.bytes(100, 51));
    refused(a.bytes(150, 1));
    refused(a.bytes(250, 1));
    refused(a.bytes(100, 150));
    refused(a.tensor(100, dtype::uint8, {2}, {50}));
    refused({&a.at(100), dtype::uint8, {1}, host1});
    refused({&a.at(100), dtype::uint8, {1}, cpu_device});
    refused(second.counterpart(a.bytes(100, 1)));
    check_counterpart(second, a.tensor(100, dtype::uint8, {2}, {49}));
}

BOOST_AUTO_TEST_CASE(a_tensor_on_another_device_than_it_says_is_refused_when_it_is_copied) {
    arena const a{host1};
    view const mislabelled{&a.at(0), dtype::uint8, {4}, host0};
    shadow second{{mislabelled}};
    BOOST_CHECK_THROW(second.copy_from_first(mislabelled), device_mismatch);
    BOOST_CHECK_THROW(second.copy_to_first(mislabelled), device_mismatch);
    BOOST_TEST(a.at(0) == 0U);
}

/// A runtime whose memory is aligned to 8 bytes only.
struct crooked_runtime : host_runtime {
    static constexpr std::size_t shift = 8;
    static void* allocate(std::size_t bytes, device where, stream_ref on) {
        return static_cast<std::byte*>(host_runtime::allocate(bytes + shift, where, on)) + shift;
    }
    static void deallocate(void* data, stream_ref on) noexcept {
        host_runtime::deallocate(static_cast<std::byte*>(data) - shift, on);
    }
};
static_assert(DeviceRuntime<crooked_runtime>);

BOOST_AUTO_TEST_CASE(alignment_does_not_lean_on_the_runtimes) {
    arena const a{host0};
    for (std::size_t first = 0; first < 64; first += 3) {
        auto const own = a.bytes(first, 100);
        shadow_memory<crooked_runtime> second{{own}};
        auto const other = second.counterpart(own);
        BOOST_TEST(address(other) % 64 == address(own) % 64);
        second.copy_from_first(own);  // the range is inside its allocation, or this would throw
        BOOST_REQUIRE(second.wait(soon()));
        BOOST_TEST(std::memcmp(other.data(), own.data(), 100) == 0);
    }
}

/// A runtime that remembers which device was current when an event was made: CUDA's events belong to it.
struct watched_runtime : host_runtime {
    static inline std::vector<int> made_on{};
    static event_ref create_event() {
        made_on.push_back(current_device());
        return host_runtime::create_event();
    }
};
static_assert(DeviceRuntime<watched_runtime>);

BOOST_AUTO_TEST_CASE(a_wait_makes_its_events_on_their_own_devices) {
    arena const a{host1};
    arena const b{host2};
    shadow_memory<watched_runtime> second{{a.bytes(0, 1), b.bytes(0, 1)}};
    BOOST_TEST(second.wait(soon()));
    BOOST_TEST((watched_runtime::made_on == std::vector{1, 2}));
    BOOST_TEST(runtime::current_device() == 0);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weightcast::test
