// SPDX-License-Identifier: Apache-2.0
// A tensor is sent and received by proof that it is on the communicator's device, and a proof stays in its scope.
//
// case 1: broadcast_from takes a proof that the tensor is on the communicator's device
// case 2: broadcast_into takes a proof that the buffer may be written on the communicator's device
// case 3: send_to takes a proof that the tensor is on the communicator's device
// case 4: receive_from takes a proof that the buffer may be written on the communicator's device
// case 5: all_reduce takes a proof that the buffer may be written on the communicator's device
// case 6: broadcast_from takes a proof
// case 7 [gcc]: use of deleted function .*resident\(const .*resident
// case 7 [clang]: call to implicitly-deleted copy constructor of '.*resident<
// case 8 [gcc]: use of deleted function .*resident\(
// case 8 [clang]: call to implicitly-deleted copy constructor of '.*resident<
// case 9 [gcc]: use of deleted function .*operator=
// case 9 [clang]: copy assignment operator is implicitly deleted
// case 10 [gcc]: use of deleted function .*writable_resident\(const
// case 10 [clang]: call to implicitly-deleted copy constructor of '.*writable_resident<
// case 11: a proof may not outlive its scope: name the alignment_scope before you align with it
// case 12: a proof may not outlive its scope: name the alignment_scope before you require with it
// case 13 [gcc]: proof\(weightcast::alignment_scope.* is protected within this context
// case 13 [clang]: calling a protected constructor of class '.*proof<
// case 14 [gcc]: use of deleted function .*alignment_scope\(const
// case 14 [clang]: call to deleted constructor of 'alignment_scope<
// case 15: broadcast_into takes a proof that the buffer may be written.*a proof to read is not one
// case 16: broadcast_from takes a proof that the tensor is on the communicator's device
// case 17 [gcc]: cannot convert 'const .*writable_resident<.*' to 'const .*resident<
// case 17 [clang]: no viable conversion from 'const writable_resident<
// case 18: all_reduce takes a proof that the buffer may be written on the communicator's device

#include <utility>
#include <vector>

#include <weightcast/align.hpp>
#include <weightcast/comm/local_communicator.hpp>
#include <weightcast/tensor/range_tensor.hpp>

using namespace weightcast;

// A second kind of group, whose proofs are of another type.
class other_communicator : public communicator_operations<other_communicator> {
  public:
    using runtime = host_runtime;
    other_communicator() = default;
    int rank() const noexcept { return 0; }
    int size() const noexcept { return 1; }
    device where() const noexcept { return cpu_device; }
    communicator_core<host_runtime>& core() noexcept;
    void const* identity() const noexcept { return this; }
    void abort() noexcept {}
    bool outstanding() const noexcept { return false; }
    bool failed() const noexcept { return false; }
};

void positive(local_communicator& group, std::vector<float>& weights) {
    alignment_scope scope{group};
    auto const read = scope.align(weights);
    group.broadcast_from(read);
    group.send_to(read, 1);
    auto const write = scope.require(weights);
    group.broadcast_into(write, 0);
    group.receive_from(write, 1);
    group.all_reduce(write, reduction::sum);
    auto gathered = scope.send_group();
    gathered.add(read);
    group.broadcast_from(gathered);
}

#if WEIGHTCAST_CASE != 0
void negative(local_communicator& group, other_communicator& other, std::vector<float>& weights) {
    alignment_scope scope{group};
    alignment_scope elsewhere{other};
    auto const read = scope.align(weights);
    auto const write = scope.require(weights);
    auto gathered = scope.send_group();
#if WEIGHTCAST_CASE == 1
    group.broadcast_from(weights);
#elif WEIGHTCAST_CASE == 2
    group.broadcast_into(weights, 0);
#elif WEIGHTCAST_CASE == 3
    group.send_to(weights, 1);
#elif WEIGHTCAST_CASE == 4
    group.receive_from(weights, 1);
#elif WEIGHTCAST_CASE == 5
    group.all_reduce(weights, reduction::sum);
#elif WEIGHTCAST_CASE == 6
    group.broadcast_from(weights.data());
#elif WEIGHTCAST_CASE == 7
    auto copy = read;
#elif WEIGHTCAST_CASE == 8
    auto moved = std::move(read);
#elif WEIGHTCAST_CASE == 9
    auto another = scope.align(weights);
    another = read;
#elif WEIGHTCAST_CASE == 10
    auto copy = write;
#elif WEIGHTCAST_CASE == 11
    group.broadcast_from(alignment_scope{group}.align(weights));
#elif WEIGHTCAST_CASE == 12
    group.broadcast_into(alignment_scope{group}.require(weights), 0);
#elif WEIGHTCAST_CASE == 13
    resident<local_communicator> const forged{scope, detail::proof_facts{}};
#elif WEIGHTCAST_CASE == 14
    auto copy = scope;
#elif WEIGHTCAST_CASE == 15
    group.broadcast_into(read, 0);
#elif WEIGHTCAST_CASE == 16
    group.broadcast_from(elsewhere.align(weights));
#elif WEIGHTCAST_CASE == 17
    gathered.add(write);
#elif WEIGHTCAST_CASE == 18
    group.all_reduce(read, reduction::sum);
#endif
}
#endif
