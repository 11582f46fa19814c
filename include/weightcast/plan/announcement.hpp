// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/plan is host-only: include it from a .cpp file"
#endif
// What a sender tells before any payload: all that a receiver needs to refuse, or to plan alike.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <weightcast/base/error.hpp>
#include <weightcast/model/parameter.hpp>
#include <weightcast/model/target_id.hpp>
#include <weightcast/model/update_coverage.hpp>
#include <weightcast/model/weight_version.hpp>
#include <weightcast/plan/detail/wire.hpp>
#include <weightcast/plan/packing_options.hpp>
#include <weightcast/plan/packing_plan.hpp>
#include <weightcast/plan/planned_tensor.hpp>

namespace weightcast {

/// `update`: payload follows. `failed`: the trainer failed first; nothing follows.
enum class announcement_kind : std::uint8_t { update, failed };

/// The preflight message of one update. Cost on the wire: about 40 bytes and the name a parameter.
struct announcement {
    announcement_kind kind = announcement_kind::update;
    std::uint64_t epoch = 0;  ///< counts the group's updates, so that a stale message shows
    target_id target{};
    weight_version version{};
    packing_options options{};
    update_coverage coverage = update_coverage::parameters;  ///< what the update promises to bring
    bool verify = false;                                     ///< digests are compared at the vote
    bool shared =
        false;  ///< the sender feeds several groups: it settles what is packed for all of them
    std::vector<parameter> parameters{};
    std::vector<int> roots{};            ///< a rank a parameter
    std::vector<std::uint8_t> packed{};  ///< 1: has to be packed, whatever its size
    std::uint64_t plan_digest = 0;       ///< of the plan over all this
    std::string reason{};                ///< kind failed: why
    friend bool operator==(announcement const&, announcement const&) = default;
};

/// The list that a plan is made of; refers to the announcement's names.
inline std::vector<planned_tensor> planned_tensors(announcement const& a) {
    std::vector<planned_tensor> tensors;
    tensors.reserve(a.parameters.size());
    for (std::size_t i = 0; i < a.parameters.size(); ++i) {
        auto const& p = a.parameters[i];
        tensors.push_back({p.name, p.type, p.shape, p.bytes(), a.packed[i] == 0, a.roots[i]});
    }
    return tensors;
}

namespace detail {
inline constexpr std::uint32_t announcement_magic = 0x32414357;  // "WCA2"
inline constexpr std::uint64_t announcement_limit = std::uint64_t{256} << 20U;

inline void put_options(wire_writer& out, packing_options const& o) {
    out.put(static_cast<std::uint8_t>(o.layout));
    out.put(o.chunk_bytes);
    out.put(o.alignment);
    out.put(o.direct_from);
    out.put(static_cast<std::uint32_t>(o.ring));
}
inline packing_options take_options(wire_reader& in) {
    packing_options o;
    auto const layout = in.take<std::uint8_t>("layout");
    if (layout > 1) wire_reader::refuse("layout", "is no known layout");
    o.layout = static_cast<packing_layout>(layout);
    o.chunk_bytes = in.take<std::uint64_t>("chunk_bytes");
    o.alignment = in.take<std::uint64_t>("alignment");
    o.direct_from = in.take<std::uint64_t>("direct_from");
    o.ring = in.take<std::uint32_t>("ring");
    return o;
}
inline void put_parameter(wire_writer& out, announcement const& a, std::size_t i) {
    auto const& p = a.parameters[i];
    out.put_text(p.name);
    out.put(static_cast<std::uint8_t>(p.type));
    out.put(static_cast<std::uint8_t>(p.role));
    out.put(static_cast<std::int32_t>(a.roots[i]));
    out.put(a.packed[i]);
    out.put(static_cast<std::uint8_t>(p.shape.size()));
    for (auto const e : p.shape) out.put(e);
}
inline void take_parameter(wire_reader& in, announcement& a) {
    parameter p;
    p.name = in.take_text("name");
    auto const type = in.take<std::uint8_t>("dtype");
    if (type >= dtype_count) wire_reader::refuse("dtype", "is no known dtype");
    p.type = static_cast<dtype>(type);
    auto const role = in.take<std::uint8_t>("role");
    if (role > static_cast<std::uint8_t>(weight_role::adapter))
        wire_reader::refuse("role", "is no known role");
    p.role = static_cast<weight_role>(role);
    a.roots.push_back(in.take<std::int32_t>("root"));
    a.packed.push_back(in.take<std::uint8_t>("packed"));
    auto const rank = in.take<std::uint8_t>("dimensions");
    for (std::uint8_t d = 0; d < rank; ++d) p.shape.push_back(in.take<std::int64_t>("extent"));
    (void)p.bytes();  // throws for an extent that is negative or too large
    a.parameters.push_back(std::move(p));
}
}  // namespace detail

/// Whether an update delivers any byte; one that does not updates nothing.
/// @pre  the parameters are planned: their bytes fit in 64 bits
inline bool delivers_bytes(announcement const& a) {
    return std::ranges::any_of(a.parameters, [](parameter const& p) { return p.bytes() != 0; });
}

/// The message as bytes.
inline std::vector<std::byte> encode(announcement const& a) {
    detail::wire_writer out;
    out.put(detail::announcement_magic);
    out.put(static_cast<std::uint8_t>(a.kind));
    out.put(a.epoch);
    out.put_text(to_string(a.target));
    out.put(a.version.number);
    out.put(static_cast<std::uint8_t>(a.version.label.has_value()));
    if (a.version.label) out.put_text(*a.version.label);
    detail::put_options(out, a.options);
    out.put(static_cast<std::uint8_t>(a.coverage));
    out.put(static_cast<std::uint8_t>(a.verify));
    out.put(static_cast<std::uint8_t>(a.shared));
    out.put(a.plan_digest);
    out.put_text(a.reason);
    out.put(static_cast<std::uint32_t>(a.parameters.size()));
    for (std::size_t i = 0; i < a.parameters.size(); ++i) detail::put_parameter(out, a, i);
    return std::move(out).take();
}

/// Reads a message from outside.
/// @throws bad_input  when it is cut short, too long, or holds a value out of range
inline announcement decode_announcement(std::span<std::byte const> bytes) {
    detail::wire_reader in{bytes};
    if (in.take<std::uint32_t>("magic") != detail::announcement_magic) {
        detail::wire_reader::refuse("magic", "is not an announcement's");
    }
    announcement a;
    auto const kind = in.take<std::uint8_t>("kind");
    if (kind > 1) detail::wire_reader::refuse("kind", "is no known kind");
    a.kind = static_cast<announcement_kind>(kind);
    a.epoch = in.take<std::uint64_t>("epoch");
    a.target = target_id::parse(in.take_text("target"));
    a.version.number = in.take<std::uint64_t>("version");
    if (in.take<std::uint8_t>("has_label") != 0) a.version.label = in.take_text("label");
    a.options = detail::take_options(in);
    auto const coverage = in.take<std::uint8_t>("coverage");
    if (coverage > static_cast<std::uint8_t>(update_coverage::members))
        detail::wire_reader::refuse("coverage", "is no known coverage");
    a.coverage = static_cast<update_coverage>(coverage);
    a.verify = in.take<std::uint8_t>("verify") != 0;
    a.shared = in.take<std::uint8_t>("shared") != 0;
    a.plan_digest = in.take<std::uint64_t>("plan_digest");
    a.reason = in.take_text("reason");
    constexpr std::size_t smallest_parameter = 12;
    auto const count = in.take_count(smallest_parameter, "parameters");
    a.parameters.reserve(count);
    for (std::size_t i = 0; i < count; ++i) detail::take_parameter(in, a);
    if (!in.empty()) detail::wire_reader::refuse("end", "is followed by more bytes");
    return a;
}

}  // namespace weightcast
