// SPDX-License-Identifier: Apache-2.0
#include <program/trainer.hpp>

#include <cstddef>
#include <memory>
#include <utility>

#include <program/transports.hpp>
#include <program/worker.hpp>

#include <weightcast/engine/dense_trainer.hpp>
#include <weightcast/model/table_source.hpp>
#include <weightcast/observe/progress_tee.hpp>
#include <weightcast/observe/terminal_progress.hpp>
#include <weightcast/observe/traced_progress.hpp>
#include <weightcast/session/weight_sender.hpp>

namespace weightcast::program {

namespace {

// dense: every tensor by itself; packed: the small ones together
transfer_settings settings_of(demo_options const& options) {
    transfer_settings settings;
    if (options.engine == "dense") settings.packing.direct_from = 1;
    return settings;
}

worker_setup setup_of(demo_options const& options, weight_memory const& weights, int rank) {
    return {.rank = rank,
            .size = options.workers + 1,
            .connect = options.connect(),
            .limits = options.limits(weights.bytes()),
            .policy = options.policy,
            .shard = options.shard_of_worker(rank),
            .traced = !options.trace.empty(),
            .parameters = {weights.parameters().begin(), weights.parameters().end()}};
}

/// A sender that owns what it sends through; copies share it.
template <Communicator C>
class sender {
    using progress = traced_progress<progress_tee<terminal_progress>>;
    using engine = dense_trainer<C, progress>;

  public:
    sender(demo_options const& options, weight_memory const& weights, communicator_factory<C> join,
           std::string at, chrome_trace& trace)
        : owned_{std::make_shared<state>(options, weights, std::move(join), std::move(at), trace)} {
    }

    update_result operator()() const { return owned_->sender.update(owned_->source); }

  private:
    struct state {
        state(demo_options const& options, weight_memory const& weights,
              communicator_factory<C> join, std::string at, chrome_trace& trace)
            : sender{engine{std::move(join), settings_of(options), options.limits(weights.bytes()),
                            progress{trace, progress_tee{bar}}},
                     {group_init{.at = std::move(at), .rank = 0, .size = options.workers + 1}}} {
            for (std::size_t i = 0; i < weights.size(); ++i) {
                source.add(weights.parameters()[i].name, weights.tensor(i));
            }
        }
        terminal_progress bar{};
        table_source<> source;
        weight_sender<engine> sender;
    };
    std::shared_ptr<state> owned_;
};

// Workers touch their memory before anybody counts the time: up to their whole model each.
void set_up(demo_options const& options, weight_memory const& weights, worker_team& team,
            std::string const& at) {
    auto const copies = weights.bytes() * static_cast<std::uint64_t>(options.workers);
    auto const until = deadline::after(options.connect() + options.pass_over(copies));
    for (int rank = 1; rank <= options.workers; ++rank) {
        auto setup = setup_of(options, weights, rank);
        setup.at = at;
        team.set_up(rank, setup, until);
    }
    team.await_done(until);
    for (int rank = 1; rank <= options.workers; ++rank)
        team.order(rank, join_order{options.kills(rank, phase::connect)}, until);
}

send_update form_local_group(demo_options const& options, weight_memory const& weights,
                             worker_team& team, chrome_trace& trace) {
    local_group const group{options.workers + 1};
    team.start_threads(options.workers,
                       [group](channel control) { run_worker_thread(group, std::move(control)); });
    set_up(options, weights, team, {});
    return sender<local_communicator>{options, weights, local_member(group), {}, trace};
}

send_update form_gloo_group(demo_options const& options, weight_memory const& weights,
                            worker_team& team, chrome_trace& trace) {
    // processes first: they begin with nothing of ours open
    team.start_processes(options.workers);
    auto const server = std::make_shared<rendezvous_server>(endpoint{"127.0.0.1:0"},
                                                            server_options{.host_rank = 0});
    auto const at = to_string(server->at());
    set_up(options, weights, team, at);
    return sender<gloo_communicator>{options, weights, gloo_member(options.connect(), server), at,
                                     trace};
}

}  // namespace

send_update form_group(demo_options const& options, weight_memory const& weights, worker_team& team,
                       chrome_trace& trace) {
    print_process(0);
    auto send = options.transport == "local" ? form_local_group(options, weights, team, trace)
                                             : form_gloo_group(options, weights, team, trace);
    team.await_done(deadline::after(options.connect()));
    return send;
}

}  // namespace weightcast::program
