// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/engine is host-only: include it from a .cpp file"
#endif
// The order of an update's transfers, such that a source can be asked for its tensors from the first to the last.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include <weightcast/plan/announcement.hpp>
#include <weightcast/plan/packing_plan.hpp>

namespace weightcast::detail {

/// The name under which a chunk's operation is reported: its first tensor.
inline std::string_view chunk_name(packed_chunk const& chunk, announcement const& a) {
    return a.parameters[chunk.members.front().tensor].name;
}

/// Direct tensors [first, last) of one root that form one operation.
struct direct_window {
    std::size_t first = 0;
    std::size_t last = 0;
    int root = 0;
    std::uint64_t bytes = 0;
};

/// Cuts the direct tensors where the root changes, and after so many rings of bytes: a source that makes its
/// tensors for the moment holds no more than a window.
inline std::vector<direct_window> direct_windows(packing_plan const& plan, announcement const& a) {
    constexpr std::uint64_t rings = 4;
    std::uint64_t const limit = rings * plan.options().ring * plan.options().chunk_bytes;
    std::vector<direct_window> windows;
    auto const direct = plan.direct();
    for (std::size_t i = 0; i < direct.size(); ++i) {
        if (windows.empty() || windows.back().root != direct[i].root ||
            windows.back().bytes >= limit) {
            windows.push_back({i, i, direct[i].root, 0});
        }
        windows.back().last = i + 1;
        windows.back().bytes += a.parameters[direct[i].tensor].bytes();
    }
    return windows;
}

/// One operation of the payload: a chunk of the plan, or a window of direct tensors.
struct transfer_step {
    packed_chunk const* chunk = nullptr;  ///< null: the window
    direct_window window{};
    std::size_t last_tensor = 0;  ///< the highest index that it needs
};

/// The payload's operations in the order in which every rank runs them: by the highest index that each needs.
/// So the tensors are needed in index order, whatever each group had to have packed: a rank outside every group
/// can walk its source in the same order as those inside. Refers to the plan's chunks.
inline std::vector<transfer_step> transfer_steps(packing_plan const& plan, announcement const& a) {
    std::vector<transfer_step> steps;
    for (auto const& chunk : plan.chunks()) {
        steps.push_back({&chunk, {}, chunk.members.back().tensor});
    }
    for (auto const& window : direct_windows(plan, a)) {
        steps.push_back({nullptr, window, plan.direct()[window.last - 1].tensor});
    }
    std::ranges::stable_sort(steps, {}, &transfer_step::last_tensor);
    return steps;
}

/// The name under which a step's operation is reported: its first tensor.
inline std::string_view step_name(transfer_step const& step, packing_plan const& plan,
                                  announcement const& a) {
    if (step.chunk != nullptr) return chunk_name(*step.chunk, a);
    return a.parameters[plan.direct()[step.window.first].tensor].name;
}

}  // namespace weightcast::detail
