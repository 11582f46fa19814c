// SPDX-License-Identifier: Apache-2.0
#pragma once
// Door: communicators and what forms them. The one over Gloo is a leaf of its own.

#include <weightcast/comm/communicator_core.hpp>
#include <weightcast/comm/communicator_operations.hpp>
#include <weightcast/comm/concepts.hpp>
#include <weightcast/comm/endpoint.hpp>
#include <weightcast/comm/group_registry.hpp>
#include <weightcast/comm/local_communicator.hpp>
#include <weightcast/comm/local_group.hpp>
#include <weightcast/comm/proofs.hpp>
#include <weightcast/comm/rank_layout.hpp>
#include <weightcast/comm/transfer_range.hpp>
