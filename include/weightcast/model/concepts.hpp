// SPDX-License-Identifier: Apache-2.0
#pragma once
// WeightSource (what is sent) and WeightTarget (what an engine holds), with their explanations.

#include <concepts>
#include <cstddef>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <weightcast/base/deadline.hpp>
#include <weightcast/model/update_coverage.hpp>
#include <weightcast/runtime/concepts.hpp>
#include <weightcast/tensor/concepts.hpp>
#include <weightcast/tensor/device.hpp>
#include <weightcast/tensor/tensor_view.hpp>

namespace weightcast {

template <class S>
concept has_parameters = requires(S const& source) {
    { source.parameters() } -> std::ranges::random_access_range;
    { source.parameters()[0].name } -> std::convertible_to<std::string_view>;
    { source.parameters()[0].type } -> std::convertible_to<dtype>;
    { source.parameters()[0].shape } -> std::ranges::sized_range;
};
/// Where a source's tensor lies, known ahead of the tensor itself.
struct tensor_placement {
    device where = cpu_device;
    bool contiguous = true;
    friend bool operator==(tensor_placement const&, tensor_placement const&) = default;
};
template <class S>
concept has_placements = requires(S const& source, std::size_t index) {
    { source.placement(index) } -> std::same_as<tensor_placement>;
};
template <class S, class R>
concept has_tensor_access = requires(S& source, std::size_t index, typename R::stream_ref stream) {
    { source.tensor(index, stream).name } -> std::convertible_to<std::string_view>;
    requires DeviceTensor<std::remove_cvref_t<decltype(source.tensor(index, stream).tensor)>>;
};
template <class S, class R>
concept has_tensor_release = requires(S& source, std::size_t index, typename R::stream_ref stream) {
    source.release(index, stream);
};

/// What a trainer sends: metadata ahead, tensors one at a time.
/// Semantics: `parameters()` describes what is *sent*, transforms included, and does not change during an
/// update. `placement(i)` says on which device tensor i lies, and whether it is contiguous: what can be sent
/// from where it lies is planned so. `tensor(i, stream)` returns name and tensor; what it enqueues to make the
/// tensor goes on that stream. The library asks for each index once an update, in the order of the indices, on
/// every trainer rank alike.
/// A source that has `release(i, stream)` makes tensors for the moment: each is released when its reader is
/// enqueued, and may be reused in the order of that stream; others stay unchanged until the update ends.
/// Laws: the tensor of index i has the name, dtype and shape of parameters()[i] and lies at placement(i).
/// Models: table_source, transformed_source; near-miss: a generator without metadata.
template <class S, class R>
concept WeightSource =
    DeviceRuntime<R> && has_parameters<S> && has_placements<S> && has_tensor_access<S, R>;

struct parameter;

template <class F>
concept has_outputs = requires(F& transform, parameter const& input) {
    { transform.outputs(input) } -> std::same_as<std::vector<parameter>>;
};
template <class F, class R>
concept has_apply =
    requires(F& transform, parameter const& input, const_tensor_view<typename R::space> const& from,
             std::size_t k, tensor_view<typename R::space> const& to,
             typename R::stream_ref stream) { transform.apply(from, input, k, to, stream); };

/// What makes the tensors that are sent of those that a trainer holds: one becomes n.
/// Semantics: `outputs(parameter)` declares them ahead, from metadata alone; `apply(input, parameter, k, output,
/// stream)` enqueues the work that writes output k on that stream, and returns.
/// Models: any cast; near-miss: a function that returns the tensor.
template <class F, class R>
concept WeightTransform = DeviceRuntime<R> && has_outputs<F> && has_apply<F, R>;

template <class T>
concept has_target_space = MemorySpace<typename T::space>;
template <class T>
concept has_update_scope = requires(T& target, typename T::id_type const& id) {
    target.begin_update(id);
    { target.mark_writing(id) } noexcept;
    { target.roll_back(id) } noexcept;
};
template <class T>
concept has_validation =
    requires(T& target, typename T::id_type const& id, typename T::parameter_type const* parameters,
             std::size_t count, update_coverage promised) {
        {
            target.objection(id, parameters, count, promised)
        } -> std::same_as<std::optional<std::string>>;
    };
template <class T>
concept has_destinations =
    requires(T& target, typename T::id_type const& id, std::string_view name) {
        { target.destination(id, name) } -> WritableDeviceTensor;
    };
/// Optional: parameters that a layout writes in parts. Nothing: `destination` has the whole tensor.
template <class T>
concept has_parts = requires(T& target, typename T::id_type const& id,
                             typename T::parameter_type const& announced) {
    { target.parts(id, announced).has_value() } -> std::same_as<bool>;
    { (*target.parts(id, announced))[0].own } -> WritableDeviceTensor;
    (*target.parts(id, announced))[0].region.first_element;
};
template <class T>
concept has_versions =
    requires(T& target, typename T::id_type const& id, typename T::version_type const& version) {
        { target.publish(id, version) } noexcept;
        { target.version(id) } -> std::convertible_to<typename T::version_type>;
    };

/// A target that keeps the metadata of each id's last update; used where a target has it.
/// Semantics: `forget` drops it on all ids, as a new group does.
template <class T>
concept has_remembered_metadata = requires(T& target, typename T::id_type const& id,
                                           std::vector<typename T::parameter_type> parameters) {
    target.remember(id, std::move(parameters));
    { target.forget() } noexcept;
};
/// A target that can name the parameters which an update does not bring; used where a target has it.
template <class T>
concept has_coverage = requires(T const& target, typename T::id_type const& id,
                                typename T::parameter_type const* parameters, std::size_t count) {
    { target.not_covered(id, parameters, count) } -> std::same_as<std::vector<std::string>>;
};

/// A target that can name parameters which it accepts without knowing them.
template <class T>
concept has_unknown_names =
    requires(T const& target, typename T::id_type const& id,
             typename T::parameter_type const* parameters, std::size_t count) {
        { target.unknown(id, parameters, count) } -> std::same_as<std::vector<std::string>>;
    };
/// A target where two announced parameters may mean one tensor. Semantics: their bytes are compared at the vote.
template <class T>
concept has_aliases = requires(T const& target, typename T::id_type const& id,
                               typename T::parameter_type const* parameters, std::size_t count) {
    {
        target.alias_pairs(id, parameters, count)
    } -> std::same_as<std::vector<std::pair<std::size_t, std::size_t>>>;
};
/// A target that makes something ready before it is written: what a policy keeps of the old version.
/// Semantics: after the preflight, before `mark_writing`; what it throws is this rank's no at the vote.
template <class T>
concept has_write_preparation =
    requires(T& target, typename T::id_type const& id, typename T::parameter_type const* parameters,
             std::size_t count) { target.prepare_writing(id, parameters, count); };
/// A target whose layers do something once they are complete. Semantics: each run names announced parameters; those
/// that are its inputs are held by the engine until it has run.
template <class T>
concept has_layer_runs = requires(T const& target, typename T::id_type const& id,
                                  typename T::parameter_type const* parameters, std::size_t count) {
    target.layer_runs(id, parameters, count).size();
    target.layer_runs(id, parameters, count)[0].inputs;
};
/// A target that is told what a failed update had begun to write, before `roll_back`.
template <class T>
concept has_written_names =
    requires(T& target, typename T::id_type const& id, std::vector<std::string> names) {
        { target.note_written(id, std::move(names)) } noexcept;
    };
/// A target that may need an open update to end: its memory goes away. Asked between operations.
template <class T>
concept has_stop_request = requires(T const& target, typename T::id_type const& id) {
    { target.stop_requested(id) } noexcept -> std::same_as<bool>;
};
/// A target whose `publish` does what may fail: it is published, but the caller has to hear of it.
template <class T>
concept has_publish_failure = requires(T const& target, typename T::id_type const& id) {
    { target.publish_failure(id) } -> std::same_as<std::optional<std::string>>;
};

/// What an engine holds, and how an update of it begins and ends.
/// Semantics: `objection` checks all metadata and writes nothing; `mark_writing` is called before the first
/// byte is written; `publish` after every rank voted yes; `roll_back` does what the commit policy promises.
/// A target that also remembers metadata, or tells coverage, is asked for it.
/// Models: parameter_tables; near-miss: a target whose publish may throw.
template <class T>
concept WeightTarget = has_target_space<T> && has_update_scope<T> && has_validation<T> &&
                       has_destinations<T> && has_versions<T>;

/// What a commit policy keeps for a target.
/// Semantics: `sets` sets of memory of the same tensors; set 0 is what was registered. `build(tensors, deadline)` makes the others
/// before an update; `in_set(tensor, k)` is the tensor in set k; `carry(tensors, from, to, deadline)` copies what an
/// update will not write, and waits for it.
template <class M, class R>
concept PolicyMemory =
    DeviceRuntime<R> &&
    requires(M& memory, M const& held, std::vector<tensor_view<typename R::space>> const& tensors,
             std::size_t set, deadline until) {
        requires M::sets == 1 || M::sets == 2;
        memory.build(tensors, until);
        { held.in_set(tensors[0], set) } -> std::same_as<tensor_view<typename R::space>>;
        memory.carry(tensors, set, set, until);
    };
/// Where an update writes until it is committed. Models: in_place, shadow; near-miss: a policy with three sets.
template <class P, class R>
concept CommitPolicy = PolicyMemory<typename P::template memory<R>, R> && requires {
    { P::name } -> std::convertible_to<std::string_view>;
};

/// Says in full sentences why S is no WeightSource for runtime R; true when it is one.
template <class S, class R>
consteval bool explain_weight_source() {
    static_assert(DeviceRuntime<R>, "WeightSource: R is no DeviceRuntime");
    static_assert(
        has_parameters<S>,
        "WeightSource: the source needs parameters(), a random access range of {name, type, shape}");
    static_assert(has_placements<S>,
                  "WeightSource: the source needs placement(index), returning tensor_placement");
    static_assert(has_tensor_access<S, R>,
                  "WeightSource: the source needs tensor(index, stream), returning {name, tensor}");
    return WeightSource<S, R>;
}

/// Says in full sentences why F is no WeightTransform for runtime R; true when it is one.
template <class F, class R>
consteval bool explain_weight_transform() {
    static_assert(DeviceRuntime<R>, "WeightTransform: R is no DeviceRuntime");
    static_assert(
        has_outputs<F>,
        "WeightTransform: the transform needs outputs(parameter), returning std::vector<parameter>");
    static_assert(
        has_apply<F, R>,
        "WeightTransform: the transform needs apply(input, parameter, k, output, stream)");
    return WeightTransform<F, R>;
}

/// Says in full sentences why T is no WeightTarget; true when it is one.
template <class T>
consteval bool explain_weight_target() {
    static_assert(has_target_space<T>,
                  "WeightTarget: the target needs `using space`, a memory space");
    static_assert(
        has_update_scope<T>,
        "WeightTarget: the target needs begin_update(id), noexcept mark_writing(id) and noexcept "
        "roll_back(id)");
    static_assert(
        has_validation<T>,
        "WeightTarget: the target needs objection(id, parameters, count, update_coverage), an optional "
        "sentence");
    static_assert(
        has_destinations<T>,
        "WeightTarget: the target needs destination(id, name), a tensor that may be written");
    static_assert(has_versions<T>,
                  "WeightTarget: the target needs noexcept publish(id, version), and version(id)");
    return WeightTarget<T>;
}

/// Says in full sentences why P is no CommitPolicy over runtime R; true when it is one.
template <class P, class R>
consteval bool explain_commit_policy() {
    static_assert(DeviceRuntime<R>, "CommitPolicy: R is no DeviceRuntime");
    static_assert(
        requires { typename P::template memory<R>; },
        "CommitPolicy: the policy needs a template memory<R>, what it keeps for a target");
    static_assert(
        requires {
            { P::name } -> std::convertible_to<std::string_view>;
        }, "CommitPolicy: the policy needs a constant `name`");
    if constexpr (requires { typename P::template memory<R>; }) {
        static_assert(
            PolicyMemory<typename P::template memory<R>, R>,
            "CommitPolicy: memory<R> needs a constant `sets` of 1 or 2, build(tensors, deadline), "
            "in_set(tensor, set), and carry(tensors, from, to, deadline)");
    }
    return CommitPolicy<P, R>;
}

}  // namespace weightcast
