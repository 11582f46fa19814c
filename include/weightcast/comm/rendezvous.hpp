// SPDX-License-Identifier: Apache-2.0
#pragma once
// The meeting point of a group's processes: server and client, and the sockets and names that they use.

#include <weightcast/comm/listen_socket.hpp>
#include <weightcast/comm/rendezvous_client.hpp>
#include <weightcast/comm/rendezvous_server.hpp>
#include <weightcast/comm/resolve.hpp>
