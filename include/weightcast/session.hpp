// SPDX-License-Identifier: Apache-2.0
#pragma once
// Door: workers, senders and what an update did.

#include <weightcast/session/rpc_worker.hpp>
#include <weightcast/session/update_result.hpp>
#include <weightcast/session/weight_sender.hpp>
#include <weightcast/session/weight_worker.hpp>
