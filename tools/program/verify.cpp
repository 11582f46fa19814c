// SPDX-License-Identifier: Apache-2.0
#include <program/verify.hpp>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <boost/json.hpp>
#include <program/json_text.hpp>
#include <program/model_difference.hpp>
#include <program/output.hpp>
#include <program/text_table.hpp>
#include <program/weight_file.hpp>

#include <weightcast/kernels/model_digest.hpp>
#include <weightcast/model/parameter.hpp>

namespace weightcast::program {

namespace {

namespace json = boost::json;

struct verify_options {
    std::string a{};
    std::string b{};
    bool json = false;
};

json::value to_json(model_comparison const& comparison) {
    json::array differences;
    for (auto const& d : comparison.differences) {
        json::value first;
        if (d.first_byte) first = *d.first_byte;
        differences.push_back(json::object{
            {"name", d.name}, {"reason", to_string(d.reason)}, {"first_byte", std::move(first)}});
    }
    return json::object{{"equal", comparison.differences.empty()},
                        {"tensors", comparison.tensors},
                        {"differences", std::move(differences)}};
}

// What one side holds, in the terms of the reason.
std::string held(const_tensor_view<> const* tensor, difference_reason reason) {
    if (tensor == nullptr) return "-";
    if (reason == difference_reason::bytes) return digest_text(tensor_digest(*tensor));
    return describe_type(tensor->type(), tensor->shape());
}

std::string text_of(model_comparison const& comparison) {
    std::vector<std::vector<std::string>> rows;
    for (auto const& d : comparison.differences) {
        rows.push_back({printable(d.name), std::string{to_string(d.reason)},
                        d.first_byte ? grouped(*d.first_byte) : "", held(d.a, d.reason),
                        held(d.b, d.reason)});
    }
    return fmt::format("different: {} of {}\n\n", grouped(comparison.differences.size()),
                       counted(comparison.tensors, "tensor")) +
           whole_table({{"tensor", 0, true},
                        {"reason", 0, true},
                        {"first byte"},
                        {"A", 0, true},
                        {"B", 0, true}},
                       rows);
}

std::string equal_text(safetensors_model const& file) {
    return fmt::format("equal: {}, {}, digest {}\n", counted(file.tensors().size(), "tensor"),
                       counted(file.bytes(), "byte"), digest_text(model_digest(file.tensors())));
}

exit_code run_verify(verify_options const& options) {
    auto const a = open_model(options.a);
    auto const b = open_model(options.b);
    auto const comparison = compare(a.tensors(), b.tensors());
    bool const equal = comparison.differences.empty();
    if (options.json)
        print(json_text(to_json(comparison)));
    else
        print(equal ? equal_text(a) : text_of(comparison));
    return equal ? exit_code::done : exit_code::failed;
}

}  // namespace

command add_verify(CLI::App& program) {
    auto* const app = program.add_subcommand(
        "verify", "Compare two models tensor by tensor: exit 0 when they are equal, 1 when not");
    auto const chosen = std::make_shared<verify_options>();
    auto& o = *chosen;
    app->add_option("A", o.a, "safetensors file, or the index of a sharded model")->required();
    app->add_option("B", o.b, "The model to compare it with")->required();
    app->add_flag("--json", o.json, "One JSON document instead of text");
    return {app, [chosen] { return run_verify(*chosen); }};
}

}  // namespace weightcast::program
