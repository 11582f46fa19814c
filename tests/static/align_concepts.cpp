// SPDX-License-Identifier: Apache-2.0
// Which tensors a communicator sends and receives, and how a sender says when they are ready.

#include <string>
#include <vector>

#include <support/archetypes.hpp>
#include <weightcast/align/concepts.hpp>
#include <weightcast/align/source_order.hpp>
#include <weightcast/comm/local_communicator.hpp>
#include <weightcast/tensor/range_tensor.hpp>
#include <weightcast/tensor/tensor_traits.hpp>

namespace {

using namespace weightcast;
using host_group = test::communicator_archetype<test::host_archetype>;
using cuda_group = test::communicator_archetype<test::cuda_archetype>;
static_assert(Communicator<host_group> && Communicator<cuda_group>);

template <class Space>
using view = tensor_view<Space>;
template <class Space>
using const_view = const_tensor_view<Space>;

// The atoms.
static_assert(in_communicators_space<view<cuda_space>, cuda_group>);
static_assert(!in_communicators_space<view<host_space>, cuda_group>);
static_assert(!in_communicators_space<view<dynamic_space>, host_group>);
static_assert(in_host_space<std::vector<float>> && !in_host_space<view<cuda_space>>);
static_assert(in_dynamic_space<const_view<dynamic_space>> && !in_dynamic_space<view<host_space>>);

// Sending: one's own space, host memory (staged), or a space known at run time.
static_assert(explain_broadcastable<view<host_space>, host_group>());
static_assert(explain_broadcastable<const_view<host_space>, host_group>());
static_assert(explain_broadcastable<view<cuda_space>, cuda_group>());
static_assert(explain_broadcastable<view<host_space>, cuda_group>());
static_assert(explain_broadcastable<view<dynamic_space>, host_group>());
static_assert(explain_broadcastable<const_view<dynamic_space>, cuda_group>());
static_assert(explain_broadcastable<std::vector<float>, local_communicator>());
static_assert(!Broadcastable<view<cuda_space>, host_group>);
static_assert(!Broadcastable<const_view<cuda_space>, local_communicator>);
static_assert(!Broadcastable<std::string, host_group>);
static_assert(!Broadcastable<float*, host_group>);
static_assert(!Broadcastable<view<host_space>, int>);

// Receiving: one's own space, or one known at run time; never staged, never into const.
static_assert(explain_receivable_into<view<host_space>, host_group>());
static_assert(explain_receivable_into<view<cuda_space>, cuda_group>());
static_assert(explain_receivable_into<view<dynamic_space>, cuda_group>());
static_assert(explain_receivable_into<std::vector<float>, local_communicator>());
static_assert(!ReceivableInto<view<host_space>, cuda_group>);
static_assert(!ReceivableInto<view<cuda_space>, host_group>);
static_assert(!ReceivableInto<const_view<host_space>, host_group>);
static_assert(!ReceivableInto<std::vector<float> const, host_group>);
static_assert(!ReceivableInto<view<host_space>, int>);

// When the sources are ready.
struct other_stream {};
static_assert(explain_source_order<produced_anywhere, host_runtime>());
static_assert(explain_source_order<already_ready, host_runtime>());
static_assert(explain_source_order<produced_on<host_stream_ref>, host_runtime>());
static_assert(!SourceOrder<host_stream_ref, host_runtime>);
static_assert(!SourceOrder<produced_on<other_stream>, host_runtime>);
static_assert(!SourceOrder<deadline, host_runtime>);
static_assert(!SourceOrder<produced_on<host_stream_ref>, test::host_archetype>);

}  // namespace
