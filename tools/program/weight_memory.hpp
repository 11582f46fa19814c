// SPDX-License-Identifier: Apache-2.0
#pragma once
// The memory of one copy of a model: what a worker receives into, and what the trainer trains.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <weightcast/model/parameter.hpp>
#include <weightcast/tensor/named_view.hpp>
#include <weightcast/tensor/tensor_view.hpp>

namespace weightcast::program {

/// Zeroed memory for the tensors of a model, in the order of its parameters. Its pages have been touched, so
/// that no transfer pays for them.
class weight_memory {
  public:
    /// @throws out_of_memory  naming the bytes that were asked for
    explicit weight_memory(std::vector<parameter> parameters);

    std::span<parameter const> parameters() const noexcept { return parameters_; }
    std::size_t size() const noexcept { return parameters_.size(); }
    /// Of all tensors, gaps between them not counted.
    std::uint64_t bytes() const noexcept { return bytes_; }

    std::span<std::byte> bytes_of(std::size_t index) const;
    tensor_view<> tensor(std::size_t index) const;
    /// All of them, in the order of the parameters.
    std::vector<named_view<>> tensors() const;

  private:
    struct unmap {
        std::size_t bytes;
        void operator()(std::byte* block) const noexcept;
    };
    std::vector<parameter> parameters_;
    std::vector<std::uint64_t> offsets_;
    std::uint64_t bytes_ = 0;
    std::unique_ptr<std::byte, unmap> block_{nullptr, unmap{0}};
};

}  // namespace weightcast::program
