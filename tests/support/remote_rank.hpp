// SPDX-License-Identifier: Apache-2.0
// A rank of a Gloo group in a process of its own, told what to do line by line, to be killed or stopped.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstring>
#include <iostream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <laws/communicator_fault_laws.hpp>
#include <support/child_process.hpp>
#include <weightcast/comm/gloo_communicator.hpp>

namespace weightcast::test {

/// Memory whose content costs little to make and to check.
class bulk_memory {
  public:
    explicit bulk_memory(std::size_t bytes, std::uint64_t seed)
        : words_((bytes + 7) / 8), bytes_{bytes} {
        fill(seed);
    }
    void fill(std::uint64_t seed) {
        for (std::size_t i = 0; i < words_.size(); ++i) words_[i] = word(seed, i);
    }
    bool holds(std::uint64_t seed) const {
        std::size_t i = 0;
        while (i < bytes_ / 8 && words_[i] == word(seed, i)) ++i;
        auto const expected = word(seed, i);
        return i == bytes_ / 8 &&
               (bytes_ % 8 == 0 || std::memcmp(&words_[i], &expected, bytes_ % 8) == 0);
    }
    std::size_t bytes() const noexcept { return bytes_; }
    tensor_view<host_space> view() {
        return {words_.data(), dtype::uint8, extents{static_cast<std::int64_t>(bytes_)},
                cpu_device};
    }

  private:
    static std::uint64_t word(std::uint64_t seed, std::uint64_t i) noexcept {
        return (i + seed * 0x9E3779B97F4A7C15U) * 0xD6E8FEB86659FD93U;
    }
    std::vector<std::uint64_t> words_;
    std::size_t bytes_;
};
inline void enqueue_bulk(gloo_communicator& c, bulk_memory& memory, int root, operation const& op) {
    alignment_scope<gloo_communicator> scope{c};
    auto view = memory.view();
    if (c.rank() == root) {
        c.broadcast_from(scope.align(view, already_ready{}, op.label), op);
    } else {
        c.broadcast_into(scope.require(view, op.label), root, op);
    }
}

/// One broadcast of this rank, waited for. The root's bytes are those of the seed.
inline std::string broadcast_once(gloo_communicator& c, int root, std::size_t bytes,
                                  std::uint64_t seed, op_limits const& limits) {
    bulk_memory memory{bytes, c.rank() == root ? seed : seed + 1};
    operation const op{operation_label{phase::payload, "layers.3.w"}, limits};
    auto const failed = failure_of([&] {
        enqueue_bulk(c, memory, root, op);
        finish(c, patiently());
    });
    if (failed) {
        return "failed " + failed->kind + " suspect " + std::to_string(failed->facts.suspect) +
               " after " + std::to_string(failed->after.count()) + " ms: " + failed->text;
    }
    return memory.holds(seed) ? "ok" : "wrong bytes";
}

/// Broadcasts one after the other until one fails; what is done to a rank meanwhile is done in mid-transfer.
inline std::string broadcast_until_failure(gloo_communicator& c, int root, std::size_t bytes,
                                           std::uint64_t seed, std::chrono::milliseconds stall) {
    std::string answer = "ok";
    for (auto const until = deadline::after(std::chrono::seconds{120}); answer == "ok";) {
        if (until.expired()) return "nothing failed";
        answer = broadcast_once(c, root, bytes, seed, {.stall = stall, .at = until});
    }
    return answer;
}

/// Commands: "join AT NAME RANK SIZE", "broadcast ROOT BYTES SEED STALL_MS", "stream" with
/// the same (broadcasts until one fails), "close". Each is answered by a
/// line; a join of rank 0 is announced by "listening AT" first.
inline int obey(child_arguments const&) {
    std::optional<gloo_communicator> c;
    for (std::string line; std::getline(std::cin, line);) {
        std::istringstream words{line};
        std::string verb;
        words >> verb;
        std::string answer = "what?";
        try {
            if (verb == "join") {
                std::string at;
                gloo_options options;
                words >> at >> options.name >> options.rank >> options.size;
                options.at = at;
                options.grace = std::chrono::seconds{5};
                options.on_listening = [](endpoint const& bound) {
                    std::cout << "listening " << bound << std::endl;
                };
                c.reset();
                c = gloo_communicator::join(options);
                answer = "joined";
            } else if (verb == "broadcast" || verb == "stream") {
                int root = 0;
                std::size_t bytes = 0;
                std::uint64_t seed = 0;
                int stall = 0;
                words >> root >> bytes >> seed >> stall;
                auto const limit = std::chrono::milliseconds{stall};
                answer = verb == "stream"
                             ? broadcast_until_failure(*c, root, bytes, seed, limit)
                             : broadcast_once(*c, root, bytes, seed,
                                              {limit, deadline::after(std::chrono::seconds{120})});
            } else if (verb == "close") {
                c.reset();
                answer = "closed";
            }
        } catch (...) {
            answer = "error " + describe_exception();
        }
        std::cout << answer << std::endl;
    }
    return 0;
}
inline child const obedient_rank{"gloo_remote_rank", &obey};

/// Such a process.
class remote_rank {
  public:
    remote_rank() : process_{"gloo_remote_rank"} {}

    void tell(std::string const& command) { process_.write_line(command); }
    std::string answer(std::chrono::seconds within = std::chrono::seconds{90}) {
        return process_.read_line(deadline::after(within));
    }
    std::string ask(std::string const& command) {
        tell(command);
        return answer();
    }
    void join(std::string const& at, std::string const& name, int rank, int size) {
        tell("join " + at + " " + name + " " + std::to_string(rank) + " " + std::to_string(size));
    }
    void broadcast(int root, std::size_t bytes, std::uint64_t seed, int stall_ms = 60'000,
                   std::string const& verb = "broadcast") {
        tell(verb + " " + std::to_string(root) + " " + std::to_string(bytes) + " " +
             std::to_string(seed) + " " + std::to_string(stall_ms));
    }
    child_process& process() noexcept { return process_; }

  private:
    child_process process_;
};

}  // namespace weightcast::test
