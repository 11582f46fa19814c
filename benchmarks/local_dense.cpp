// SPDX-License-Identifier: Apache-2.0
// A dense update of 1 GiB over `local`, one receiver: against memcpy of the same bytes in the same run.
//   local_dense [MiB] [runs]

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <fmt/core.h>

#include <weightcast/comm/local_communicator.hpp>
#include <weightcast/engine/dense_engine.hpp>
#include <weightcast/engine/dense_trainer.hpp>
#include <weightcast/model/parameter_tables.hpp>
#include <weightcast/model/table_source.hpp>
#include <weightcast/session/weight_sender.hpp>
#include <weightcast/session/weight_worker.hpp>

#include "measure.hpp"

namespace {

using namespace weightcast;
using trainer = dense_trainer<local_communicator>;
using engine = dense_engine<local_communicator, parameter_tables<>>;

constexpr std::size_t tensor_count = 16;

extents shape_of(std::size_t bytes) { return {static_cast<std::int64_t>(bytes)}; }

/// A sender and a receiver thread on one device, kept over all runs.
class pair_of_ranks {
  public:
    pair_of_ranks(std::byte* from, std::byte* to, std::size_t bytes, device group_device,
                  int updates)
        : group_{2, {.where = {group_device}}},
          sender_{trainer{already_joined(group_.join(0))}, {group_init{.rank = 0, .size = 2}}} {
        std::size_t const each = bytes / tensor_count;
        for (std::size_t i = 0; i < tensor_count; ++i) {
            auto const name = "layer." + std::to_string(i);
            source_.add(name, tensor_view<>{from + i * each, dtype::uint8, shape_of(each)});
            tables_.main().add(
                name, tensor_view<>{to + i * each, dtype::uint8, shape_of(each), group_device});
        }
        receiver_ = std::jthread{[this, updates] {
            weight_worker worker{engine{already_joined(group_.join(1)), tables_},
                                 group_init{.rank = 1, .size = 2}};
            for (int i = 0; i < updates; ++i) worker.serve_one();
        }};
    }
    void update() { sender_.update(source_).or_throw(); }

  private:
    local_group group_;
    weight_sender<trainer> sender_;
    table_source<> source_;
    parameter_tables<> tables_;
    std::jthread receiver_;
};

}  // namespace

int main(int argc, char** argv) {
    std::size_t const bytes = (argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1024) << 20U;
    int const runs = argc > 2 ? std::atoi(argv[2]) : 5;

    auto from = bench::touched(bytes, 1);
    auto to = bench::touched(bytes, 0);
    device const staged{device_kind::host, 0};
    stream<host_runtime> queue{staged};
    auto* const on_device =
        static_cast<std::byte*>(host_runtime::allocate(bytes, staged, queue.ref()));
    std::memset(on_device, 0, bytes);

    bench::variant memcpy_whole{"memcpy, whole"};
    bench::variant memcpy_pieces{"memcpy, 64 MiB pieces"};
    bench::variant direct{"local, resident (cpu)"};
    bench::variant through_slots{"local, staged cpu -> host:0"};

    pair_of_ranks resident{from.data(), to.data(), bytes, cpu_device, runs + 1};
    // The receiver's tensors lie on host:0, so that only the sender stages.
    pair_of_ranks mismatched{from.data(), on_device, bytes, staged, runs + 1};

    constexpr std::size_t piece = std::size_t{64} << 20U;
    auto const counters_before = host_runtime::memory(staged);
    for (int run = 0; run <= runs; ++run) {  // the first one warms up
        double const whole = bench::seconds([&] { std::memcpy(to.data(), from.data(), bytes); });
        double const pieces = bench::seconds([&] {
            for (std::size_t at = 0; at < bytes; at += piece) {
                std::memcpy(to.data() + at, from.data() + at, std::min(piece, bytes - at));
            }
        });
        double const cpu = bench::seconds([&] { resident.update(); });
        double const host = bench::seconds([&] { mismatched.update(); });
        if (run == 0) continue;
        memcpy_whole.runs.push_back(whole);
        memcpy_pieces.runs.push_back(pieces);
        direct.runs.push_back(cpu);
        through_slots.runs.push_back(host);
    }
    auto const counters = host_runtime::memory(staged);

    double const size = static_cast<double>(bytes);
    double const best = std::max(memcpy_whole.gb_per_s(size), memcpy_pieces.gb_per_s(size));
    fmt::print(
        "dense over local, {} MiB, 1 receiver, median of {} [slowest fastest], ratio to the better memcpy\n",
        bytes >> 20U, runs);
    for (auto const* v : {&memcpy_whole, &memcpy_pieces, &direct, &through_slots})
        bench::print(*v, size, best);
    fmt::print("staging on host:0 beyond the tensors: peak {} MiB, after the runs {} MiB\n",
               (counters.peak - counters_before.active) >> 20U,
               (counters.active - counters_before.active) >> 20U);
}
