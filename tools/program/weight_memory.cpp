// SPDX-License-Identifier: Apache-2.0
#include <program/weight_memory.hpp>

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <weightcast/base/byte_count.hpp>
#include <weightcast/base/error.hpp>

namespace weightcast::program {

namespace {

constexpr std::uint64_t alignment = 64;

}  // namespace

void weight_memory::unmap::operator()(std::byte* block) const noexcept { ::munmap(block, bytes); }

weight_memory::weight_memory(std::vector<parameter> parameters)
    : parameters_{std::move(parameters)} {
    std::uint64_t end = 0;
    for (auto const& p : parameters_) {
        offsets_.push_back(end);
        bytes_ = checked_add(bytes_, p.bytes());
        end = align_up(checked_add(end, p.bytes()), alignment);
    }
    if (end == 0) end = alignment;  // so that an empty tensor has an address too
    auto* const block = ::mmap(nullptr, end, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (block == MAP_FAILED) {
        throw out_of_memory{"there is no memory for a copy of the model of " +
                            std::to_string(bytes_) + " bytes"};
    }
    block_ = {static_cast<std::byte*>(block), unmap{end}};
}

std::span<std::byte> weight_memory::bytes_of(std::size_t index) const {
    return {block_.get() + offsets_[index], parameters_[index].bytes()};
}

tensor_view<> weight_memory::tensor(std::size_t index) const {
    auto const& p = parameters_[index];
    return {bytes_of(index).data(), p.type, p.shape};
}

std::vector<named_view<>> weight_memory::tensors() const {
    std::vector<named_view<>> all;
    for (std::size_t i = 0; i < size(); ++i) all.push_back({parameters_[i].name, tensor(i)});
    return all;
}

}  // namespace weightcast::program
