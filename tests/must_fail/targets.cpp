// SPDX-License-Identifier: Apache-2.0
// What an engine holds: policies are types, snapshots are held by one reader and read only, layers write their outputs.
//
// case 1: CommitPolicy
// case 2: memory<R> needs a constant `sets` of 1 or 2
// case 3: the policy needs a constant `name`
// case 4 [gcc]: use of deleted function|is implicitly deleted
// case 4 [clang]: deleted copy constructor|call to (implicitly-)?deleted
// case 5: WritableDeviceTensor
// case 6 [gcc]: conversion from .* to non-scalar type|cannot convert|could not convert
// case 6 [clang]: no viable conversion
// case 7: the target needs objection\(id, parameters, count, update_coverage\)

#include <optional>
#include <string>

#include <weightcast/model/parameter_tables.hpp>
#include <weightcast/model/shadow.hpp>

using namespace weightcast;

void positive(parameter_tables<host_runtime, shadow>& tables, tensor_view<> own) {
    tables.main().add("w", own);
    auto snapshot = tables.snapshot(deadline::after(std::chrono::seconds{1}));
    auto const moved = std::move(snapshot);
    const_tensor_view<> const read = moved.tensor("w");
    static_cast<void>(read);
    tables.main().add_layer(
        {.name = "layers.0",
         .after = {"w"},
         .run = [](layer_tensors<host_runtime> const& t, host_runtime::stream_ref) {
             tensor_view<> const written = t.output("w");
             static_cast<void>(written);
         }});
    static_assert(explain_commit_policy<shadow, host_runtime>());
    static_assert(explain_weight_target<parameter_tables<>>());
}

#if WEIGHTCAST_CASE == 1
parameter_tables<host_runtime, int> tables;
#elif WEIGHTCAST_CASE == 2
struct three_sets {
    static constexpr char const* name = "three";
    template <DeviceRuntime R>
    struct memory : in_place::memory<R> {
        static constexpr std::size_t sets = 3;
    };
};
static_assert(explain_commit_policy<three_sets, host_runtime>());
#elif WEIGHTCAST_CASE == 3
struct nameless {
    template <DeviceRuntime R>
    using memory = in_place::memory<R>;
};
static_assert(explain_commit_policy<nameless, host_runtime>());
#elif WEIGHTCAST_CASE == 4
void negative(parameter_tables<>& tables) {
    auto const snapshot = tables.snapshot(deadline::after(std::chrono::seconds{1}));
    auto const copy = snapshot;
}
#elif WEIGHTCAST_CASE == 5
void negative(parameter_tables<>& tables) {
    auto const snapshot = tables.snapshot(deadline::after(std::chrono::seconds{1}));
    tables.main().add("copy", snapshot.tensor("w"));
}
#elif WEIGHTCAST_CASE == 6
void negative(layer_tensors<host_runtime> const& t) { tensor_view<> const written = t.input("w"); }
#elif WEIGHTCAST_CASE == 7
struct own_target : parameter_tables<> {
    std::optional<std::string> objection(target_id const&, parameter const*, std::size_t);
};
static_assert(explain_weight_target<own_target>());
#endif
