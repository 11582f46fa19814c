// SPDX-License-Identifier: Apache-2.0
// A communicator sends and receives memory of its own space; receiving never stages, and never into const.
//
// case 1: the tensor lies in another memory space than the communicator's
// case 2: the tensor lies in another memory space than the communicator's
// case 3: the destination lies in another memory space than the communicator's; receiving never stages
// case 4: the destination lies in another memory space than the communicator's; receiving never stages
// case 5: const elements cannot be received into
// case 6: const elements cannot be received into
// case 7: const elements cannot be received into
// case 8: the tensor is no DeviceTensor; ranges of numbers are with
// case 9: the tensor is no DeviceTensor; ranges of numbers are with
// case 10: Broadcastable: the tensor lies in another memory space
// case 11: ReceivableInto: the destination lies in another memory space

#include <string>
#include <vector>

#include <weightcast/align.hpp>
#include <weightcast/comm/local_communicator.hpp>
#include <weightcast/tensor/range_tensor.hpp>

using namespace weightcast;

void positive(local_communicator& group, std::vector<float>& weights,
              tensor_view<dynamic_space> known_later) {
    alignment_scope scope{group};
    group.broadcast_from(scope.align(weights));
    group.broadcast_from(scope.align(known_later));
    group.broadcast_into(scope.require(weights), 0);
    auto const sent = std::vector<float>{weights};
    broadcast_aligned(group, sent).wait(deadline::after(std::chrono::seconds{1}));
    receive_into(group, known_later, 0);
    static_assert(explain_broadcastable<tensor_view<host_space>, local_communicator>());
    static_assert(explain_receivable_into<tensor_view<host_space>, local_communicator>());
}

#if WEIGHTCAST_CASE != 0
void negative(local_communicator& group, tensor_view<cuda_space> on_gpu,
              std::vector<float> const& constant) {
    alignment_scope scope{group};
    const_tensor_view<host_space> const view = view_of(constant);
#if WEIGHTCAST_CASE == 1
    group.broadcast_from(scope.align(on_gpu));
#elif WEIGHTCAST_CASE == 2
    auto sent = broadcast_aligned(group, on_gpu);
#elif WEIGHTCAST_CASE == 3
    group.broadcast_into(scope.require(on_gpu), 0);
#elif WEIGHTCAST_CASE == 4
    receive_into(group, on_gpu, 0);
#elif WEIGHTCAST_CASE == 5
    group.broadcast_into(scope.require(constant), 0);
#elif WEIGHTCAST_CASE == 6
    group.broadcast_into(scope.require(view), 0);
#elif WEIGHTCAST_CASE == 7
    receive_into(group, constant, 0);
#elif WEIGHTCAST_CASE == 8
    group.broadcast_from(scope.align(std::string{"no tensor"}));
#elif WEIGHTCAST_CASE == 9
    auto sent = broadcast_aligned(group, 3);
#elif WEIGHTCAST_CASE == 10
    static_assert(explain_broadcastable<tensor_view<cuda_space>, local_communicator>());
#elif WEIGHTCAST_CASE == 11
    static_assert(explain_receivable_into<tensor_view<cuda_space>, local_communicator>());
#endif
}
#endif
