// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/model is host-only: include it from a .cpp file"
#endif
// The plain source: tensors that exist already, sent as they are.

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <weightcast/base/error.hpp>
#include <weightcast/model/concepts.hpp>
#include <weightcast/model/parameter.hpp>
#include <weightcast/tensor/device.hpp>

namespace weightcast {

/// What a source hands out: a tensor under the name that it was announced with.
template <DeviceTensor T>
struct source_tensor {
    std::string_view name;
    T tensor;
};

/// Named tensors in the order in which they were added; refers to their memory.
template <MemorySpace Space = host_space>
class table_source {
  public:
    /// @throws bad_argument  for an empty name
    template <DeviceTensor T>
        requires std::same_as<space_of<T>, Space>
    void add(std::string_view name, T const& tensor, weight_role role = weight_role::base) {
        if (name.empty()) throw bad_argument{"a parameter needs a name"};
        parameters_.push_back(parameter_of(name, tensor, role));
        tensors_.push_back(view_of(tensor));
    }

    std::span<parameter const> parameters() const noexcept { return parameters_; }
    tensor_placement placement(std::size_t index) const noexcept {
        return {tensors_[index].where(), tensors_[index].contiguous()};
    }
    template <class StreamRef>
    source_tensor<const_tensor_view<Space>> tensor(std::size_t index, StreamRef) const {
        return {parameters_[index].name, tensors_[index]};
    }

  private:
    std::vector<parameter> parameters_;
    std::vector<const_tensor_view<Space>> tensors_;
};

}  // namespace weightcast
