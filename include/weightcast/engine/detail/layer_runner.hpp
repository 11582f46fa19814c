// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/engine is host-only: include it from a .cpp file"
#endif
// Layers whose step runs when all of them has arrived, and what is held for them until then.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <weightcast/base/error.hpp>
#include <weightcast/model/layer_step.hpp>
#include <weightcast/plan/announcement.hpp>
#include <weightcast/runtime/device_buffer.hpp>

namespace weightcast::detail {

/// Of one update, on one stream. Inputs get memory when their first byte arrives, and lose it in the order of the stream
/// once their layer's step is enqueued.
template <DeviceRuntime R>
class layer_runner {
    using view = tensor_view<typename R::space>;
    using stream_ref = typename R::stream_ref;

  public:
    /// The runs and the announcement must outlive it.
    layer_runner(std::vector<layer_run<R>> const& runs, announcement const& agreed, device where,
                 stream_ref stream, std::uint64_t limit)
        : runs_{runs}, agreed_{agreed}, where_{where}, stream_{stream}, limit_{limit} {
        for (std::size_t r = 0; r < runs.size(); ++r) {
            auto const wait_for = [&](std::size_t tensor) {
                waiting_[tensor].push_back(r);
                left_.try_emplace(tensor, agreed.parameters[tensor].bytes());
            };
            for (auto const t : runs[r].inputs) wait_for(t);
            for (auto const t : runs[r].after) wait_for(t);
            open_.push_back(runs[r].inputs.size() + runs[r].after.size());
        }
    }

    /// Tensors without bytes never arrive: they are complete at the beginning. `around(layer, run)` calls run() for each
    /// step that is to be run.
    template <class Around>
    void begin(Around const& around) {
        std::vector<std::size_t> empty;
        for (auto const& [tensor, left] : left_) {
            if (left == 0) empty.push_back(tensor);
        }
        for (auto const t : empty) complete(t, around);
    }
    /// Memory for an input, dense.
    /// @throws bad_input, out_of_memory  when what is held would exceed the limit; for memory that is not there
    view held(std::size_t tensor) {
        auto const& p = agreed_.parameters[tensor];
        auto found = buffers_.find(tensor);
        if (found == buffers_.end()) {
            auto const bytes = p.bytes();
            if (bytes > limit_ - held_) {
                throw out_of_memory{"tensor '" + p.name + "' would make " +
                                    std::to_string(held_ + bytes) +
                                    " bytes held for layers that are not complete; the limit is " +
                                    std::to_string(limit_)};
            }
            device_buffer<R> buffer{static_cast<std::size_t>(bytes), where_, stream_};
            found = buffers_.emplace(tensor, std::move(buffer)).first;
            held_ += bytes;
            peak_ = std::max(peak_, held_);
        }
        return found->second.view(p.type, p.shape);
    }
    /// Bytes of a tensor were put on the stream, or lie where they belong. Runs the steps that wait for nothing more.
    template <class Around>
    void arrived(std::size_t tensor, std::uint64_t bytes, Around const& around) {
        auto const found = left_.find(tensor);
        if (found == left_.end()) return;
        found->second -= bytes;
        if (found->second == 0) complete(tensor, around);
    }
    /// The most bytes that were held at a time.
    std::uint64_t peak() const noexcept { return peak_; }

  private:
    template <class Around>
    void complete(std::size_t tensor, Around const& around) {
        for (auto const r : waiting_[tensor]) {
            if (--open_[r] == 0) around(runs_[r].step->name, [&] { run(runs_[r]); });
        }
    }
    void run(layer_run<R> const& layer) {
        std::vector<typename layer_tensors<R>::named> inputs;
        for (auto const t : layer.inputs) {
            auto const& p = agreed_.parameters[t];
            auto const tensor = p.bytes() == 0 ? view{nullptr, p.type, p.shape, where_} : held(t);
            inputs.push_back({layer.step->inputs[inputs.size()].name, tensor});
        }
        layer_tensors<R> const tensors{layer.step->name, std::move(inputs), layer.outputs};
        try {
            layer.step->run(tensors, stream_);
        } catch (std::exception const& e) {
            throw error{"the step of layer '" + layer.step->name + "' failed: " + e.what()};
        }
        for (auto const t : layer.inputs) drop(t);
    }
    void drop(std::size_t tensor) {
        auto const found = buffers_.find(tensor);
        if (found == buffers_.end()) return;
        held_ -= agreed_.parameters[tensor].bytes();
        buffers_.erase(found);
    }

    std::vector<layer_run<R>> const& runs_;
    announcement const& agreed_;
    device where_;
    stream_ref stream_;
    std::uint64_t limit_;
    std::map<std::size_t, std::vector<std::size_t>> waiting_;  // runs by tensor
    std::map<std::size_t, std::uint64_t> left_;                // bytes by tensor
    std::vector<std::size_t> open_;                            // tensors by run
    std::map<std::size_t, device_buffer<R>> buffers_;
    std::uint64_t held_ = 0;
    std::uint64_t peak_ = 0;
};

}  // namespace weightcast::detail
