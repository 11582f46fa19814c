// SPDX-License-Identifier: Apache-2.0
// Guards, scopes and owners are not copied, and no stream is made from 0 or a null pointer.
//
// case 1 [gcc]: use of deleted function .*host_stream_ref\(int\)
// case 1 [clang]: call to deleted constructor of 'const host_stream_ref'
// case 2 [gcc]: use of deleted function .*host_stream_ref\(std::nullptr_t\)
// case 2 [clang]: call to deleted constructor of 'const host_stream_ref'
// case 3 [gcc]: use of deleted function .*stream<R>::stream\(int\)
// case 3 [clang]: call to deleted constructor of 'const stream<
// case 4 [gcc]: use of deleted function .*device_guard
// case 4 [clang]: copy constructor of 'device_guard<
// case 5 [gcc]: use of deleted function .*device_guard
// case 5 [clang]: call to deleted constructor of '.*device_guard<
// case 6 [gcc]: use of deleted function .*stream.*\(const
// case 6 [clang]: copy constructor of 'stream<
// case 7 [gcc]: use of deleted function .*event.*\(const
// case 7 [clang]: copy constructor of 'event<
// case 8 [gcc]: use of deleted function .*device_buffer.*\(const
// case 8 [clang]: copy constructor of 'device_buffer<
// case 9 [gcc]: use of deleted function .*host_event_ref\(int\)
// case 9 [clang]: call to deleted constructor of 'const host_event_ref'
// case 10 [gcc]: use of deleted function .*stream_sync_scope
// case 10 [clang]: copy constructor of 'stream_sync_scope<
// case 11 [gcc]: use of deleted function .*local_communicator\(const
// case 11 [clang]: copy constructor of 'local_communicator'
// case 12 [gcc]: use of deleted function .*pending.*\(const
// case 12 [clang]: copy constructor of 'pending<
// case 13 [gcc]: use of deleted function .*host_stream_ref
// case 13 [clang]: conversion function from 'int' to 'host_stream_ref' invokes a deleted function

#include <utility>

#include <weightcast/align/pending.hpp>
#include <weightcast/comm/local_communicator.hpp>
#include <weightcast/runtime.hpp>

using namespace weightcast;

void waits_for(host_stream_ref);

void positive(local_communicator& group, void* handle) {
    stream<host_runtime> owner{device{device_kind::host, 0}};
    stream<host_runtime> moved{std::move(owner)};
    host_stream_ref const reference = moved.ref();
    host_stream_ref const copied = reference;
    waits_for(copied);
    waits_for(host_stream_ref::from_native_handle(handle));
    event<host_runtime> done{reference};
    device_guard<host_runtime> const guard{device{device_kind::host, 1}};
    device_buffer<host_runtime> memory{64, cpu_device, reference};
    auto taken = std::move(memory);
    auto joined = std::move(group);
    pending<local_communicator> sent{joined, {}};
    auto handed_on = std::move(sent);
}

#if WEIGHTCAST_CASE != 0
void negative(local_communicator& group, stream<host_runtime>& owner, event<host_runtime>& done,
              device_guard<host_runtime>& guard, device_buffer<host_runtime>& memory,
              stream_sync_scope<host_runtime>& scope, pending<local_communicator>& sent) {
#if WEIGHTCAST_CASE == 1
    host_stream_ref const none{0};
#elif WEIGHTCAST_CASE == 2
    host_stream_ref const none{nullptr};
#elif WEIGHTCAST_CASE == 3
    stream<host_runtime> const none{0};
#elif WEIGHTCAST_CASE == 4
    auto copy = guard;
#elif WEIGHTCAST_CASE == 5
    auto moved = std::move(guard);
#elif WEIGHTCAST_CASE == 6
    auto copy = owner;
#elif WEIGHTCAST_CASE == 7
    auto copy = done;
#elif WEIGHTCAST_CASE == 8
    auto copy = memory;
#elif WEIGHTCAST_CASE == 9
    host_event_ref const none{0};
#elif WEIGHTCAST_CASE == 10
    auto copy = scope;
#elif WEIGHTCAST_CASE == 11
    auto copy = group;
#elif WEIGHTCAST_CASE == 12
    auto copy = sent;
#elif WEIGHTCAST_CASE == 13
    waits_for(0);
#endif
}
#endif
