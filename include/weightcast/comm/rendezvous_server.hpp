// SPDX-License-Identifier: Apache-2.0
#pragma once
// The meeting point of groups: keys and values, joining, barriers, and word of who is lost.

#include <memory>
#include <string>
#include <thread>
#include <utility>

#include <weightcast/base/error.hpp>
#include <weightcast/comm/detail/quiet_thread.hpp>
#include <weightcast/comm/detail/rendezvous_loop.hpp>
#include <weightcast/comm/listen_socket.hpp>

namespace weightcast {

/// Who runs a server, and its bounds.
struct server_options {
    /// The rank whose process this is: its loss is then the server's, and the other way round. -1: stands alone.
    int host_rank = -1;
    detail::server_limits limits{};
};

/// A rendezvous server on a thread of its own. Listens from construction to destruction; serves any number
/// of groups, and generations of one name, one after another. A client that sends garbage, too much or
/// too slowly is dropped; it can neither stop nor block the server.
/// Anybody who reaches the port can use it: it belongs on a private network, as Gloo's own ports do.
class rendezvous_server {
  public:
    /// @throws system_failure  when the port is in use, or the host is not of this machine
    explicit rendezvous_server(endpoint const& at, server_options options = {})
        : rendezvous_server{listen_socket{at}, options} {}
    /// Takes a socket that is bound already, so that its port could be published first.
    explicit rendezvous_server(listen_socket socket, server_options options = {})
        : loop_{std::make_unique<detail::rendezvous_loop>(std::move(socket), options.host_rank,
                                                          options.limits)},
          at_{loop_->listener().at()},
          thread_{detail::quiet_thread([loop = loop_.get()] { loop->run(); })} {}
    rendezvous_server(rendezvous_server const&) = delete;
    rendezvous_server& operator=(rendezvous_server const&) = delete;
    ~rendezvous_server() { stop(); }

    /// The host as it was given, and the port that is bound.
    endpoint const& at() const noexcept { return at_; }
    /// Closes the port and every connection. Takes a moment at most; a second call does nothing.
    void stop() noexcept {
        if (!thread_.joinable()) return;
        loop_->stop();
        thread_.join();
    }

  private:
    std::unique_ptr<detail::rendezvous_loop> loop_;
    endpoint at_;
    std::thread thread_;
};

}  // namespace weightcast
