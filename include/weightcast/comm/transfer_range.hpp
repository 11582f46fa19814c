// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the raw entry of a communicator sees of a proof: bytes, and whose they are.

#include <cstddef>
#include <cstdint>

#include <weightcast/base/operation.hpp>

namespace weightcast {

/// Bytes on a communicator's device. Trivially copyable: queued operations carry it.
struct transfer_range {
    void* data = nullptr;
    std::size_t bytes = 0;
    operation_label label{};
};

/// What an all-reduce does to corresponding elements.
enum class reduction : std::uint8_t { sum, min, max };

constexpr char const* to_string(reduction how) noexcept {
    switch (how) {
        case reduction::min: return "min";
        case reduction::max: return "max";
        case reduction::sum: break;
    }
    return "sum";
}

}  // namespace weightcast
