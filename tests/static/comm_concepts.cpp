// SPDX-License-Identifier: Apache-2.0
// Communicator: the least that models it, and one near-miss an atom.

#include <concepts>

#include <weightcast/comm/concepts.hpp>
#include <weightcast/runtime/host_runtime.hpp>

namespace {

using namespace weightcast;

// Everything that the concept asks for, and nothing else. Self is the communicator that proofs are made for.
template <class Self>
struct whole {
    using runtime = host_runtime;
    int rank() const noexcept;
    int size() const noexcept;
    device where() const noexcept;
    template <std::same_as<resident<Self>> Proof>
    void broadcast_from(Proof const&, operation const&);
    template <std::same_as<resident_group<Self>> Group>
    void broadcast_from(Group const&, operation const&);
    template <std::same_as<writable_resident<Self>> Proof>
    void broadcast_into(Proof const&, int, operation const&);
    template <std::same_as<writable_group<Self>> Group>
    void broadcast_into(Group const&, int, operation const&);
    void abort() noexcept;
    bool outstanding() const noexcept;
    bool failed() const noexcept;
    void wait(host_runtime::event_ref, deadline, operation_label const&);
};

struct archetype : whole<archetype> {};
static_assert(Communicator<archetype>);
static_assert(explain_communicator<archetype>());
static_assert(!has_send_receive<archetype> && !has_all_reduce<archetype>);

struct sends : whole<sends> {
    template <std::same_as<resident<sends>> Proof>
    void send_to(Proof const&, int, operation const&);
    template <std::same_as<writable_resident<sends>> Proof>
    void receive_from(Proof const&, int, operation const&);
};
static_assert(has_send_receive<sends> && Communicator<sends>);
struct only_sends : whole<only_sends> {
    template <std::same_as<resident<only_sends>> Proof>
    void send_to(Proof const&, int, operation const&);
};
static_assert(!has_send_receive<only_sends>);

struct reduces : whole<reduces> {
    template <std::same_as<writable_resident<reduces>> Proof>
    void all_reduce(Proof const&, reduction, operation const&);
};
static_assert(has_all_reduce<reduces> && Communicator<reduces>);
// All-reduce writes: a proof that a tensor may be read is not enough.
struct reduces_what_it_may_read : whole<reduces_what_it_may_read> {
    template <std::same_as<resident<reduces_what_it_may_read>> Proof>
    void all_reduce(Proof const&, reduction, operation const&);
};
static_assert(!has_all_reduce<reduces_what_it_may_read>);

// --- near-misses: each lacks one atom and has all others ---

struct has_no_runtime : whole<has_no_runtime> {
  private:
    using runtime = host_runtime;
};
static_assert(!has_runtime<has_no_runtime> && !Communicator<has_no_runtime>);

struct not_a_runtime {};
struct runs_on_something_else : whole<runs_on_something_else> {
    using runtime = not_a_runtime;
};
static_assert(!has_runtime<runs_on_something_else> && has_group_position<runs_on_something_else>);

struct rank_may_throw : whole<rank_may_throw> {
    int rank() const;
};
static_assert(!has_group_position<rank_may_throw> && has_broadcast<rank_may_throw>);
struct size_is_unsigned : whole<size_is_unsigned> {
    unsigned size() const noexcept;
};
static_assert(!has_group_position<size_is_unsigned>);

struct where_is_an_index : whole<where_is_an_index> {
    int where() const noexcept;
};
static_assert(!has_device<where_is_an_index> && has_group_position<where_is_an_index>);

struct broadcasts_pointers : whole<broadcasts_pointers> {
    void broadcast_from(void const*, operation const&);
    void broadcast_into(void*, int, operation const&);
};
static_assert(!has_broadcast<broadcasts_pointers> && has_abort<broadcasts_pointers>);

struct broadcasts_no_groups : whole<broadcasts_no_groups> {
    template <std::same_as<resident<broadcasts_no_groups>> Proof>
    void broadcast_from(Proof const&, operation const&);
};
static_assert(!has_broadcast<broadcasts_no_groups>);

// Proofs name the type that they are for: those of another communicator are none.
struct takes_anothers_proofs : whole<archetype> {};
static_assert(!has_broadcast<takes_anothers_proofs>);

struct abort_may_throw : whole<abort_may_throw> {
    void abort();
};
static_assert(!has_abort<abort_may_throw> && has_bounded_wait<abort_may_throw>);
struct never_knows_what_is_outstanding : whole<never_knows_what_is_outstanding> {
  private:
    bool outstanding() const noexcept;
};
static_assert(!has_abort<never_knows_what_is_outstanding>);

struct waits_for_ever : whole<waits_for_ever> {
    void wait(host_runtime::event_ref);
};
static_assert(!has_bounded_wait<waits_for_ever> && has_abort<waits_for_ever>);
static_assert(!Communicator<waits_for_ever>);

static_assert(!Communicator<int> && !Communicator<void> && !Communicator<host_runtime>);

}  // namespace
