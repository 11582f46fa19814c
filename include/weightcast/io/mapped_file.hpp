// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/io is host-only: include it from a .cpp file"
#endif
// A file in memory: read where it lies, page by page as it is touched.

#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weightcast/base/check.hpp>
#include <weightcast/base/error.hpp>
#include <weightcast/io/detail/in_quotes.hpp>

namespace weightcast {

namespace detail {

class file_descriptor {
  public:
    explicit file_descriptor(int fd) noexcept : fd_{fd} {}
    file_descriptor(file_descriptor const&) = delete;
    file_descriptor& operator=(file_descriptor const&) = delete;
    ~file_descriptor() {
        if (fd_ >= 0) ::close(fd_);
    }
    int get() const noexcept { return fd_; }

  private:
    int fd_;
};

}  // namespace detail

/// A regular file mapped read-only. Its bytes stay where they are while the object lives and when
/// it moves. A file that is made shorter while it is mapped ends the process with SIGBUS at the
/// next touch: replace files by rename, as write_safetensors does, and never write into them.
/// Moved-from: empty.
class mapped_file {
  public:
    /// @throws bad_input       for a path that names no readable regular file
    /// @throws system_failure  when the mapping fails
    static mapped_file open(std::filesystem::path const& path) {
        auto const name = detail::in_quotes(path.native());
        // not blocking: a pipe is refused below, not waited for
        detail::file_descriptor const fd{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
        if (fd.get() < 0) {
            throw bad_input{"cannot open file " + name + ": " +
                            std::generic_category().message(errno)};
        }
        struct ::stat facts {};
        check(posix_result{::fstat(fd.get(), &facts)}, "fstat");
        if (!S_ISREG(facts.st_mode)) throw bad_input{"file " + name + " is no regular file"};
        auto const size = static_cast<std::size_t>(facts.st_size);
        if (size == 0) return mapped_file{nullptr, 0};
        void* const data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
        if (data == MAP_FAILED) check(posix_result{-1}, ("mmap of file " + name).c_str());
        return mapped_file{data, size};
    }
    mapped_file(mapped_file&& other) noexcept
        : data_{std::exchange(other.data_, nullptr)}, size_{std::exchange(other.size_, 0)} {}
    mapped_file& operator=(mapped_file&& other) noexcept {
        mapped_file taken{std::move(other)};
        std::swap(data_, taken.data_);
        std::swap(size_, taken.size_);
        return *this;
    }
    ~mapped_file() {
        if (data_ != nullptr) ::munmap(data_, size_);
    }

    std::span<std::byte const> bytes() const noexcept {
        return {static_cast<std::byte const*>(data_), size_};
    }

  private:
    mapped_file(void* data, std::size_t size) noexcept : data_{data}, size_{size} {}
    void* data_;
    std::size_t size_;
};

}  // namespace weightcast
