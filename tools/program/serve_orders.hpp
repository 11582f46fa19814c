// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a worker does, whatever the transport: it receives updates into its own memory and reports digests.

#include <cstddef>
#include <exception>
#include <span>
#include <utility>
#include <variant>

#include <program/channel.hpp>
#include <program/weight_digest.hpp>
#include <program/weight_file.hpp>
#include <program/weight_memory.hpp>
#include <program/worker_messages.hpp>

#include <weightcast/base/deadline.hpp>
#include <weightcast/base/error.hpp>
#include <weightcast/comm/concepts.hpp>
#include <weightcast/engine/dense_engine.hpp>
#include <weightcast/engine/engine_group.hpp>
#include <weightcast/model/parameter_tables.hpp>
#include <weightcast/session/weight_worker.hpp>

namespace weightcast::program {

/// A worker that has its set-up. Of one thread.
template <Communicator C>
class order_server {
    using engine_type = dense_engine<C, parameter_tables<>>;

  public:
    order_server(worker_setup const& setup, channel& control, communicator_factory<C> join)
        : setup_{setup},
          control_{control},
          weights_{setup.parameters},
          worker_{engine_type{std::move(join), filled(tables_, weights_), setup.limits}} {}

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
    static parameter_tables<>& filled(parameter_tables<>& tables, weight_memory const& weights) {
        for (std::size_t i = 0; i < weights.size(); ++i) {
            tables.main().add(weights.parameters()[i].name, weights.tensor(i));
        }
        return tables;
    }
    // Between two orders the trainer trains, or listens to others: as long as it may, and no longer.
    deadline patience() const { return deadline::after(setup_.limits.announcement); }
    void report(worker_report const& what) { control_.send(to_json(what), patience()); }

    void obey(join_order) {
        worker_.init(setup_.init());
        report(done_report{});
    }
    void obey(receive_order order) {
        auto const updated = worker_.serve_one();
        if (order.corrupt) flip_one_byte();
        report(received_report{updated.version.number, digests_of(weights_)});
    }
    void obey(dump_order const& order) {
        write_weights(weights_, order.file);
        report(done_report{});
    }
    // The last byte of the largest tensor.
    void flip_one_byte() {
        std::span<std::byte> largest;
        for (std::size_t i = 0; i < weights_.size(); ++i) {
            auto const bytes = weights_.bytes_of(i);
            if (bytes.size() > largest.size()) largest = bytes;
        }
        if (!largest.empty()) largest.back() ^= std::byte{1};
    }

    worker_setup const& setup_;
    channel& control_;
    weight_memory weights_;
    parameter_tables<> tables_;
    weight_worker<engine_type> worker_;
};

}  // namespace weightcast::program
