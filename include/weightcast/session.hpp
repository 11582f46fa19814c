// SPDX-License-Identifier: Apache-2.0
#pragma once
// Door: workers, senders, fleets, and what an update did.

#include <weightcast/session/fleet.hpp>
#include <weightcast/session/fleet_member.hpp>
#include <weightcast/session/fleet_sender.hpp>
#include <weightcast/session/rpc_worker.hpp>
#include <weightcast/session/update_result.hpp>
#include <weightcast/session/weight_sender.hpp>
#include <weightcast/session/weight_worker.hpp>
