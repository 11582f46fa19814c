// SPDX-License-Identifier: Apache-2.0
// What is sent, what is held, and what is made in between: the least that models each, and near-misses.

#include <array>
#include <cstddef>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <support/archetypes.hpp>
#include <weightcast/model.hpp>
#include <weightcast/runtime/host_runtime.hpp>

namespace {

using namespace weightcast;
using runtime = test::host_archetype;
using stream_ref = runtime::stream_ref;

// --- WeightSource ---

struct source_archetype {
    struct described {
        char const* name;
        dtype type;
        std::array<long, 2> shape;
    };
    struct handed_out {
        std::string_view name;
        tensor_view<> tensor;
    };
    source_archetype(source_archetype const&) = delete;
    described const (&parameters() const)[3];
    tensor_placement placement(std::size_t) const;
    handed_out tensor(std::size_t, stream_ref);
};
static_assert(explain_weight_source<source_archetype, runtime>());
static_assert(!has_tensor_release<source_archetype, runtime>);

struct without_parameters : source_archetype {
    void parameters() const = delete;
};
struct listed_parameters : source_archetype {
    std::list<described> const& parameters() const;
};
struct unnamed_parameters : source_archetype {
    struct described {
        dtype type;
        extents shape;
    };
    std::vector<described> parameters() const;
};
struct parameters_of_sizes : source_archetype {
    struct described {
        std::string name;
        dtype type;
        std::size_t shape;
    };
    std::vector<described> parameters() const;
};
struct without_placement : source_archetype {
    void placement() const = delete;
};
struct placement_is_a_device : source_archetype {
    device placement(std::size_t) const;
};
struct without_tensor : source_archetype {
    void tensor() = delete;
};
struct tensor_without_stream : source_archetype {
    handed_out tensor(std::size_t);
};
struct tensor_without_name : source_archetype {
    tensor_view<> tensor(std::size_t, stream_ref);
};
struct tensor_is_a_pointer : source_archetype {
    struct handed_out {
        std::string_view name;
        void* tensor;
    };
    handed_out tensor(std::size_t, stream_ref);
};
static_assert(!has_parameters<without_parameters> && !has_parameters<listed_parameters>);
static_assert(!has_parameters<unnamed_parameters> && !has_parameters<parameters_of_sizes>);
static_assert(!has_placements<without_placement> && !has_placements<placement_is_a_device>);
static_assert(!has_tensor_access<without_tensor, runtime> &&
              !has_tensor_access<tensor_without_stream, runtime>);
static_assert(!has_tensor_access<tensor_without_name, runtime> &&
              !has_tensor_access<tensor_is_a_pointer, runtime>);
static_assert(has_placements<without_parameters> && !WeightSource<without_parameters, runtime>);
static_assert(has_parameters<without_placement> && !WeightSource<without_placement, runtime>);
static_assert(has_parameters<without_tensor> && !WeightSource<without_tensor, runtime>);
static_assert(!WeightSource<source_archetype, int>);

struct momentary : source_archetype {
    void release(std::size_t, stream_ref);
};
static_assert(has_tensor_release<momentary, runtime> && WeightSource<momentary, runtime>);

static_assert(explain_weight_source<table_source<>, runtime>());
static_assert(explain_weight_source<table_source<>, host_runtime>());
static_assert(explain_weight_source<table_source<cuda_space>, test::cuda_archetype>());
static_assert(!WeightSource<std::map<std::string, tensor_view<>>, runtime>);

// --- WeightTransform ---

struct transform_archetype {
    transform_archetype(transform_archetype const&) = delete;
    std::vector<parameter> outputs(parameter const&);
    void apply(const_tensor_view<> const&, parameter const&, std::size_t, tensor_view<> const&,
               stream_ref);
};
struct without_outputs : transform_archetype {
    void outputs() = delete;
};
struct one_output : transform_archetype {
    parameter outputs(parameter const&);
};
struct returns_the_tensor : transform_archetype {
    tensor_view<> apply(const_tensor_view<> const&);
};
struct apply_without_stream : transform_archetype {
    void apply(const_tensor_view<> const&, parameter const&, std::size_t, tensor_view<> const&);
};
static_assert(explain_weight_transform<transform_archetype, runtime>());
static_assert(!has_outputs<without_outputs> && !has_outputs<one_output>);
static_assert(!has_apply<returns_the_tensor, runtime> && !has_apply<apply_without_stream, runtime>);
static_assert(has_apply<one_output, runtime> && !WeightTransform<one_output, runtime>);
static_assert(has_outputs<returns_the_tensor> && !WeightTransform<returns_the_tensor, runtime>);
static_assert(!WeightTransform<transform_archetype, test::cuda_archetype>);
static_assert(!WeightTransform<transform_archetype, int>);

struct copyable_transform {
    std::vector<parameter> outputs(parameter const&) const;
    void apply(const_tensor_view<> const&, parameter const&, std::size_t, tensor_view<> const&,
               host_stream_ref) const;
};
static_assert(
    explain_weight_source<transformed_source<host_runtime, table_source<>, copyable_transform>,
                          host_runtime>());
static_assert(has_tensor_release<
              transformed_source<host_runtime, table_source<>, copyable_transform>, host_runtime>);

// --- WeightTarget ---

struct target_archetype {
    struct id_type {};
    struct version_type {};
    struct parameter_type {};
    using space = host_space;
    target_archetype(target_archetype const&) = delete;
    void begin_update(id_type const&);
    void mark_writing(id_type const&) noexcept;
    void roll_back(id_type const&) noexcept;
    std::optional<std::string> objection(id_type const&, parameter_type const*, std::size_t,
                                         update_coverage);
    tensor_view<> destination(id_type const&, std::string_view);
    void publish(id_type const&, version_type const&) noexcept;
    version_type version(id_type const&);
};
static_assert(explain_weight_target<target_archetype>());
static_assert(!has_remembered_metadata<target_archetype> && !has_coverage<target_archetype>);

struct without_space : target_archetype {
  private:
    using space = host_space;
};
struct begins_nothing : target_archetype {
    void begin_update() = delete;
};
struct mark_may_throw : target_archetype {
    void mark_writing(id_type const&);
};
struct rollback_may_throw : target_archetype {
    void roll_back(id_type const&);
};
struct objects_by_flag : target_archetype {
    bool objection(id_type const&, parameter_type const*, std::size_t, update_coverage);
};
struct read_only : target_archetype {
    const_tensor_view<> destination(id_type const&, std::string_view);
};
struct publish_may_throw : target_archetype {
    void publish(id_type const&, version_type const&);
};
struct without_version : target_archetype {
    void version() = delete;
};
static_assert(!has_target_space<without_space>);
static_assert(!has_update_scope<begins_nothing> && !has_update_scope<mark_may_throw>);
static_assert(!has_update_scope<rollback_may_throw>);
static_assert(!has_validation<objects_by_flag>);
static_assert(!has_destinations<read_only>);
static_assert(!has_versions<publish_may_throw> && !has_versions<without_version>);
static_assert(has_versions<without_space> && !WeightTarget<without_space>);
static_assert(has_validation<mark_may_throw> && !WeightTarget<mark_may_throw>);
static_assert(has_update_scope<objects_by_flag> && !WeightTarget<objects_by_flag>);
static_assert(has_validation<read_only> && !WeightTarget<read_only>);
static_assert(has_validation<publish_may_throw> && !WeightTarget<publish_may_throw>);
static_assert(!WeightTarget<parameter_table<>>);

static_assert(explain_weight_target<parameter_tables<>>());
static_assert(explain_weight_target<parameter_tables<test::cuda_archetype>>());

struct remembers : target_archetype {
    void remember(id_type const&, std::vector<parameter_type>);
    void forget() noexcept;
};
struct forget_may_throw : target_archetype {
    void remember(id_type const&, std::vector<parameter_type>);
    void forget();
};
struct covers : target_archetype {
    std::vector<std::string> not_covered(id_type const&, parameter_type const*, std::size_t) const;
};
struct covers_by_count : target_archetype {
    std::size_t not_covered(id_type const&, parameter_type const*, std::size_t) const;
};
static_assert(has_remembered_metadata<remembers> && !has_remembered_metadata<forget_may_throw>);
static_assert(has_coverage<covers> && !has_coverage<covers_by_count>);

// --- what a target may have beyond that ---
struct names_strangers : target_archetype {
    std::vector<std::string> unknown(id_type const&, parameter_type const*, std::size_t) const;
};
struct counts_strangers : target_archetype {
    std::size_t unknown(id_type const&, parameter_type const*, std::size_t) const;
};
static_assert(has_unknown_names<names_strangers> && !has_unknown_names<counts_strangers>);
struct pairs : target_archetype {
    std::vector<std::pair<std::size_t, std::size_t>> alias_pairs(id_type const&,
                                                                 parameter_type const*,
                                                                 std::size_t) const;
};
static_assert(has_aliases<pairs> && !has_aliases<target_archetype>);
struct prepares : target_archetype {
    void prepare_writing(id_type const&, parameter_type const*, std::size_t);
};
static_assert(has_write_preparation<prepares> && !has_write_preparation<target_archetype>);
struct notes : target_archetype {
    void note_written(id_type const&, std::vector<std::string>) noexcept;
};
struct note_may_throw : target_archetype {
    void note_written(id_type const&, std::vector<std::string>);
};
static_assert(has_written_names<notes> && !has_written_names<note_may_throw>);
struct stops : target_archetype {
    bool stop_requested(id_type const&) const noexcept;
};
struct stop_may_throw : target_archetype {
    bool stop_requested(id_type const&) const;
};
static_assert(has_stop_request<stops> && !has_stop_request<stop_may_throw>);
struct tells_failure : target_archetype {
    std::optional<std::string> publish_failure(id_type const&) const;
};
static_assert(has_publish_failure<tells_failure> && !has_publish_failure<target_archetype>);
static_assert(has_layer_runs<parameter_tables<>> && !has_layer_runs<target_archetype>);
static_assert(has_unknown_names<parameter_tables<>> && has_aliases<parameter_tables<>> &&
              has_write_preparation<parameter_tables<>> && has_written_names<parameter_tables<>> &&
              has_stop_request<parameter_tables<>> && has_publish_failure<parameter_tables<>>);

// --- CommitPolicy ---
static_assert(explain_commit_policy<in_place, host_runtime>());
static_assert(explain_commit_policy<shadow, host_runtime>());
static_assert(explain_commit_policy<in_place, test::cuda_archetype>());
struct three_sets {
    [[maybe_unused]] static constexpr std::string_view name = "three";
    template <DeviceRuntime R>
    struct memory : in_place::memory<R> {
        static constexpr std::size_t sets = 3;
    };
};
struct without_name {
    template <DeviceRuntime R>
    using memory = in_place::memory<R>;
};
struct copies_nothing {
    [[maybe_unused]] static constexpr std::string_view name = "none";
    template <DeviceRuntime R>
    struct memory : in_place::memory<R> {
        void carry() = delete;
    };
};
static_assert(!CommitPolicy<three_sets, host_runtime> && !CommitPolicy<without_name, host_runtime>);
static_assert(!CommitPolicy<copies_nothing, host_runtime> && !CommitPolicy<int, host_runtime>);
static_assert(WeightTarget<parameter_tables<host_runtime, shadow>>);

}  // namespace
