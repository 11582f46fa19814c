// SPDX-License-Identifier: Apache-2.0
// The raw entry of a communicator is nobody's but the proof-taking face's.
//
// case 1: enqueue_broadcasts.* is (private within this context|a private member)|'enqueue_broadcasts' is a private member
// case 2: 'enqueue_send' is a private member|enqueue_send.* is private within this context
// case 3: 'enqueue_receive' is a private member|enqueue_receive.* is private within this context
// case 4: 'enqueue_all_reduce' is a private member|enqueue_all_reduce.* is private within this context
// case 5: the type needs broadcast_from\(resident or resident_group, operation\)
// case 6: the type needs noexcept abort\(\), outstanding\(\) and failed\(\)
// case 7: the group is no Communicator; see explain_communicator<C>\(\)
// case 8 [gcc]: communicator_operations.* is private within this context
// case 8 [clang]: inherited virtual|private constructor|deleted default constructor|implicitly-deleted default constructor

#include <weightcast/align.hpp>
#include <weightcast/comm/local_communicator.hpp>

using namespace weightcast;

static_assert(explain_communicator<local_communicator>());

// The face over a raw entry, and what the laws of a group want beside it.
template <class Self>
struct plain_group : communicator_operations<Self> {
    using runtime = host_runtime;
    int rank() const noexcept { return 0; }
    int size() const noexcept { return 1; }
    device where() const noexcept { return cpu_device; }
    communicator_core<host_runtime>& core() noexcept;
    void const* identity() const noexcept { return this; }
    void abort() noexcept {}
    bool outstanding() const noexcept { return false; }
    bool failed() const noexcept { return false; }
};

#if WEIGHTCAST_CASE == 1
void negative(local_communicator& group, transfer_range const& raw) {
    group.enqueue_broadcasts({&raw, 1}, 0, {});
}
#elif WEIGHTCAST_CASE == 2
void negative(local_communicator& group, transfer_range const& raw) {
    group.enqueue_send(raw, 0, {});
}
#elif WEIGHTCAST_CASE == 3
void negative(local_communicator& group, transfer_range const& raw) {
    group.enqueue_receive(raw, 0, {});
}
#elif WEIGHTCAST_CASE == 4
void negative(local_communicator& group, transfer_range const& raw) {
    group.enqueue_all_reduce(raw, dtype::int32, reduction::sum, {});
}
#elif WEIGHTCAST_CASE == 5
struct raw_group {
    using runtime = host_runtime;
    int rank() const noexcept { return 0; }
    int size() const noexcept { return 1; }
    device where() const noexcept { return cpu_device; }
    void broadcast_from(void const*, operation const&) {}
    void broadcast_into(void*, int, operation const&) {}
    void abort() noexcept {}
    bool outstanding() const noexcept { return false; }
    bool failed() const noexcept { return false; }
    void wait(host_event_ref, deadline, operation_label const&) {}
};
static_assert(explain_communicator<raw_group>());
#elif WEIGHTCAST_CASE == 6
struct group : local_communicator {
    void abort() {}
};
static_assert(explain_communicator<group>());
#elif WEIGHTCAST_CASE == 7
struct no_group {
    using runtime = host_runtime;
};
void negative(no_group& none) { alignment_scope<no_group> scope{none}; }
#elif WEIGHTCAST_CASE == 8
struct group : plain_group<group> {};
group negative;
#endif
