// SPDX-License-Identifier: Apache-2.0
#pragma once
// An engine that serves, as far as its weights can tell: it reads all of them, again and again, while updates come.

#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>

#include <fmt/format.h>

#include <weightcast/kernels/digest.hpp>

namespace weightcast::program {

/// A reader saw weights of more than one version, or of none; the message says which.
struct mixed_weights : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// The version and the digest of one snapshot.
struct snapshot_reading {
    std::uint64_t version = 0;
    std::uint64_t digest = 0;
};

/// Reads on a thread of its own from its construction to `stop`: every snapshot of a version must have the same
/// digest. Other members are of one thread.
class snapshot_reader {
  public:
    /// `read` goes through one snapshot.
    explicit snapshot_reader(std::function<snapshot_reading()> read)
        : read_{std::move(read)}, thread_{[this](std::stop_token const& stop) { run(stop); }} {}

    /// Ends it; what it saw must be what was published: `digests` by version. Returns how many snapshots it went
    /// through, at least one.
    /// @throws mixed_weights, and what reading threw
    std::uint64_t stop(std::map<std::uint64_t, std::uint64_t> const& published) {
        thread_.request_stop();
        thread_.join();
        if (failure_) std::rethrow_exception(failure_);
        for (auto const& [version, digest] : seen_) {
            auto const found = published.find(version);
            if (found == published.end())
                throw mixed_weights{
                    fmt::format("a reader was given version {}, which was not published", version)};
            compare({version, digest}, found->second);
        }
        return snapshots_;
    }

  private:
    void run(std::stop_token const& stop) noexcept {
        try {
            do {
                auto const reading = read_();
                ++snapshots_;
                compare(reading, seen_.try_emplace(reading.version, reading.digest).first->second);
            } while (!stop.stop_requested());
        } catch (...) {
            failure_ = std::current_exception();
        }
    }
    static void compare(snapshot_reading const& reading, std::uint64_t expected) {
        if (reading.digest == expected) return;
        throw mixed_weights{fmt::format(
            "a reader saw a mix: a snapshot of version {} has digest {}, that version has {}",
            reading.version, digest_text(reading.digest), digest_text(expected))};
    }

    std::function<snapshot_reading()> read_;
    std::map<std::uint64_t, std::uint64_t> seen_{};  // digests by version
    std::uint64_t snapshots_ = 0;
    std::exception_ptr failure_{};
    std::jthread thread_;  // last: it uses the others
};

}  // namespace weightcast::program
