// SPDX-License-Identifier: Apache-2.0
#pragma once
// Forming a group over Gloo: meet, agree, choose an address, connect; every step within one deadline.

#include <unistd.h>

#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <weightcast/base/deadline.hpp>
#include <weightcast/base/error.hpp>
#include <weightcast/base/log.hpp>
#include <weightcast/comm/detail/gloo_links.hpp>
#include <weightcast/comm/detail/gloo_state.hpp>
#include <weightcast/comm/detail/gloo_transfer.hpp>
#include <weightcast/comm/detail/interfaces.hpp>
#include <weightcast/comm/gloo_options.hpp>
#include <weightcast/comm/rendezvous.hpp>

namespace weightcast::detail {

/// One attempt of one rank to join. Refers to options and state.
class gloo_join {
  public:
    gloo_join(gloo_options const& options, gloo_state& state)
        : options_{options}, state_{state}, until_{deadline::after(options.connect_deadline)} {}

    /// @throws bad_argument, timeout, peer_error, system_failure  the state is of no use then
    void run() {
        if (options_.size == 1) return;
        // Before this rank is heard of, so that each rank names its own mistake and not its peer's end.
        if (!options_.interface.empty()) require_interface(options_.interface, list_interfaces());
        auto const where = meeting_point();
        try {
            auto const joined = meet(where);
            form(joined);
        } catch (operation_stopped const&) {
            state_.note_stop(operation_label{phase::connect, {}});
            state_.core.rethrow_if_failed();
        } catch (std::exception const& problem) {
            state_.stop_from_here(failure_kind::connection, problem.what());
            state_.report_what_is_left();
            throw;
        }
    }

    /// "process 17 on host trainer-0"
    static std::string self_description() {
        std::array<char, 256> host{};
        if (::gethostname(host.data(), host.size() - 1) != 0) host[0] = '?';
        return "process " + std::to_string(::getpid()) + " on host " + host.data();
    }

  private:
    /// Where this rank reaches the server; rank 0 starts it here.
    endpoint meeting_point() {
        if (listens(options_)) {
            auto server = std::make_shared<rendezvous_server>(listen_socket{options_.at, until_},
                                                              server_options{.host_rank = 0});
            auto const listening = server->at();
            state_.keep_server(std::move(server));
            if (options_.on_listening) options_.on_listening(listening);
            return reachable(listening, options_.advertise);
        }
        auto const& at = options_.server != nullptr ? options_.server->at() : options_.at;
        return reachable(at, options_.advertise);
    }

    joined_group meet(endpoint const& where) {
        std::string lost;  // why the attempt before ended
        for (;;) {
            join_request wish{.group = options_.name,
                              .rank = options_.rank,
                              .size = options_.size,
                              .settings = shared_settings(options_),
                              .who = self_description()};
            try {
                auto& channel = state_.open_side_channel(where, until_);
                choose_address(where, channel);
                auto const joined = channel.join(wish, until_);
                state_.joined(joined.host_rank);
                return joined;
            } catch (peer_error const& ended) {
                // the server of a generation that is ending: the next one comes up in its place
                if (listens(options_) || until_.remaining() < retry_pause) throw;
                lost = ended.what();
            } catch (timeout const& late) {
                if (lost.empty()) throw;
                throw timeout{std::string{late.what()} + "; before that, " + lost + host_text()};
            }
            state_.close_side_channel();
            std::this_thread::sleep_for(retry_pause);
        }
    }
    /// Whose server it is, as far as this rank knows.
    std::string host_text() const {
        bool const of_rank_0 = options_.server == nullptr && options_.hosts_server;
        return of_rank_0 ? ": rank 0, which runs it, gave up or ended" : "";
    }
    void choose_address(endpoint const& where, rendezvous_client const& channel) {
        interface_wish wish{options_.interface, where.host(), channel.local_address(), {}};
        if (options_.rank == 0 && !options_.advertise.empty()) {
            wish.advertised = resolve({options_.advertise, where.port()}, until_);
        }
        auto const choice = choose_interface(wish, list_interfaces());
        chosen_ = choice.chosen;
        if (choice.warning.empty() || std::exchange(warned_, true)) return;
        log_line("group '" + options_.name + "', rank " + std::to_string(options_.rank) + ": " +
                 choice.warning);
    }

    void form(joined_group const& joined) {
        auto& channel = *state_.side_channel();
        compare_addresses(channel, joined.key_prefix);
        state_.links = std::make_unique<gloo_links>(options_.rank, options_.size, options_.contexts,
                                                    chosen_.address, channel, state_.watch,
                                                    joined.key_prefix, until_);
        state_.transfer = std::make_unique<gloo_transfer>(
            *state_.links, state_.watch, options_.rank, options_.size,
            window_settings{static_cast<std::size_t>(options_.piece.value), options_.window});
        channel.barrier("formed", until_);
    }
    /// All ranks must be able to reach each other: one family, and none on loopback where others are not.
    void compare_addresses(rendezvous_client& channel, std::string const& prefix) {
        auto const mine = describe_address(options_.rank);
        message_writer kind;
        kind.number(std::uint8_t{chosen_.address.family() == AF_INET6});
        kind.number(std::uint8_t{chosen_.address.is_loopback()}).text(mine);
        auto const key = [&](int rank) { return prefix + "address/" + std::to_string(rank); };
        channel.set(key(options_.rank), kind.bytes(), until_);
        auto const first = channel.get(key(0), until_);
        if (first.substr(0, 2) == kind.bytes().substr(0, 2)) return;
        message_reader reader{std::string_view{first}.substr(2)};
        throw bad_argument{"connect: " + mine + " and " + reader.text(limits_on_messages.settings) +
                           " cannot reach each other; set gloo_options::interface on both"};
    }
    std::string describe_address(int rank) const {
        return "rank " + std::to_string(rank) + " at " + chosen_.address.host() + " (interface " +
               chosen_.interface + ")";
    }

    static constexpr std::chrono::milliseconds retry_pause{50};

    gloo_options const& options_;
    gloo_state& state_;
    deadline until_;
    interface_address chosen_;
    bool warned_ = false;
};

}  // namespace weightcast::detail
