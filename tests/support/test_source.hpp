// SPDX-License-Identifier: Apache-2.0
// A source that records what the library asks of it, and that can be made to lie or to fail.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <support/test_model.hpp>
#include <weightcast/model/concepts.hpp>

namespace weightcast::test {

/// A model's tensors, with a record and hooks. `asked` lists the indices of calls of tensor().
class recording_source {
  public:
    explicit recording_source(test_model const& model) : inner_{model.source()} {}

    std::vector<std::size_t> asked{};
    /// Called before tensor i is handed out; may throw.
    std::function<void(std::size_t)> before{};
    /// The index that is handed out for i.
    std::function<std::size_t(std::size_t)> which{};

    std::span<parameter const> parameters() const noexcept { return inner_.parameters(); }
    tensor_placement placement(std::size_t index) const noexcept { return inner_.placement(index); }
    source_tensor<const_tensor_view<>> tensor(std::size_t index, host_stream_ref stream) {
        asked.push_back(index);
        if (before) before(index);
        return inner_.tensor(which ? which(index) : index, stream);
    }

  private:
    table_source<> inner_;
};
static_assert(WeightSource<recording_source, host_runtime>);

/// The same, its tensors made for the moment: each is released exactly once.
class momentary_source : public recording_source {
  public:
    using recording_source::recording_source;
    std::vector<std::size_t> released{};
    std::size_t most_held = 0;

    source_tensor<const_tensor_view<>> tensor(std::size_t index, host_stream_ref stream) {
        auto given = recording_source::tensor(index, stream);
        most_held = std::max(most_held, asked.size() - released.size());
        return given;
    }
    void release(std::size_t index, host_stream_ref) { released.push_back(index); }
};
static_assert(has_tensor_release<momentary_source, host_runtime>);

/// 0, 1, ... count - 1.
inline std::vector<std::size_t> each_once(std::size_t count) {
    std::vector<std::size_t> all;
    for (std::size_t i = 0; i < count; ++i) all.push_back(i);
    return all;
}

}  // namespace weightcast::test
