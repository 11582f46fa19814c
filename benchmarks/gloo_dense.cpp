// SPDX-License-Identifier: Apache-2.0
// A dense update of mixed tensors over Gloo between two processes, against raw Gloo moving the same bytes.
// One rank, driven by lines on stdin: each line runs every variant once; rank 0 prints seconds as JSON.
//   gloo_dense RANK PORT PORT FOLDER SIZES.json

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <iostream>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/rendezvous/prefix_store.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/unbound_buffer.h>
#include <boost/json.hpp>

#include <weightcast/comm/gloo_communicator.hpp>
#include <weightcast/engine/dense_engine.hpp>
#include <weightcast/engine/dense_trainer.hpp>
#include <weightcast/engine/joining.hpp>
#include <weightcast/model/parameter_tables.hpp>
#include <weightcast/model/table_source.hpp>
#include <weightcast/session/weight_sender.hpp>
#include <weightcast/session/weight_worker.hpp>

#include "measure.hpp"

namespace {

using namespace weightcast;

/// Raw Gloo on one buffer, without the library: what the transport itself can do.
class raw_gloo {
  public:
    raw_gloo(int rank, std::string const& folder, int contexts) : rank_{rank} {
        gloo::transport::tcp::attr where;
        where.hostname = "127.0.0.1";
        auto device = gloo::transport::tcp::CreateDevice(where);
        gloo::rendezvous::FileStore files{folder};
        for (int i = 0; i < contexts; ++i) {
            gloo::rendezvous::PrefixStore store{"raw" + std::to_string(i), files};
            auto context = std::make_shared<gloo::rendezvous::Context>(rank, 2);
            context->connectFullMesh(store, device);
            contexts_.push_back(std::move(context));
        }
    }
    void barrier() {
        gloo::BarrierOptions options{contexts_.front()};
        options.setTag(7);
        gloo::barrier(options);
    }
    void whole(std::vector<std::byte>& bytes) {
        gloo::BroadcastOptions options{contexts_.front()};
        options.setOutput(reinterpret_cast<std::uint8_t*>(bytes.data()), bytes.size());
        options.setRoot(0);
        options.setTag(8);
        gloo::broadcast(options);
    }
    /// 4 MiB pieces, 32 under way a context, striped over so many contexts.
    void windowed(std::vector<std::byte>& bytes, std::size_t contexts) {
        constexpr std::size_t piece = std::size_t{4} << 20U;
        constexpr std::size_t window = 32;
        std::vector<std::unique_ptr<gloo::transport::UnboundBuffer>> buffers;
        for (std::size_t c = 0; c < contexts; ++c) {
            buffers.push_back(contexts_[c]->createUnboundBuffer(bytes.data(), bytes.size()));
        }
        std::vector<std::size_t> under_way(contexts, 0);
        std::size_t const pieces = (bytes.size() + piece - 1) / piece;
        for (std::size_t p = 0; p < pieces; ++p) {
            std::size_t const c = p % contexts;
            if (under_way[c] == window) {
                wait(*buffers[c]);
                --under_way[c];
            }
            std::size_t const at = p * piece;
            std::size_t const size = std::min(piece, bytes.size() - at);
            if (rank_ == 0)
                buffers[c]->send(1, 1000 + p, at, size);
            else
                buffers[c]->recv(0, 1000 + p, at, size);
            ++under_way[c];
        }
        for (std::size_t c = 0; c < contexts; ++c) {
            for (; under_way[c] > 0; --under_way[c]) wait(*buffers[c]);
        }
    }

  private:
    void wait(gloo::transport::UnboundBuffer& buffer) {
        if (rank_ == 0)
            buffer.waitSend();
        else
            buffer.waitRecv();
    }
    int rank_;
    std::vector<std::shared_ptr<gloo::rendezvous::Context>> contexts_;
};

std::vector<std::size_t> read_sizes(char const* file) {
    std::ifstream in{file};
    std::string const text{std::istreambuf_iterator<char>{in}, {}};
    return boost::json::value_to<std::vector<std::size_t>>(boost::json::parse(text));
}

/// One configuration of the library: a sender on rank 0, a worker on rank 1.
class library {
  public:
    library(int rank, std::string const& port, std::string const& name, packing_options packing,
            std::vector<std::vector<std::byte>>& tensors)
        : init_{.name = name, .at = "127.0.0.1:" + port, .rank = rank, .size = 2} {
        auto const factory = joining<gloo_communicator>();
        for (std::size_t i = 0; i < tensors.size(); ++i) {
            extents const shape{static_cast<std::int64_t>(tensors[i].size())};
            tensor_view<> const view{tensors[i].data(), dtype::uint8, shape};
            source_.add("t" + std::to_string(i), view);
            tables_.main().add("t" + std::to_string(i), view);
        }
        if (rank == 0) {
            sender_.emplace(dense_trainer<gloo_communicator>{factory, {.packing = packing}});
            sender_->init({init_});
        } else {
            worker_ = std::make_unique<weight_worker<engine>>(engine{factory, tables_}, init_);
        }
    }
    void update() {
        if (sender_)
            sender_->update(source_).or_throw();
        else
            worker_->serve_one();
    }

  private:
    using engine = dense_engine<gloo_communicator, parameter_tables<>>;
    group_init init_;
    table_source<> source_;
    parameter_tables<> tables_;
    std::optional<weight_sender<dense_trainer<gloo_communicator>>> sender_;
    std::unique_ptr<weight_worker<engine>> worker_;
};

}  // namespace

int main(int, char** argv) {
    int const rank = std::atoi(argv[1]);
    auto const sizes = read_sizes(argv[5]);
    std::size_t const total = std::accumulate(sizes.begin(), sizes.end(), std::size_t{0});
    raw_gloo raw{rank, argv[4], 2};
    auto buffer = bench::touched(total, rank);
    auto copy = bench::touched(total, rank);
    std::vector<std::vector<std::byte>> tensors;
    for (auto const size : sizes) tensors.push_back(bench::touched(size, 1 - rank));

    packing_options all_packed;
    all_packed.direct_from = UINT64_MAX;
    library native{rank, argv[2], "native", {}, tensors};
    library packed{rank, argv[3], "packed", all_packed, tensors};

    std::vector<std::pair<std::string, std::function<void()>>> const variants{
        {"raw gloo, whole", [&] { raw.whole(buffer); }},
        {"raw gloo, windowed, 1 context", [&] { raw.windowed(buffer, 1); }},
        {"raw gloo, windowed, 2 contexts", [&] { raw.windowed(buffer, 2); }},
        {"weightcast, native plan", [&] { native.update(); }},
        {"weightcast, all packed", [&] { packed.update(); }},
    };
    fmt::print("ready\n");
    std::fflush(stdout);
    for (std::string line; std::getline(std::cin, line);) {
        boost::json::object result;
        result["memcpy"] = bench::seconds([&] { std::memcpy(copy.data(), buffer.data(), total); });
        for (auto const& [name, run] : variants) {
            raw.barrier();
            result[name] = bench::seconds([&] {
                run();
                raw.barrier();
            });
        }
        fmt::print("{}\n", boost::json::serialize(result));
        std::fflush(stdout);
    }
    bool const arrived = std::ranges::all_of(tensors, [](auto const& t) {
        return std::ranges::all_of(t, [](std::byte b) { return b == std::byte{1}; });
    });
    return arrived ? 0 : 1;
}
