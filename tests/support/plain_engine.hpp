// SPDX-License-Identifier: Apache-2.0
// The least that the engine concepts ask for: what a user's own engine looks like before it does anything.
#pragma once

#include <weightcast/model/target_id.hpp>
#include <weightcast/model/weight_version.hpp>

namespace weightcast::test {

struct plain_init {};
struct plain_update {};

/// A receiving engine that does nothing.
struct plain_engine {
    using init_type = plain_init;
    using update_type = plain_update;
    using target_type = target_id;
    void init(plain_init const&) {}
    void start(target_id const&) {}
    void receive(plain_update const&) {}
    void prepare() {}
    void commit() noexcept {}
    void rollback() noexcept {}
    void shutdown() {}
};

/// A sending engine that does nothing with any source.
struct plain_trainer {
    using init_type = plain_init;
    using target_type = target_id;
    using version_type = weight_version;
    void init(plain_init const&) {}
    template <class Source>
    void announce(Source&, weight_version const&, target_id const&) {}
    template <class Source>
    void send(Source&) {}
    void vote() {}
    weight_version acknowledged() const { return {}; }
    void shutdown() {}
};

}  // namespace weightcast::test
