// SPDX-License-Identifier: Apache-2.0
#include <program/weight_file.hpp>

#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <program/exit_code.hpp>

#include <weightcast/base/error.hpp>
#include <weightcast/io/safetensors_writer.hpp>
#include <weightcast/model/parameter.hpp>
#include <weightcast/tensor/named_view.hpp>

namespace weightcast::program {

safetensors_model open_model(std::string const& path) {
    try {
        return safetensors_model::open(path);
    } catch (error const& problem) {
        throw bad_usage{problem.what()};
    }
}

weight_memory copy_of(safetensors_model const& model) {
    std::vector<parameter> parameters;
    for (auto const& t : model.tensors()) parameters.push_back(parameter_of(t.name, t.tensor));
    weight_memory copy{std::move(parameters)};
    for (std::size_t i = 0; i < copy.size(); ++i) {
        auto const to = copy.bytes_of(i);
        if (!to.empty()) std::memcpy(to.data(), model.tensors()[i].tensor.data(), to.size());
    }
    return copy;
}

void write_weights(std::span<named_view<> const> tensors, std::string const& path) {
    write_safetensors(path, tensors);
}

}  // namespace weightcast::program
