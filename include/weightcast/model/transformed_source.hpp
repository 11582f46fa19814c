// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/model is host-only: include it from a .cpp file"
#endif
// A source over another one: each tensor becomes n, e.g. a float32 master its bfloat16 cast.

#include <cstddef>
#include <map>
#include <ranges>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <weightcast/base/error.hpp>
#include <weightcast/model/concepts.hpp>
#include <weightcast/model/parameter.hpp>
#include <weightcast/model/table_source.hpp>
#include <weightcast/runtime/device_buffer.hpp>

namespace weightcast {

/// Sends what the transform makes of the inner source's tensors, on their devices. Outputs live from
/// `tensor` to `release`, in stream order: at most the outputs of one window are in memory at once. The inner
/// source is asked for a tensor once for each of its outputs.
template <DeviceRuntime R, WeightSource<R> Inner, WeightTransform<R> F>
class transformed_source {
  public:
    using space = typename R::space;

    transformed_source(Inner inner, F transform)
        : inner_{std::move(inner)}, transform_{std::move(transform)} {
        auto const inputs = inner_.parameters();
        for (std::size_t i = 0; i < inputs.size(); ++i) {
            auto made = transform_.outputs(inputs[i]);
            for (std::size_t k = 0; k < made.size(); ++k) {
                parameters_.push_back(std::move(made[k]));
                origins_.push_back({i, k});
            }
        }
    }

    std::span<parameter const> parameters() const noexcept { return parameters_; }
    /// Outputs are made on the input's device.
    tensor_placement placement(std::size_t index) const {
        return {inner_.placement(origins_[index].input).where, true};
    }

    /// @throws whatever the transform throws; nothing was sent of this tensor
    source_tensor<const_tensor_view<space>> tensor(std::size_t index,
                                                   typename R::stream_ref stream) {
        auto const input = origins_[index].input;
        auto const given = inner_.tensor(input, stream);
        inner_release const release{inner_, input, stream};
        auto const& made = parameters_[index];
        auto const from = view_of(given.tensor);
        auto const where = from.where().is_resolved() ? from.where() : R::locate(from.data());
        device_buffer<R> memory{static_cast<std::size_t>(made.bytes()), where, stream};
        tensor_view<space> const to = memory.view(made.type, made.shape);
        transform_.apply(from, inner_.parameters()[input], origins_[index].output, to, stream);
        buffers_.insert_or_assign(index, std::move(memory));
        return {made.name, to};
    }
    void release(std::size_t index, typename R::stream_ref stream) {
        auto const found = buffers_.find(index);
        if (found == buffers_.end()) return;
        found->second.give_back_on(stream);
        buffers_.erase(found);
    }

  private:
    // An inner tensor made for the moment goes behind the transform that reads it, also when that fails.
    struct inner_release {
        Inner& inner;
        std::size_t index;
        typename R::stream_ref stream;
        ~inner_release() {
            if constexpr (has_tensor_release<Inner, R>) inner.release(index, stream);
        }
    };
    struct origin {
        std::size_t input;
        std::size_t output;
    };
    Inner inner_;
    F transform_;
    std::vector<parameter> parameters_;
    std::vector<origin> origins_;
    std::map<std::size_t, device_buffer<R>> buffers_;
};

}  // namespace weightcast
