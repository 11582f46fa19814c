// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/model is host-only: include it from a .cpp file"
#endif
// Where an update writes until it is committed: into what is served, or, as a policy says, elsewhere.

#include <cstddef>
#include <string_view>
#include <vector>

#include <weightcast/base/deadline.hpp>
#include <weightcast/model/concepts.hpp>
#include <weightcast/runtime/concepts.hpp>
#include <weightcast/tensor/tensor_view.hpp>

namespace weightcast {

/// Bytes go straight into the tensors that are served: the least memory. Readers are kept out while an update is open;
/// one that fails after its first byte marks the target *mixed* until a full update repairs it.
struct in_place {
    static constexpr std::string_view name = "in_place";
    template <DeviceRuntime R>
    class memory {
        using view = tensor_view<typename R::space>;

      public:
        static constexpr std::size_t sets = 1;
        void build(std::vector<view> const&, deadline) noexcept {}
        view in_set(view const& own, std::size_t) const noexcept { return own; }
        void carry(std::vector<view> const&, std::size_t, std::size_t, deadline) noexcept {}
    };
};

}  // namespace weightcast
