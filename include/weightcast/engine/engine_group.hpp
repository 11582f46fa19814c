// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/engine is host-only: include it from a .cpp file"
#endif
// A rank's membership in one group: communicator, mailbox and epoch. Engines share it, and nothing else.

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <weightcast/base/error.hpp>
#include <weightcast/base/operation.hpp>
#include <weightcast/comm/concepts.hpp>
#include <weightcast/plan/announcement.hpp>
#include <weightcast/plan/group_mailbox.hpp>

namespace weightcast {

/// Where an engine meets its group. Ranks [0, size); trainers are the ranks that send.
struct group_init {
    std::string name = "weights";  ///< groups of different names live side by side
    std::string at{};              ///< endpoint of the rendezvous, "host:port"; unused by `local`
    int rank = 0;
    int size = 1;
    std::vector<int> trainers{
        0};  ///< ranks that hold what is sent, in the order of their parameters
    friend bool operator==(group_init const&, group_init const&) = default;
};

/// Makes the communicator of a group.
template <Communicator C>
using communicator_factory = std::function<C(group_init const&)>;

/// A factory that hands over a communicator that has joined already.
template <Communicator C>
communicator_factory<C> already_joined(C communicator) {
    auto held = std::make_shared<std::optional<C>>(std::move(communicator));
    return [held](group_init const&) {
        if (!*held) throw lifecycle_error{"init: this communicator was handed over already"};
        C taken = std::move(**held);
        held->reset();
        return taken;
    };
}

/// What the trainers announced, and what this rank finds wrong with it.
struct exchanged_announcement {
    announcement merged{};
    std::optional<std::string> objection{};
};

/// Immovable: the mailbox refers to the communicator beside it.
template <Communicator C>
class engine_group {
  public:
    /// @throws bad_argument  for ranks that are none of the group, before anything is joined
    engine_group(communicator_factory<C> const& factory, group_init init)
        : init_{checked(std::move(init))}, communicator_{factory(init_)}, mailbox_{communicator_} {}
    engine_group(engine_group const&) = delete;
    engine_group& operator=(engine_group const&) = delete;

    C& communicator() noexcept { return communicator_; }
    group_mailbox<C>& mailbox() noexcept { return mailbox_; }
    group_init const& init() const noexcept { return init_; }
    /// @throws peer_error  when the group has failed: only forming it anew helps
    void require_alive() {
        if (!communicator_.failed()) return;
        std::string why = "it failed earlier";
        int suspect = -1;
        try {
            communicator_.rethrow_if_failed();
        } catch (error const& e) {
            why = e.what();
            suspect = e.facts().suspect;
        } catch (std::exception const& e) {
            why = e.what();
        }
        fail<peer_error>(
            "group '" + init_.name + "' is over; call init to form it anew. It ended with: " + why,
            {.where = phase::preflight, .rank = communicator_.rank(), .suspect = suspect});
    }

    /// The announcements of all trainers as one; `own` is this rank's, when it is a trainer. Collective. What
    /// this rank finds wrong with them is an objection, so that all ranks hear of it. `first` bounds the wait for
    /// the first; `rest()` is asked for the limits of what follows once that has begun to come.
    /// @throws refused_update  when a trainer announced that it failed: on all ranks alike; the group is usable
    template <std::invocable Rest>
    exchanged_announcement exchange(std::optional<announcement> const& own, op_limits const& first,
                                    Rest const& rest) {
        std::optional<op_limits> begun;
        auto const following = [&] { return begun ? *begun : begun.emplace(rest()); };
        exchanged_announcement all;
        std::string failure;
        int failed_rank = -1;
        bool any = false;
        for (int const root : init_.trainers) {
            bool const mine = own && root == communicator_.rank();
            auto const bytes =
                mailbox_.broadcast(mine ? encode(*own) : std::vector<std::byte>{}, root,
                                   any ? following() : first, following, phase::preflight);
            try {
                auto next = decode_announcement(bytes);
                if (next.kind == announcement_kind::failed && failed_rank < 0) {
                    failed_rank = root;
                    failure = next.reason;
                }
                check_plan(next, root);
                if (any)
                    append(all.merged, std::move(next));
                else
                    all.merged = std::move(next);
            } catch (std::exception const& e) {  // out of memory for it too: peers wait for a vote
                if (!all.objection) all.objection = e.what();
            }
            any = true;
        }
        if (failed_rank >= 0) {
            fail<refused_update>(
                "trainer rank " + std::to_string(failed_rank) +
                    " failed before it sent: " + failure,
                {.where = phase::preflight, .rank = communicator_.rank(), .suspect = failed_rank});
        }
        return all;
    }

