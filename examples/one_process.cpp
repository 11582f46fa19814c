// SPDX-License-Identifier: Apache-2.0
// A trainer and two engines in one process: ranks are threads, and nothing but this file is needed.

#include <iostream>
#include <thread>
#include <vector>

#include <weightcast/weightcast.hpp>

using namespace weightcast;

namespace {

constexpr int steps = 3;
constexpr int ranks = 3;

/// What an engine holds, and the loop that keeps it up to date.
float serve(local_group const& group, int rank) {
    std::vector<float> weights(1'000'000);
    parameter_tables<> tables;
    tables.main().add("layer.0.weight",
                      tensor_view<>{weights.data(), dtype::float32, {1000, 1000}});
    weight_worker worker{dense_engine{already_joined(group.join(rank)), tables},
                         group_init{.rank = rank, .size = ranks}};
    for (int step = 0; step < steps; ++step) worker.serve_one();
    return weights[0];
}

}  // namespace

int main() {
    local_group const group{ranks};
    float held[ranks] = {};
    {
        std::jthread const first{[&] { held[1] = serve(group, 1); }};
        std::jthread const second{[&] { held[2] = serve(group, 2); }};

        std::vector<float> weights(1'000'000, 1.0F);
        table_source<> model;
        model.add("layer.0.weight", tensor_view<>{weights.data(), dtype::float32, {1000, 1000}});
        weight_sender sender{dense_trainer{already_joined(group.join(0))},
                             {{.rank = 0, .size = ranks}}};
        for (int step = 1; step <= steps; ++step) {
            weights[0] = static_cast<float>(step);
            sender.update(model).or_throw();
        }
    }
    std::cout << "the engines hold " << held[1] << " and " << held[2] << '\n';
    return held[1] == steps && held[2] == steps ? 0 : 1;
}
