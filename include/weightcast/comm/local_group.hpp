// SPDX-License-Identifier: Apache-2.0
#pragma once
// What forms a group of threads: its name, its devices, and the place where its ranks meet. Its ranks, and
// `join`, are in local_communicator.hpp.

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <weightcast/base/error.hpp>
#include <weightcast/comm/detail/local_exchange.hpp>
#include <weightcast/comm/group_registry.hpp>
#include <weightcast/tensor/device.hpp>

namespace weightcast {

class local_communicator;

/// How a group of threads is made.
struct local_group_options {
    /// A second group of the same name in this process ends the first. Empty: the group has no name.
    std::string name{};
    /// Device of all ranks, or one a rank; none: `cpu`. Of kind `cpu` or `host`.
    std::vector<device> where{};
    /// How long an aborted operation may take to end before its memory is given up.
    std::chrono::milliseconds grace{2'000};
};

/// One generation of a group of ranks in this process. A handle: copies name the same group.
class local_group {
  public:
    /// @throws bad_argument  for no ranks, a device that host_runtime does not have, or devices for another
    ///                       number of ranks
    explicit local_group(int size, local_group_options options = {}) {
        check(size, options);
        auto const name = options.name.empty() ? std::string{"local"} : options.name;
        shared_ = std::make_shared<shared>(name, size, std::move(options));
        if (!shared_->options.name.empty()) hold_name();
    }

    int size() const noexcept { return shared_->exchange.size(); }
    std::string const& name() const noexcept { return shared_->exchange.name(); }
    /// The communicator of that rank. Each rank joins once; does not wait for the others. Any thread.
    /// @throws bad_argument     for a rank that is none
    /// @throws lifecycle_error  for one that has joined already
    /// @throws peer_error, group_aborted  when the group has ended; form it anew
    local_communicator join(int rank) const;

  private:
    friend class local_communicator;
    struct shared {
        shared(std::string const& name, int size, local_group_options o)
            : options{std::move(o)}, exchange{name, size} {}
        local_group_options options;
        detail::local_exchange exchange;
        group_registry::entry held_name{};  // last: gone before what its callback uses
    };

    static void check(int size, local_group_options const& options) {
        if (size < 1) throw bad_argument{"a group of " + std::to_string(size) + " ranks has none"};
        auto const devices = options.where.size();
        if (devices > 1 && devices != static_cast<std::size_t>(size)) {
            throw bad_argument{"a group of " + std::to_string(size) + " ranks was given " +
                               std::to_string(devices) + " devices; expected one, or one a rank"};
        }
        for (auto const where : options.where) {
            if (where.kind == device_kind::cuda) {
                throw bad_argument{"local_communicator: expected cpu or host:i, got " +
                                   to_string(where)};
            }
        }
    }
    void hold_name() {
        auto const first =
            shared_->options.where.empty() ? cpu_device : shared_->options.where.front();
        group_member member{.name = name(),
                            .rank = 0,
                            .description = "local group of " + std::to_string(size()) +
                                           " ranks on " + to_string(first)};
        auto* const exchange = &shared_->exchange;
        auto held = group_registry::process().enter(std::move(member), [exchange](
                                                                           std::string_view why) {
            exchange->end({.why = detail::local_end::reason::replaced, .text = std::string{why}});
        });
        std::swap(shared_->held_name, held);
    }
    device device_of(int rank) const noexcept {
        auto const& where = shared_->options.where;
        if (where.empty()) return cpu_device;
        return where.size() == 1 ? where.front() : where[static_cast<std::size_t>(rank)];
    }

    std::shared_ptr<shared> shared_;
};

}  // namespace weightcast
