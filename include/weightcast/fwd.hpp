// SPDX-License-Identifier: Apache-2.0
#pragma once
// Names of the library's types, for headers that only mention them.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <weightcast/comm/proofs.hpp>
#include <weightcast/concepts.hpp>
#include <weightcast/tensor/space.hpp>

namespace weightcast {

// base
class deadline;
class error;
class operation_label;
enum class phase : std::uint8_t;
struct byte_count;
struct failure_facts;
struct op_limits;
struct operation;

// tensor
class extents;
class managed_dlpack;
enum class device_kind : std::uint8_t;
enum class dtype : std::uint8_t;
struct device;
struct tensor_layout;
template <MemorySpace Space, class Byte>
    requires std::same_as<std::remove_const_t<Byte>, std::byte>
class basic_tensor_view;

// runtime
class host_event_ref;
class host_stream_ref;
struct host_runtime;
template <DeviceRuntime R>
class device_buffer;
template <DeviceRuntime R>
class device_guard;
template <DeviceRuntime R>
class event;
template <DeviceRuntime R>
class stream;

// comm
class endpoint;
class local_communicator;
class local_group;
struct local_group_options;

// align: alignment_scope and the proofs are declared by comm/proofs.hpp
struct already_ready;
struct produced_anywhere;
template <Communicator C>
class pending;
template <class StreamRef>
struct produced_on;

// model
class target_id;
struct parameter;
struct weight_version;
template <DeviceRuntime R>
class parameter_table;
template <DeviceRuntime R, CommitPolicy<R> Policy>
class parameter_tables;
template <MemorySpace Space>
class table_source;

// plan
class packing_plan;
struct announcement;
struct packing_options;

// engine
class any_engine;
class any_init;
class any_update;
class engine_registry;
struct dense_update;
struct group_init;
struct transfer_limits;
struct transfer_settings;
template <Communicator C, WeightTarget Target, ProgressSink Progress>
    requires std::same_as<typename Target::space, typename C::runtime::space>
class dense_engine;
template <Communicator C, ProgressSink Progress>
class dense_trainer;

// session
enum class rank_status : std::uint8_t;
enum class update_status : std::uint8_t;
struct group_result;
struct rpc_settings;
struct update_options;
struct update_report;
struct update_result;
template <AnyTransferEngine E>
    requires std::copyable<typename E::target_type> &&
             std::equality_comparable<typename E::target_type> &&
             std::copy_constructible<typename E::update_type>
class rpc_worker;
template <AnyTransferEngine E>
class weight_update;
template <AnyTransferEngine E>
class weight_worker;
template <class E>
class weight_sender;

}  // namespace weightcast
