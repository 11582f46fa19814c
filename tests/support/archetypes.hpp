// SPDX-License-Identifier: Apache-2.0
// The least that models a runtime and a communicator, of any memory space; only declared: nothing runs.
#pragma once

#include <concepts>
#include <cstddef>

#include <weightcast/comm/concepts.hpp>
#include <weightcast/runtime/concepts.hpp>
#include <weightcast/tensor/space.hpp>

namespace weightcast::test {

template <MemorySpace Space, device_kind Kind>
struct runtime_archetype {
    struct stream_ref {};
    struct event_ref {};
    using space = Space;
    static constexpr device_kind kind = Kind;

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
using host_archetype = runtime_archetype<host_space, device_kind::host>;
using cuda_archetype = runtime_archetype<cuda_space, device_kind::cuda>;

/// A communicator that does nothing but broadcast.
template <class Runtime>
struct communicator_archetype {
    using runtime = Runtime;
    communicator_archetype(communicator_archetype const&) = delete;
    int rank() const noexcept;
    int size() const noexcept;
    device where() const noexcept;
    template <std::same_as<resident<communicator_archetype>> Proof>
    void broadcast_from(Proof const&, operation const&);
    template <std::same_as<resident_group<communicator_archetype>> Group>
    void broadcast_from(Group const&, operation const&);
    template <std::same_as<writable_resident<communicator_archetype>> Proof>
    void broadcast_into(Proof const&, int, operation const&);
    template <std::same_as<writable_group<communicator_archetype>> Group>
    void broadcast_into(Group const&, int, operation const&);
    void abort() noexcept;
    bool outstanding() const noexcept;
    bool failed() const noexcept;
    void wait(typename Runtime::event_ref, deadline, operation_label const&);
};

}  // namespace weightcast::test
