// SPDX-License-Identifier: Apache-2.0
#pragma once
// Wakes a thread that polls.

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>

#include <weightcast/base/check.hpp>
#include <weightcast/comm/detail/socket.hpp>

namespace weightcast::detail {

/// A descriptor that becomes readable when another thread calls `wake`.
class wake_up {
  public:
    wake_up() : fd_{::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)} {
        check(posix_result{fd_.value()}, "eventfd");
    }
    int descriptor() const noexcept { return fd_.value(); }
    void wake() const noexcept {
        std::uint64_t const one = 1;
        [[maybe_unused]] auto const written = ::write(fd_.value(), &one, sizeof one);
    }
    void clear() const noexcept {
        std::uint64_t count = 0;
        [[maybe_unused]] auto const read = ::read(fd_.value(), &count, sizeof count);
    }

  private:
    unique_fd fd_;
};

}  // namespace weightcast::detail
