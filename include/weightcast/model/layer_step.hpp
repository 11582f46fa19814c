// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/model is host-only: include it from a .cpp file"
#endif
// What an engine does with a layer when all of it has arrived: quantise, transpose, repack.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <weightcast/base/error.hpp>
#include <weightcast/model/parameter.hpp>
#include <weightcast/runtime/concepts.hpp>
#include <weightcast/tensor/tensor_view.hpp>

namespace weightcast {

/// What a layer's step reads and writes. Valid until the step returns, for work on its stream.
template <DeviceRuntime R>
class layer_tensors {
  public:
    using view = tensor_view<typename R::space>;
    struct named {
        std::string name;
        view tensor;
    };
    layer_tensors(std::string_view layer, std::vector<named> inputs, std::vector<named> outputs)
        : layer_{layer}, inputs_{std::move(inputs)}, outputs_{std::move(outputs)} {}

    std::string_view layer() const noexcept { return layer_; }
    /// A checkpoint tensor as it was sent, dense and row-major. @throws bad_argument  for one that the step did not ask for
    const_tensor_view<typename R::space> input(std::string_view name) const {
        return find(inputs_, name, "input");
    }
    /// An own tensor of the engine, to be written: the memory in which it is served after the update.
    /// @throws bad_argument  for one that the step did not name
    view output(std::string_view name) const { return find(outputs_, name, "output"); }

  private:
    view find(std::vector<named> const& all, std::string_view name, char const* kind) const {
        for (auto const& one : all) {
            if (one.name == name) return one.tensor;
        }
        throw bad_argument{"layer '" + std::string{layer_} + "' has no " + kind + " '" +
                           std::string{name} + "'"};
    }
    std::string_view layer_;
    std::vector<named> inputs_;
    std::vector<named> outputs_;
};

/// Runs once an update, when the last byte of all that it names has arrived, in whatever order that comes.
template <DeviceRuntime R>
struct layer_step {
    std::string name{};  ///< for messages: "model.layers.3"
    std::vector<parameter>
        inputs{};  ///< checkpoint tensors: held until the step has read them, then dropped
    std::vector<std::string>
        after{};  ///< own tensors or checkpoint tensors that go where they belong; waited for
    std::vector<std::string>
        outputs{};  ///< own tensors (parameter_table::add_output) that the step writes
    /// Enqueues its work on the stream and returns. What it throws is this rank's no at the vote.
    std::function<void(layer_tensors<R> const&, typename R::stream_ref)> run{};
};

/// A step of one update: indices of announced parameters.
template <DeviceRuntime R>
struct layer_run {
    layer_step<R> const* step = nullptr;
    std::vector<std::size_t> inputs{};  ///< in the order of step->inputs
    std::vector<std::size_t> after{};
    std::vector<typename layer_tensors<R>::named> outputs{};
};

}  // namespace weightcast
