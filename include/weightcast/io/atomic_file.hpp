// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/io is host-only: include it from a .cpp file"
#endif
// A file that is there in full or not at all.

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <random>
#include <span>
#include <string>
#include <system_error>

#include <fcntl.h>
#include <unistd.h>

#include <weightcast/base/check.hpp>
#include <weightcast/base/error.hpp>
#include <weightcast/io/detail/in_quotes.hpp>

namespace weightcast {

/// Writes a new file beside `path` and puts it in its place on commit, by rename: readers see the
/// old file or the new one, and whoever has the old one mapped keeps it. Without commit nothing is
/// left behind. A link at `path` is replaced, not followed. Belongs to one thread.
class atomic_file {
  public:
    /// @throws system_failure  when no file can be made in that folder
    explicit atomic_file(std::filesystem::path path) : path_{std::move(path)} {
        constexpr int attempts = 100;
        for (int i = 0; i < attempts && fd_ < 0; ++i) {
            temporary_ = new_name();
            fd_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
            if (fd_ < 0 && errno != EEXIST) break;
        }
        fail_if(fd_ < 0, "create", temporary_);
    }
    atomic_file(atomic_file const&) = delete;
    atomic_file& operator=(atomic_file const&) = delete;
    ~atomic_file() {
        if (fd_ >= 0) ::close(fd_);
        if (!committed_) ::unlink(temporary_.c_str());
    }

    /// Appends the bytes. @throws system_failure  when they do not fit; `path` is as it was
    void write(std::span<std::byte const> bytes) {
        while (!bytes.empty()) {
            // the kernel takes at most 2 GiB a call
            constexpr std::size_t largest = std::size_t{1} << 30U;
            auto const written = ::write(fd_, bytes.data(), std::min(bytes.size(), largest));
            if (written < 0 && errno == EINTR) continue;
            fail_if(written < 0, "write", temporary_);
            bytes = bytes.subspan(static_cast<std::size_t>(written));
        }
    }
    /// Puts the file in its place; it has reached the disk when this returns.
    /// @throws system_failure  when that fails; `path` is as it was, unless it was the folder that
    ///                         did not reach the disk
    void commit() {
        fail_if(::fsync(fd_) != 0, "fsync", temporary_);
        fail_if(::rename(temporary_.c_str(), path_.c_str()) != 0, "replace", path_);
        committed_ = true;
        sync_folder();
    }

  private:
    static void fail_if(bool failed, char const* what, std::filesystem::path const& path) {
        if (!failed) return;
        auto const code = errno;
        throw system_failure{std::string{"cannot "} + what + " file " +
                             detail::in_quotes(path.native()) + ": " +
                             std::generic_category().message(code)};
    }
    std::filesystem::path new_name() const {
        auto name =
            "." + path_.filename().native() + "." + std::to_string(std::random_device{}()) + ".tmp";
        return path_.parent_path() / name;
    }
    void sync_folder() const {
        auto const folder =
            path_.has_parent_path() ? path_.parent_path() : std::filesystem::path{"."};
        int const fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0) return;  // a folder that may be written but not read: nothing to sync by
        bool const failed = ::fsync(fd) != 0 && errno != EINVAL;  // some file systems cannot
        auto const code = errno;
        ::close(fd);
        errno = code;
        fail_if(failed, "fsync", folder);
    }

    std::filesystem::path path_;
    std::filesystem::path temporary_{};
    int fd_ = -1;
    bool committed_ = false;
};

}  // namespace weightcast
