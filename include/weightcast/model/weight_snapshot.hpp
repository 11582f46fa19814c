// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/model is host-only: include it from a .cpp file"
#endif
// One version of a target's weights, held by a reader.

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include <weightcast/base/error.hpp>
#include <weightcast/model/parameter_table.hpp>
#include <weightcast/model/snapshot_gate.hpp>
#include <weightcast/model/weight_version.hpp>
#include <weightcast/tensor/tensor_view.hpp>

namespace weightcast {

/// All its tensors are of its version as long as it lives. Moves, does not copy; of one thread at a time; the tables
/// that made it must outlive it. Under `in_place` an update waits for it, under `shadow` the one after the next.
template <DeviceRuntime R, class Memory>
class [[nodiscard]] weight_snapshot {
  public:
    using view = const_tensor_view<typename R::space>;

    weight_snapshot(parameter_table<R> const& table, Memory const& memory, snapshot_gate& gate,
                    deadline until)
        : table_{&table}, memory_{&memory}, entry_{gate.enter(until)}, gate_{&gate} {}
    weight_snapshot(weight_snapshot&& other) noexcept
        : table_{other.table_},
          memory_{other.memory_},
          entry_{std::move(other.entry_)},
          gate_{std::exchange(other.gate_, nullptr)} {}
    weight_snapshot& operator=(weight_snapshot&&) = delete;
    ~weight_snapshot() {
        if (gate_ != nullptr) gate_->leave(entry_.set);
    }

    weight_version const& version() const noexcept { return entry_.version; }
    /// An own tensor of the engine. @throws bad_argument  for one that is not there
    view tensor(std::string_view name) const {
        auto const* own = table_->find(name);
        if (own == nullptr)
            throw bad_argument{"snapshot: there is no own tensor '" + std::string{name} + "'"};
        return memory_->in_set(*own, entry_.set);
    }

  private:
    parameter_table<R> const* table_;
    Memory const* memory_;
    snapshot_gate::entry entry_;
    snapshot_gate* gate_;
};

}  // namespace weightcast
