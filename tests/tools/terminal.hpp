// SPDX-License-Identifier: Apache-2.0
// A terminal that nobody looks at, for what programs show on one only.
#pragma once

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>
#include <system_error>

namespace weightcast::test {

/// Both of its ends stay open while it lives, so that what was written last can be read when its writer is
/// gone. It holds some kilobytes that have not been read.
class terminal {
  public:
    terminal() : ours_{posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK)} {
        std::array<char, 128> name{};
        if (ours_ < 0 || grantpt(ours_) != 0 || unlockpt(ours_) != 0 ||
            ptsname_r(ours_, name.data(), name.size()) != 0) {
            throw std::system_error{errno, std::generic_category(), "posix_openpt"};
        }
        path_ = name.data();
        theirs_ = open(name.data(), O_RDWR | O_NOCTTY | O_CLOEXEC);
        if (theirs_ < 0) throw std::system_error{errno, std::generic_category(), path_};
    }
    terminal(terminal const&) = delete;
    terminal& operator=(terminal const&) = delete;
    ~terminal() {
        close(theirs_);
        close(ours_);
    }

    std::string const& path() const noexcept { return path_; }
    /// What was written since the last call.
    std::string shown() const {
        std::string text;
        std::array<char, 4096> buffer{};
        for (;;) {
            auto const got = read(ours_, buffer.data(), buffer.size());
            if (got <= 0) return text;
            text.append(buffer.data(), static_cast<std::size_t>(got));
        }
    }

  private:
    int ours_;
    int theirs_ = -1;
    std::string path_{};
};

}  // namespace weightcast::test
