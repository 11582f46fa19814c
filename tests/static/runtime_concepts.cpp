// SPDX-License-Identifier: Apache-2.0
// DeviceRuntime: the least that models it, and near-misses that lack one atom each.

#include <concepts>
#include <cstddef>

#include <support/archetypes.hpp>
#include <weightcast/runtime/concepts.hpp>
#include <weightcast/runtime/host_runtime.hpp>

namespace {

using namespace weightcast;
using test::cuda_archetype;
using test::host_archetype;

static_assert(DeviceRuntime<host_archetype>);
static_assert(explain_device_runtime<host_archetype>());
static_assert(explain_device_runtime<cuda_archetype>());
static_assert(explain_device_runtime<host_runtime>());
static_assert(!DeviceRuntime<int>);

// Each near-miss hides or changes one member of the archetype.
struct without_space : host_archetype {
  private:
    using space = host_space;
};
struct unknown_space : host_archetype {
    struct space {};
};
struct kind_by_name : host_archetype {
    static constexpr char const* kind = "host";
};
struct without_device_count : host_archetype {
    static int device_count() = delete;
};
struct counts_unsigned : host_archetype {
    static unsigned device_count();
};
struct current_device_unset : host_archetype {
    static void set_current_device() = delete;
};
struct streams_that_do_not_copy : host_archetype {
    struct stream_ref {
        stream_ref(stream_ref const&) = delete;
    };
};
struct destroy_stream_may_throw : host_archetype {
    static void destroy_stream(stream_ref);
};
struct stream_without_device : host_archetype {
    static int device_of(stream_ref);
};
struct query_says_nothing : host_archetype {
    static void query(stream_ref);
    static bool query(event_ref);
};
struct destroy_event_may_throw : host_archetype {
    static void destroy_event(event_ref);
};
struct wait_without_deadline : host_archetype {
    static bool wait(event_ref);
};
struct wait_says_nothing : host_archetype {
    static void wait(event_ref, deadline);
};
struct events_without_stream_wait : host_archetype {
    static void stream_wait() = delete;
};
struct typed_memory : host_archetype {
    static std::byte* allocate(std::size_t, device, stream_ref);
};
struct deallocate_may_throw : host_archetype {
    static void deallocate(void*, stream_ref);
};
struct memory_unknown : host_archetype {
    static std::size_t memory(device);
};
struct copies_without_devices : host_archetype {
    static void copy(void*, void const*, std::size_t, stream_ref);
};
struct device_wait_says_nothing : host_archetype {
    static void wait_device(int, deadline);
};
struct communicators_unmarked : host_archetype {
    static void mark_communicator_stream() = delete;
};
struct pointers_have_an_index : host_archetype {
    static int locate(void const*);
};

static_assert(!has_runtime_space<without_space> && !has_runtime_space<unknown_space> &&
              !has_runtime_space<kind_by_name>);
static_assert(!has_device_selection<without_device_count> &&
              !has_device_selection<counts_unsigned>);
static_assert(!has_device_selection<current_device_unset>);
static_assert(!has_streams<streams_that_do_not_copy> && !has_streams<destroy_stream_may_throw>);
static_assert(!has_streams<stream_without_device> && !has_streams<query_says_nothing>);
static_assert(!has_events<destroy_event_may_throw> && !has_events<wait_without_deadline>);
static_assert(!has_events<wait_says_nothing> && !has_events<events_without_stream_wait>);
static_assert(!has_stream_ordered_memory<typed_memory> &&
              !has_stream_ordered_memory<deallocate_may_throw>);
static_assert(!has_stream_ordered_memory<memory_unknown>);
static_assert(!has_copies<copies_without_devices>);
static_assert(!has_device_wait<device_wait_says_nothing> &&
              !has_device_wait<communicators_unmarked>);
static_assert(!has_pointer_lookup<pointers_have_an_index>);

// It is that atom alone, and the concept has it.
static_assert(has_streams<without_space> && !DeviceRuntime<without_space>);
static_assert(has_streams<counts_unsigned> && !DeviceRuntime<counts_unsigned>);
static_assert(has_events<destroy_stream_may_throw> && !DeviceRuntime<destroy_stream_may_throw>);
static_assert(has_streams<wait_without_deadline> && !DeviceRuntime<wait_without_deadline>);
static_assert(has_events<typed_memory> && !DeviceRuntime<typed_memory>);
static_assert(has_events<copies_without_devices> && !DeviceRuntime<copies_without_devices>);
static_assert(has_copies<communicators_unmarked> && !DeviceRuntime<communicators_unmarked>);
static_assert(has_copies<pointers_have_an_index> && !DeviceRuntime<pointers_have_an_index>);

}  // namespace
