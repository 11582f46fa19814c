// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a worker holds: memory, the tables through which updates reach it, and what is read of it.

#include <chrono>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include <program/tensor_parallel.hpp>
#include <program/weight_memory.hpp>

#include <weightcast/base/deadline.hpp>
#include <weightcast/model/commit_policy.hpp>
#include <weightcast/model/parameter_tables.hpp>
#include <weightcast/tensor/named_view.hpp>

namespace weightcast::program {

/// The weights of one worker under a commit policy. Everything is read through snapshots: only they know where the
/// version lies that is served. Snapshots may be taken on any thread.
template <CommitPolicy<host_runtime> Policy>
class held_weights {
  public:
    using tables_type = parameter_tables<host_runtime, Policy>;
    using snapshot_type = typename tables_type::snapshot_type;

    /// What that rank holds of a model with these parameters.
    held_weights(std::span<parameter const> parameters, shard_position at)
        : own_{own_tensors(parameters, at.ranks)}, memory_{parameters_of(own_, at)} {
        auto& table = tables_.main();
        for (std::size_t i = 0; i < own_.size(); ++i) {
            if (own_[i].how == own_tensor::cut::replicated) {
                table.add(own_[i].name, memory_.tensor(i));
            } else {
                table.add(own_[i].name, layout_of(own_[i], at), memory_.tensor(i));
            }
        }
    }
    tables_type& tables() noexcept { return tables_; }

    /// @throws timeout  what an update writes cannot be read
    snapshot_type snapshot() const {
        return tables_.snapshot(deadline::after(std::chrono::seconds{10}));
    }
    /// All own tensors, in their order. Valid as long as the snapshot, and this.
    std::vector<named_view<>> tensors(snapshot_type const& snapshot) const {
        std::vector<named_view<>> all;
        for (auto const& p : memory_.parameters()) all.push_back({p.name, snapshot.tensor(p.name)});
        return all;
    }
    /// Damages what is served: the last byte of the largest tensor.
    void flip_one_byte() {
        auto const held = snapshot();
        std::span<std::byte> largest;
        for (auto const& t : tensors(held)) {
            if (t.tensor.bytes() <= largest.size()) continue;
            auto* const first =
                const_cast<std::byte*>(static_cast<std::byte const*>(t.tensor.data()));
            largest = {first, static_cast<std::size_t>(t.tensor.bytes())};
        }
        if (!largest.empty()) largest.back() ^= std::byte{1};
    }

  private:
    std::vector<own_tensor> own_;
    weight_memory memory_;
    tables_type tables_;
};

}  // namespace weightcast::program
