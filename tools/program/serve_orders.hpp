// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a worker does, whatever the transport: it receives updates into its own memory and reports digests.

#include <cstdint>
#include <exception>
#include <map>
#include <optional>
#include <utility>
#include <variant>

#include <program/channel.hpp>
#include <program/death.hpp>
#include <program/held_weights.hpp>
#include <program/snapshot_reader.hpp>
#include <program/trace_files.hpp>
#include <program/weight_digest.hpp>
#include <program/weight_file.hpp>
#include <program/worker_messages.hpp>

#include <weightcast/base/deadline.hpp>
#include <weightcast/base/error.hpp>
#include <weightcast/comm/concepts.hpp>
#include <weightcast/engine/dense_engine.hpp>
#include <weightcast/engine/engine_group.hpp>
#include <weightcast/kernels/model_digest.hpp>
#include <weightcast/model/commit_policy.hpp>
#include <weightcast/observe/traced_progress.hpp>
#include <weightcast/session/weight_worker.hpp>

namespace weightcast::program {

/// A worker that has its set-up. Of one thread; where its policy leaves readers the old version, one reads all the time
/// while an update is received.
template <Communicator C, CommitPolicy<host_runtime> Policy>
class order_server {
    using held_type = held_weights<Policy>;
    using engine_type =
        dense_engine<C, typename held_type::tables_type, traced_progress<death_in_payload>>;
    static constexpr bool keeps_readers = Policy::template memory<host_runtime>::sets == 2;

  public:
    order_server(worker_setup const& setup, channel& control, communicator_factory<C> join)
        : setup_{setup},
          control_{control},
          trace_{trace_of_rank(setup.rank, setup.traced)},
          held_{setup.parameters, setup.shard},
          worker_{engine_type{std::move(join), held_.tables(), setup.limits,
                              traced_progress{trace_, death_in_payload{dies_in_}}}} {}

    /// Until the trainer closes the control channel.
    /// @throws what a transfer throws: it was reported
    void serve() {
        report(done_report{});  // the memory is there
        while (auto const message = control_.receive(patience())) {
            auto const order = order_of(*message);
            try {
                std::visit([this](auto const& o) { this->obey(o); }, order);
            } catch (std::exception const& failure) {
                report(failed_report{failure.what()});
                throw;
            }
        }
    }

  private:
    // Between two orders the trainer trains, or listens to others: as long as it may, and no longer.
    deadline patience() const { return deadline::after(setup_.limits.announcement); }
    void report(worker_report const& what) { control_.send(to_json(what), patience()); }

    void obey(join_order order) {
        if (order.dies) die_in(phase::connect, phase::connect);
        worker_.init(setup_.init());
        report(done_report{});
    }
    void obey(receive_order order) {
        std::optional<snapshot_reader> reader;
        if (keeps_readers) reader.emplace([this] { return read(); });
        auto const updated = receive(order.dies_in);
        if (reader) {
            published_[updated.version.number] = read().digest;
            snapshots_ += reader->stop(published_);
        }
        if (order.corrupt) held_.flip_one_byte();
        auto const held = held_.snapshot();
        report(received_report{held.version().number, digests_of(held_.tensors(held)), snapshots_});
    }
    update_report receive(death_phase const& dies_in) {
        dies_in_ = dies_in;
        if (!dies_in_) return worker_.serve_one();
        auto const announced = worker_.next();
        die_in(phase::preflight, dies_in_);
        auto update = worker_.start(announced.target());
        update.receive(announced);
        die_in(phase::vote, dies_in_);
        auto report = std::move(update).finish();
        die_in(phase::commit, dies_in_);
        return report;
    }
    void obey(dump_order const& order) {
        auto const held = held_.snapshot();
        write_weights(held_.tensors(held), order.file);
        report(done_report{});
    }
    void obey(trace_order const& order) {
        write_trace(trace_, order.file);
        report(done_report{});
    }
    snapshot_reading read() const {
        auto const held = held_.snapshot();
        return {held.version().number, model_digest(held_.tensors(held))};
    }

    worker_setup const& setup_;
    channel& control_;
    death_phase dies_in_{};  // in the next update
    chrome_trace trace_;
    held_type held_;
    weight_worker<engine_type> worker_;
    std::map<std::uint64_t, std::uint64_t> published_{{0, read().digest}};  // digests by version
    std::uint64_t snapshots_ = 0;  // that readers went through
};

}  // namespace weightcast::program
