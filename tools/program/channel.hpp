// SPDX-License-Identifier: Apache-2.0
#pragma once
// What trainer and worker say to each other beside the weights: one JSON document a line, never waited for
// without an end.

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <boost/json/value.hpp>

#include <weightcast/base/deadline.hpp>

namespace weightcast::program {

/// One end of a stream socket. Moved from: closed. Of one thread.
class channel {
  public:
    channel() noexcept = default;
    /// Takes the descriptor over, and makes it non-blocking.
    explicit channel(int descriptor);
    channel(channel&& other) noexcept
        : descriptor_{std::exchange(other.descriptor_, -1)}, unread_{std::move(other.unread_)} {}
    channel& operator=(channel&& other) noexcept;
    ~channel() { close(); }

    /// Two ends that are connected; children do not inherit them.
    static std::pair<channel, channel> pair();

    int descriptor() const noexcept { return descriptor_; }
    /// The other side reads the end of the stream.
    void close() noexcept;

    /// @throws peer_error  when the other side is gone; @throws timeout
    void send(boost::json::value const& message, deadline until);
    /// The next message, or nothing at the end of the stream.
    /// @throws timeout    none came in time
    /// @throws bad_input  what came is no message
    std::optional<boost::json::value> receive(deadline until);

  private:
    bool read_some(deadline until);

    int descriptor_ = -1;
    std::string unread_{};
};

}  // namespace weightcast::program
