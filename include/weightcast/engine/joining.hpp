// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/engine is host-only: include it from a .cpp file"
#endif
// The usual factory of an engine's communicator: it joins where group_init says.

#include <concepts>
#include <utility>

#include <weightcast/comm/concepts.hpp>
#include <weightcast/comm/endpoint.hpp>
#include <weightcast/engine/engine_group.hpp>

namespace weightcast {

/// A communicator that ranks join by name, place and endpoint.
template <class C>
concept JoinableCommunicator = Communicator<C> && requires(typename C::options_type options) {
    options.name = std::string{};
    options.rank = 0;
    options.size = 1;
    options.at = endpoint{};
    { C::join(options) } -> std::same_as<C>;
};

/// `joining<gloo_communicator>()`: name, rank, size and endpoint come from `group_init`, all else from `base`.
/// The factory throws what C::join throws, and bad_argument for an endpoint that is none.
template <JoinableCommunicator C>
communicator_factory<C> joining(typename C::options_type base = {}) {
    return [base = std::move(base)](group_init const& init) {
        auto options = base;
        options.name = init.name;
        options.rank = init.rank;
        options.size = init.size;
        if (!init.at.empty()) options.at = endpoint{init.at};
        return C::join(options);
    };
}

}  // namespace weightcast
