// SPDX-License-Identifier: Apache-2.0
// A reader's latency while updates arrive under `shadow`, and while plain memcpy moves the same bytes a second on the
// same cores.
//   shadow_reader [MiB] [runs]

#include <algorithm>
#include <atomic>
#include <chrono>
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
#include <weightcast/model/shadow.hpp>
#include <weightcast/model/table_source.hpp>
#include <weightcast/session/weight_sender.hpp>
#include <weightcast/session/weight_worker.hpp>

#include "measure.hpp"

namespace {

using namespace weightcast;
using clock_type = std::chrono::steady_clock;
using tables_type = parameter_tables<host_runtime, shadow>;
using trainer = dense_trainer<local_communicator>;
using engine = dense_engine<local_communicator, tables_type>;

constexpr std::size_t tensor_count = 16;
constexpr std::size_t read_bytes = std::size_t{1} << 20U;  // of the weights, a pass

/// A pass of a reader: takes a snapshot, multiplies through a part of its weights.
double pass(tables_type const& tables, std::vector<float>& sums) {
    return bench::seconds([&] {
        auto const now = tables.snapshot(deadline::after(std::chrono::seconds{10}));
        auto const tensor = now.tensor("layer.0");
        auto const* weights = static_cast<float const*>(tensor.data());
        float sum = 0;
        for (std::size_t i = 0; i < read_bytes / 4; ++i) sum += weights[i] * 1.5F;
        sums.push_back(sum);
    });
}
/// Passes until the other side is done.
std::vector<double> passes_during(tables_type const& tables, std::atomic<bool> const& over) {
    std::vector<double> latencies;
    std::vector<float> sums;
    while (!over) latencies.push_back(pass(tables, sums));
    return latencies;
}
double quantile(std::vector<double> values, double q) {
    std::ranges::sort(values);
    return values[static_cast<std::size_t>(q * static_cast<double>(values.size() - 1))];
}

/// memcpy in pieces, as many bytes a second as asked for.
void copy_at(double bytes_per_second, double seconds, std::byte* to, std::byte const* from,
             std::size_t bytes) {
    constexpr std::size_t piece = std::size_t{1} << 20U;
    auto const begin = clock_type::now();
    double moved = 0;
    for (std::size_t at = 0;; at = (at + piece) % bytes) {
        std::memcpy(to + at, from + at, std::min(piece, bytes - at));
        moved += static_cast<double>(std::min(piece, bytes - at));
        std::chrono::duration<double> const due{moved / bytes_per_second};
        std::this_thread::sleep_until(begin +
                                      std::chrono::duration_cast<clock_type::duration>(due));
        if (std::chrono::duration<double>(clock_type::now() - begin).count() > seconds) return;
    }
}

}  // namespace

int main(int argc, char** argv) {
    std::size_t const bytes = (argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 256) << 20U;
    int const runs = argc > 2 ? std::atoi(argv[2]) : 5;
    constexpr int updates = 10;  // a run

    auto from = bench::touched(bytes, 0);
    auto to = bench::touched(bytes, 0);
    auto spare = bench::touched(bytes, 0);
    local_group const group{2};
    table_source<> source;
    tables_type tables;
    std::size_t const each = bytes / tensor_count;
    for (std::size_t i = 0; i < tensor_count; ++i) {
        auto const name = "layer." + std::to_string(i);
        extents const shape{static_cast<std::int64_t>(each / 4)};
        source.add(name, tensor_view<>{from.data() + i * each, dtype::float32, shape});
        tables.main().add(name, tensor_view<>{to.data() + i * each, dtype::float32, shape});
    }
    weight_sender<trainer> sender{trainer{already_joined(group.join(0))},
                                  {group_init{.rank = 0, .size = 2}}};
    std::jthread const receiver{[&] {
        weight_worker worker{engine{already_joined(group.join(1)), tables},
                             group_init{.rank = 1, .size = 2}};
        for (int i = 0; i < 1 + updates * runs; ++i) worker.serve_one();
    }};
    sender.update(source).or_throw();

    std::vector<double> p50s;
    std::vector<double> p99s;
    double rate = 0;
    for (int run = 0; run < runs; ++run) {
        std::vector<double> during_updates;
        std::vector<double> during_memcpy;
        double seconds = 0;
        auto const beside = [&](auto const& work, std::vector<double>& latencies) {
            std::atomic<bool> over{false};
            std::jthread const reader{[&] { latencies = passes_during(tables, over); }};
            seconds = bench::seconds(work);
            over = true;
        };
        beside(
            [&] {
                for (int i = 0; i < updates; ++i) sender.update(source).or_throw();
            },
            during_updates);
        rate = static_cast<double>(bytes) * updates / seconds;
        beside([&] { copy_at(rate, seconds, spare.data(), from.data(), bytes); }, during_memcpy);
        p50s.push_back(quantile(during_updates, 0.5) / quantile(during_memcpy, 0.5));
        p99s.push_back(quantile(during_updates, 0.99) / quantile(during_memcpy, 0.99));
    }
    fmt::print(
        "a reader of 1 MiB a pass beside updates of {} MiB under shadow ({:.2f} GB/s), to the same beside "
        "memcpy of the same bytes a second, median of {}\n"
        "  latency p50 {:.2f}, p99 {:.2f}\n",
        bytes >> 20U, rate / 1e9, runs, bench::median(p50s), bench::median(p99s));
}
