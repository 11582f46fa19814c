// SPDX-License-Identifier: Apache-2.0
// A tensor type of your own: one specialisation, and the compiler checks the contract.

#include <cstdint>
#include <iostream>
#include <thread>
#include <vector>

#include <weightcast/weightcast.hpp>

/// A matrix as some engine has it.
struct matrix {
    std::int64_t rows;
    std::int64_t columns;
    std::vector<double> values;
};

template <>
struct weightcast::tensor_traits<matrix> {
    using space = host_space;
    static void const* data(matrix const& m) { return m.values.data(); }
    static void* mutable_data(matrix& m) { return m.values.data(); }
    static dtype element_type(matrix const&) { return dtype::float64; }
    static device where(matrix const&) { return cpu_device; }
    static extents shape(matrix const& m) { return {m.rows, m.columns}; }
};
static_assert(weightcast::explain_writable_device_tensor<matrix>());
static_assert(weightcast::ReceivableInto<matrix, weightcast::local_communicator>);

int main() {
    using namespace weightcast;
    local_group const group{2};
    matrix received{2, 2, std::vector<double>(4)};
    std::jthread engine{[&] {
        auto communicator = group.join(1);
        receive_into(communicator, received, 0);
    }};
    matrix const sent{2, 2, {1, 2, 3, 4}};
    auto communicator = group.join(0);
    auto pending = broadcast_aligned(communicator, sent);
    pending.wait(deadline::after(std::chrono::seconds{10}));
    engine.join();
    std::cout << "received " << received.values[3] << '\n';
    return received.values == sent.values ? 0 : 1;
}