    /// Which parameters have to be packed because some rank cannot take them directly. Collective.
    /// `settle` is called on the first trainer of a sender that feeds several groups: it may set more flags.
    template <class Settle>
    void agree_on_packed(announcement& a, op_limits const& limits, Settle const& settle) {
        mailbox_.any_of(a.packed, limits, phase::preflight);
        if (!a.shared || init_.trainers.size() != 1) return;
        int const root = init_.trainers.front();
        bool const mine = root == communicator_.rank();
        if (mine) settle(a.packed);
        auto const flags = mailbox_.broadcast(
            mine ? std::as_bytes(std::span{a.packed}) : std::span<std::byte const>{}, root, limits,
            phase::preflight);
        if (flags.size() != a.packed.size()) {
            throw bad_input{"the sender settled " + std::to_string(flags.size()) + " tensors of " +
                            std::to_string(a.packed.size())};
        }
        std::ranges::transform(flags, a.packed.begin(),
                               [](std::byte b) { return static_cast<std::uint8_t>(b); });
    }

    /// Counts the announcements of this group, on every rank alike.
    std::uint64_t next_epoch() noexcept { return ++epoch_; }

  private:
    static group_init checked(group_init init) {
        if (init.trainers.empty())
            throw bad_argument{"group '" + init.name + "': no rank is a trainer"};
        for (std::size_t i = 0; i < init.trainers.size(); ++i) {
            int const r = init.trainers[i];
            if (r < 0 || r >= init.size) {
                throw bad_argument{"group '" + init.name + "': trainer rank " + std::to_string(r) +
                                   " is no rank of a group of " + std::to_string(init.size)};
            }
            if (std::ranges::count(init.trainers, r) != 1) {
                throw bad_argument{"group '" + init.name + "': rank " + std::to_string(r) +
                                   " is named as a trainer twice"};
            }
        }
        return init;
    }
    static void check_plan(announcement const& a, int from) {
        if (a.kind == announcement_kind::failed) return;
        if (std::ranges::count(a.roots, from) != std::ssize(a.roots)) {
            throw bad_input{"trainer rank " + std::to_string(from) +
                            " announces tensors of another rank"};
        }
        packing_plan const plan{planned_tensors(a), a.options};
        if (plan.digest() != a.plan_digest) {
            throw bad_input{
                "this side plans the announced update differently: another version of the library?"};
        }
    }
    static void append(announcement& all, announcement next) {
        if (next.version != all.version || next.target != all.target || next.epoch != all.epoch ||
            next.options != all.options || next.coverage != all.coverage) {
            throw bad_input{"the trainers of the group announce different updates: version " +
                            to_string(all.version) + " of '" + to_string(all.target) +
                            "' and version " + to_string(next.version) + " of '" +
                            to_string(next.target) + "'"};
        }
        std::ranges::move(next.parameters, std::back_inserter(all.parameters));
        std::ranges::move(next.roots, std::back_inserter(all.roots));
        std::ranges::move(next.packed, std::back_inserter(all.packed));
        all.verify = all.verify || next.verify;
    }

    group_init init_;
    C communicator_;
    group_mailbox<C> mailbox_;
    std::uint64_t epoch_ = 0;
};

}  // namespace weightcast
