// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/model is host-only: include it from a .cpp file"
#endif
// Whether an update would make an adapter count twice.

#include <cstddef>
#include <optional>
#include <string>

#include <weightcast/model/parameter.hpp>
#include <weightcast/model/target_id.hpp>

namespace weightcast::detail {

/// Which roles an update's tensors have.
struct roles_of_update {
    parameter const* merged = nullptr;  ///< the first one of that role
    parameter const* adapter = nullptr;

    roles_of_update(parameter const* parameters, std::size_t count) noexcept {
        for (std::size_t i = 0; i < count; ++i) {
            auto const& p = parameters[i];
            if (p.role == weight_role::merged && merged == nullptr) merged = &p;
            if (p.role == weight_role::adapter && adapter == nullptr) adapter = &p;
        }
    }
};

/// What is wrong with these roles in one update of that target, or nothing.
inline std::optional<std::string> role_objection(target_id const& id,
                                                 roles_of_update const& roles) {
    if (roles.merged != nullptr && roles.adapter != nullptr) {
        return "the update brings '" + roles.merged->name +
               "' with an adapter merged into it, and '" + roles.adapter->name +
               "' of an adapter: it would count twice";
    }
    if (id.is_adapter() && roles.merged != nullptr) {
        return "the update of target '" + to_string(id) + "' brings merged weights ('" +
               roles.merged->name + "')";
    }
    if (!id.is_adapter() && roles.adapter != nullptr) {
        return "the update of target '" + to_string(id) + "' brings '" + roles.adapter->name +
               "' of an adapter: send it to target 'adapter:ID'";
    }
    return std::nullopt;
}

}  // namespace weightcast::detail
