// SPDX-License-Identifier: Apache-2.0
// A fleet of engines over Gloo: ranks are threads of one process, which meet on a port of this machine.
#pragma once

#include <functional>
#include <memory>

#include <comm/gloo_makers.hpp>
#include <support/test_model.hpp>
#include <weightcast/comm/gloo_communicator.hpp>

namespace weightcast::test {

struct gloo_ranks {
    using communicator = gloo_communicator;

    static std::function<communicator_factory<communicator>(int rank)> factories(int size,
                                                                                 device where) {
        auto const where_they_meet = std::make_shared<meeting_point>();
        auto const name = fresh_group_name();
        return [=](int rank) -> communicator_factory<communicator> {
            return [=](group_init const&) {
                auto options = options_for({.size = size, .where = {where}}, name, rank);
                options.on_listening = [=](endpoint const& bound) { where_they_meet->tell(bound); };
                options.at = rank == 0 ? endpoint{"127.0.0.1:0"} : where_they_meet->get();
                return gloo_communicator::join(options);
            };
        };
    }
};
using gloo_fleet = fleet_over<gloo_ranks>;

}  // namespace weightcast::test
