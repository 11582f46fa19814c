// SPDX-License-Identifier: Apache-2.0
// Compiled only: the smallest models of kernels/'s concepts, and near-misses that lack one atom
// each.

#include <cstddef>
#include <cstdint>

#include <weightcast/kernels/concepts.hpp>

namespace {

using namespace weightcast;

// A runtime of declarations; the tag makes several of them.
template <class Tag>
struct runtime_archetype {
    using space = host_space;
    static constexpr device_kind kind = device_kind::host;
    struct stream_ref {};
    struct event_ref {};
    static int device_count();
    static int current_device();
    static void set_current_device(int);
    static stream_ref create_stream(device);
    static void destroy_stream(stream_ref) noexcept;
    static device device_of(stream_ref);
    static bool query(stream_ref);
    static event_ref create_event();
    static void destroy_event(event_ref) noexcept;
    static void record(event_ref, stream_ref);
    static void stream_wait(stream_ref, event_ref);
    static bool query(event_ref);
    static bool wait(event_ref, deadline);
    static void* allocate(std::size_t, device, stream_ref);
    static void deallocate(void*, stream_ref) noexcept;
    static memory_counters memory(device);
    static void copy(void*, device, void const*, device, std::size_t, stream_ref);
    static bool wait_device(int, deadline);
    static void mark_communicator_stream(stream_ref);
    static device locate(void const*);
};

using good = runtime_archetype<struct good_tag>;
using without_launcher = runtime_archetype<struct without_launcher_tag>;
using without_pack = runtime_archetype<struct without_pack_tag>;
using without_unpack = runtime_archetype<struct without_unpack_tag>;
using pack_without_stream = runtime_archetype<struct pack_without_stream_tag>;
using unpack_into_const = runtime_archetype<struct unpack_into_const_tag>;

}  // namespace

namespace weightcast {

template <>
struct kernel_launcher<good> {
    static void pack_async(const_tensor_view<host_space>, std::uint64_t, std::uint64_t, void*,
                           good::stream_ref);
    static void unpack_async(void const*, tensor_view<host_space>, std::uint64_t, std::uint64_t,
                             good::stream_ref);
};
template <>
struct kernel_launcher<without_pack> {
    static void unpack_async(void const*, tensor_view<host_space>, std::uint64_t, std::uint64_t,
                             without_pack::stream_ref);
};
template <>
struct kernel_launcher<without_unpack> {
    static void pack_async(const_tensor_view<host_space>, std::uint64_t, std::uint64_t, void*,
                           without_unpack::stream_ref);
};
template <>
struct kernel_launcher<pack_without_stream> {
    static void pack_async(const_tensor_view<host_space>, std::uint64_t, std::uint64_t, void*);
    static void unpack_async(void const*, tensor_view<host_space>, std::uint64_t, std::uint64_t,
                             pack_without_stream::stream_ref);
};
template <>
struct kernel_launcher<unpack_into_const> {
    static void pack_async(const_tensor_view<host_space>, std::uint64_t, std::uint64_t, void*,
                           unpack_into_const::stream_ref);
    static void unpack_async(void*, tensor_view<host_space>, std::uint64_t, std::uint64_t,
                             unpack_into_const::stream_ref);
};

}  // namespace weightcast

namespace {

static_assert(KernelRuntime<good>);
static_assert(explain_kernel_runtime<good>());
static_assert(DeviceRuntime<without_launcher> && !KernelRuntime<without_launcher>);
static_assert(!has_pack_launch<without_pack> && has_unpack_launch<without_pack>);
static_assert(has_pack_launch<without_unpack> && !has_unpack_launch<without_unpack>);
static_assert(!has_pack_launch<pack_without_stream> && has_unpack_launch<pack_without_stream>);
static_assert(has_pack_launch<unpack_into_const> && !has_unpack_launch<unpack_into_const>);
static_assert(!KernelRuntime<int>);

}  // namespace
