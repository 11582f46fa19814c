// SPDX-License-Identifier: Apache-2.0
#pragma once
// The meeting point of a group's processes: server and client.

#include <weightcast/comm/rendezvous_client.hpp>
#include <weightcast/comm/rendezvous_server.hpp>
