// SPDX-License-Identifier: Apache-2.0
// `weightcast plan`: text, JSON and what it refuses.

#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <boost/json.hpp>

#include <tools/model_files.hpp>
#include <tools/program.hpp>

using namespace weightcast;
using namespace weightcast::test;
namespace json = boost::json;

namespace {

struct planned_file {
    temporary_folder folder{};
    std::vector<file_tensor> tensors;
    std::string path;

    explicit planned_file(std::vector<file_tensor> model = mixed_model())
        : tensors{std::move(model)}, path{folder / "model.safetensors"} {
        write_file(path, safetensors_bytes(tensors));
    }
    json::object plan(child_arguments more = {}) const {
        child_arguments all{"plan", path, "--json"};
        all.insert(all.end(), more.begin(), more.end());
        auto const run = run_program(all);
        BOOST_REQUIRE_EQUAL(run.exit_code, 0);
        BOOST_TEST(run.err.empty());
        return json_of(run);
    }
};

std::uint64_t number(json::value const& value) { return value.to_number<std::uint64_t>(); }

/// Bytes of each tensor over all chunks.
std::map<std::string, std::uint64_t> covered(json::object const& plan) {
    std::map<std::string, std::uint64_t> bytes;
    for (auto const& chunk : plan.at("chunks").as_array()) {
        for (auto const& t : chunk.at("tensors").as_array()) {
            bytes[std::string{t.at("name").as_string()}] += number(t.at("bytes"));
        }
    }
    return bytes;
}

void check_coverage(json::object const& plan, std::vector<file_tensor> const& model) {
    auto const bytes = covered(plan);
    for (auto const& t : model) {
        if (t.bytes.empty()) continue;
        BOOST_REQUIRE_MESSAGE(bytes.contains(t.name), t.name);
        BOOST_TEST(bytes.at(t.name) == t.bytes.size(), t.name);
    }
}

/// Members lie inside their chunk and do not overlap.
void check_chunks(json::object const& plan) {
    for (auto const& chunk : plan.at("chunks").as_array()) {
        std::uint64_t end = 0;
        for (auto const& t : chunk.at("tensors").as_array()) {
            BOOST_TEST(number(t.at("offset")) >= end);
            end = number(t.at("offset")) + number(t.at("bytes"));
        }
        BOOST_TEST(end <= number(chunk.at("bytes")));
    }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(plan)

BOOST_AUTO_TEST_CASE(json_has_its_keys_in_order_and_their_types) {
    planned_file const file;
    auto const plan = file.plan();
    BOOST_TEST(
        (keys_of(plan) == std::vector<std::string>{"layout", "packed_buffer_size", "chunks"}));
    BOOST_TEST(plan.at("layout").as_string() == "native");
    BOOST_TEST(number(plan.at("packed_buffer_size")) == 67108864U);
    for (auto const& chunk : plan.at("chunks").as_array()) {
        BOOST_TEST((keys_of(chunk.as_object()) == std::vector<std::string>{"bytes", "tensors"}));
        for (auto const& t : chunk.at("tensors").as_array()) {
            BOOST_TEST(
                (keys_of(t.as_object()) == std::vector<std::string>{"name", "offset", "bytes"}));
            BOOST_TEST(t.at("name").is_string());
            BOOST_TEST(t.at("offset").is_number());
            BOOST_TEST(t.at("bytes").is_number());
        }
    }
}

BOOST_AUTO_TEST_CASE(native_packs_small_tensors_aligned_and_sends_large_ones_alone) {
    planned_file const file;
    auto const plan = file.plan();
    check_coverage(plan, file.tensors);
    check_chunks(plan);
    auto const& chunks = plan.at("chunks").as_array();
    BOOST_REQUIRE_EQUAL(chunks.size(), 2U);
    for (auto const& t : chunks[0].at("tensors").as_array()) {
        BOOST_TEST(number(t.at("offset")) % 64 == 0U);
    }
    auto const& direct = chunks[1].at("tensors").as_array();
    BOOST_REQUIRE_EQUAL(direct.size(), 1U);
    BOOST_TEST(direct[0].at("name").as_string() == "layers.0.large");
    BOOST_TEST(number(direct[0].at("offset")) == 0U);
    BOOST_TEST(number(chunks[1].at("bytes")) == 1120000U);
    BOOST_TEST(!covered(plan).contains("layers.1.empty"));
}

BOOST_AUTO_TEST_CASE(no_native_chunk_is_larger_than_the_buffer) {
    planned_file const file;
    for (std::uint64_t const size : {64U, 100U, 4096U}) {
        auto const plan = file.plan({"--packed-buffer-size", std::to_string(size)});
        BOOST_TEST(number(plan.at("packed_buffer_size")) == size);
        check_coverage(plan, file.tensors);
        check_chunks(plan);
        for (auto const& chunk : plan.at("chunks").as_array()) {
            auto const alone = chunk.at("tensors").as_array().size() == 1;
            BOOST_TEST((number(chunk.at("bytes")) <= size || alone));
        }
        BOOST_TEST(plan.at("chunks").as_array().size() >= 2U);
    }
}

BOOST_AUTO_TEST_CASE(vllm_orders_by_item_size_within_a_layer_and_aligns_nothing) {
    planned_file const file{
        {made_tensor("embed", "F32", {3}, 4), made_tensor("layers.0.a", "F8_E4M3", {5}, 1),
         made_tensor("layers.0.b", "F32", {2}, 4), made_tensor("layers.0.c", "BF16", {4}, 2)}};
    auto const plan = file.plan({"--layout", "vllm"});
    BOOST_TEST(plan.at("layout").as_string() == "vllm");
    BOOST_TEST(number(plan.at("packed_buffer_size")) == 1073741824U);
    check_coverage(plan, file.tensors);
    auto const& chunks = plan.at("chunks").as_array();
    BOOST_REQUIRE_EQUAL(chunks.size(), 1U);
    std::vector<std::string> names;
    std::vector<std::uint64_t> offsets;
    for (auto const& t : chunks[0].at("tensors").as_array()) {
        names.emplace_back(t.at("name").as_string());
        offsets.push_back(number(t.at("offset")));
    }
    BOOST_TEST(
        (names == std::vector<std::string>{"embed", "layers.0.b", "layers.0.c", "layers.0.a"}));
    BOOST_TEST((offsets == std::vector<std::uint64_t>{0, 12, 20, 28}));
    BOOST_TEST(number(chunks[0].at("bytes")) == 33U);
}

BOOST_AUTO_TEST_CASE(vllm_takes_any_size_of_buffer) {
    planned_file const file;
    auto const plan = file.plan({"--layout", "vllm", "--packed-buffer-size", "1"});
    check_coverage(plan, file.tensors);
    BOOST_TEST(plan.at("chunks").as_array().size() >= file.tensors.size() - 1);
}

BOOST_AUTO_TEST_CASE(text_is_a_table_of_chunks_and_a_sum) {
    planned_file const file;
    auto const run = run_program({"plan", file.path});
    BOOST_TEST(run.exit_code == 0);
    BOOST_TEST(run.err.empty());
    auto const lines = messages(run.out);
    BOOST_REQUIRE_EQUAL(lines.size(), 7U);
    BOOST_TEST(lines[0] == "layout native, packed buffer of 67,108,864 bytes");
    BOOST_TEST(lines[2].starts_with("chunk  kind"));
    BOOST_TEST(lines[3].find("packed") != std::string::npos);
    BOOST_TEST(lines[4].find("direct  1,120,000") != std::string::npos);
    BOOST_TEST(lines[6].starts_with("9 tensors of 1,123,"));
    BOOST_TEST(lines[6].ends_with(" on the wire"));
}

BOOST_AUTO_TEST_CASE(an_empty_model_has_no_chunks) {
    planned_file const file{std::vector<file_tensor>{}};
    BOOST_TEST(file.plan().at("chunks").as_array().empty());
    BOOST_TEST(file.plan({"--layout", "vllm"}).at("chunks").as_array().empty());
    BOOST_TEST(run_program({"plan", file.path}).exit_code == 0);
}

BOOST_AUTO_TEST_CASE(files_that_hold_no_model) {
    temporary_folder const folder;
    auto const path = folder / "model.safetensors";
    auto const refused = [&] { check_refused(run_program({"plan", path, "--json"}), {path}); };
    refused();  // there is none
    std::filesystem::create_directory(path);
    refused();
    std::filesystem::remove(path);
    write_file(path, "");
    refused();
    write_file(path, "no safetensors at all, but long enough");
    refused();
    auto const whole = safetensors_bytes(mixed_model());
    for (std::size_t const size :
         {std::size_t{4}, std::size_t{8}, std::size_t{100}, whole.size() - 1}) {
        write_file(path, whole.substr(0, size));
        refused();
    }
    auto twice = mixed_model();
    twice.push_back(twice.front());
    write_file(path, safetensors_bytes(twice));
    refused();
    write_file(path, safetensors_bytes({made_tensor("w", "F13", {2}, 1)}));
    refused();
}

BOOST_AUTO_TEST_CASE(names_cannot_break_the_table) {
    planned_file const file{{made_tensor("a\\nb\\u001b[31m", "F32", {2}, 4)}};
    auto const run = run_program({"plan", file.path});
    BOOST_REQUIRE_EQUAL(run.exit_code, 0);
    BOOST_TEST(run.out.find("a?b?[31m") != std::string::npos, run.out);
    BOOST_TEST(covered(file.plan()).contains("a\nb\x1b[31m"));
}

BOOST_AUTO_TEST_SUITE_END()
