// SPDX-License-Identifier: Apache-2.0
#pragma once
// How to join a group over Gloo.

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include <weightcast/base/byte_count.hpp>
#include <weightcast/base/deadline.hpp>
#include <weightcast/base/error.hpp>
#include <weightcast/comm/endpoint.hpp>
#include <weightcast/comm/rendezvous_server.hpp>
#include <weightcast/tensor/device.hpp>

namespace weightcast {

/// Who joins what, where, and with which bounds. `contexts`, `piece` and `window` must be alike on all ranks.
struct gloo_options {
    std::string name = "weightcast";  ///< groups of different names live side by side
    int rank = 0;
    int size = 1;
    /// Where the ranks meet. Rank 0 listens there; the others connect, and may come first.
    endpoint at{};
    device where = cpu_device;
    /// Network interface, or an address of one, for the bytes. Empty: the one by which the rendezvous is reached.
    std::string interface{};
    /// Address by which others reach rank 0, where it listens on 0.0.0.0 or [::].
    std::string advertise{};
    std::chrono::milliseconds connect_deadline{30'000};
    /// How long leaving and aborting wait for what is under way.
    std::chrono::milliseconds grace{2'000};
    int contexts = 2;          ///< connections between two ranks
    byte_count piece = 4_MiB;  ///< what a connection carries at a time
    int window = 32;           ///< pieces in flight on a connection
    /// A server that outlives the group, on any rank or elsewhere: then nobody listens at `at`.
    /// Set on the rank that owns it; the others know only its address.
    std::shared_ptr<rendezvous_server> server{};
    /// False: the server is somebody else's, and rank 0 is a client like the others.
    bool hosts_server = true;
    /// Rank 0, once it listens: with port 0 in `at`, this says which port it is.
    std::function<void(endpoint const&)> on_listening{};
};

namespace detail {

inline bool is_any_address(std::string const& host) { return host == "0.0.0.0" || host == "::"; }

/// The rank that is asked to listen does so, and nobody else.
inline bool listens(gloo_options const& options) noexcept {
    return options.rank == 0 && options.hosts_server && options.server == nullptr;
}

/// @throws bad_argument  for what can never work; nothing was changed
inline void check_options(gloo_options const& options) {
    auto const require = [](bool holds, std::string const& sentence) {
        if (!holds) throw bad_argument{"gloo_options: " + sentence};
    };
    require(!options.name.empty(), "a group needs a name");
    require(options.size >= 1,
            "a group of " + std::to_string(options.size) + " ranks has nobody in it");
    require(options.rank >= 0 && options.rank < options.size,
            "rank " + std::to_string(options.rank) + " is no rank of a group of " +
                std::to_string(options.size));
    require(options.contexts >= 1 && options.contexts <= 16, "contexts must be from 1 to 16");
    require(options.window >= 1 && options.window <= 4096, "window must be from 1 to 4096");
    require(options.piece.value >= 1 && options.piece.value <= (std::uint64_t{1} << 30U),
            "piece must be from 1 byte to 1 GiB");
    if (options.size == 1) return;
    require(options.server != nullptr || !options.at.empty(),
            "`at`, where the ranks meet, is not set");
    require(options.rank == 0 || options.server != nullptr || options.at.port() != 0,
            "port 0 is for the rank that listens; rank " + std::to_string(options.rank) +
                " needs the port that rank 0 got");
    bool const any = options.server == nullptr && is_any_address(options.at.host());
    require(
        !any || !options.advertise.empty(),
        "advertise address needed: " + options.at.host() +
            " is where rank 0 listens, not an address that ranks can reach; set `advertise` to one that "
            "they can");
    require(!is_any_address(options.advertise),
            "advertise is " + options.advertise + ", which is not an address that ranks can reach");
}

/// Where the rendezvous is reached, given the endpoint that its server listens at.
inline endpoint reachable(endpoint const& listening, std::string const& advertise) {
    if (!is_any_address(listening.host())) return listening;
    return {advertise, listening.port()};
}

/// What all ranks must have alike, as text: the server compares, and messages show it.
inline std::string shared_settings(gloo_options const& options) {
    return "gloo: contexts " + std::to_string(options.contexts) + ", piece " +
           std::to_string(options.piece.value) + ", window " + std::to_string(options.window);
}

}  // namespace detail

}  // namespace weightcast
