// SPDX-License-Identifier: Apache-2.0
// `weightcast demo --tp`: workers that hold shards, against slices that are made here by hand.

#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include <boost/json.hpp>

#include <tools/model_files.hpp>
#include <tools/program.hpp>

using namespace weightcast;
using namespace weightcast::test;
namespace json = boost::json;

namespace {

std::string const attention = "model.layers.0.self_attn.";
std::string const mlp = "model.layers.0.mlp.";

/// 8 query rows and 4 key rows; a vocabulary of 7, which 2 does not divide; a layer whose types differ.
std::vector<file_tensor> llama() {
    auto const bf16 = [](std::string const& name, std::vector<std::int64_t> const& shape) {
        return made_tensor(name, "BF16", shape, 2);
    };
    std::vector<file_tensor> all{
        bf16("model.embed_tokens.weight", {7, 6}),
        bf16(attention + "v_proj.weight", {4, 6}),
        bf16(attention + "q_proj.weight", {8, 6}),
        bf16(attention + "k_proj.weight", {4, 6}),
        bf16(attention + "q_proj.bias", {8}),
        bf16(attention + "k_proj.bias", {4}),
        bf16(attention + "v_proj.bias", {4}),
        bf16(attention + "o_proj.weight", {6, 8}),
        bf16("model.layers.0.input_layernorm.weight", {6}),
        bf16(mlp + "gate_proj.weight", {10, 6}),
        bf16(mlp + "up_proj.weight", {10, 6}),
        bf16(mlp + "down_proj.weight", {6, 10}),
        bf16("model.layers.1.mlp.gate_proj.weight", {10, 6}),
        made_tensor("model.layers.1.mlp.up_proj.weight", "F16", {10, 6}, 2),
        bf16("model.layers.1.mlp.down_proj.weight", {6, 9}),
        bf16("lm_head.weight", {8, 6})};
    return all;
}

std::string bytes_of(std::vector<file_tensor> const& model, std::string const& name) {
    for (auto const& t : model) {
        if (t.name == name) return t.bytes;
    }
    throw std::runtime_error{"no tensor " + name};
}

struct sharded_demo {
    temporary_folder folder{};
    std::vector<file_tensor> model = llama();

    outcome run(child_arguments more) const {
        auto const file = folder / "model.safetensors";
        write_file(file, safetensors_bytes(model));
        child_arguments all{"demo", "--model", file, "--rounds", "2", "--json"};
        all.insert(all.end(), more.begin(), more.end());
        return run_program(all);
    }
};

/// Tensors of a file that the program wrote.
class dumped {
  public:
    explicit dumped(std::string const& file) : all_{read_file(file)} {
        std::memcpy(&length_, all_.data(), sizeof length_);
        header_ = json::parse(all_.substr(8, length_)).as_object();
    }
    std::string operator[](std::string const& name) const {
        auto const& offsets = header_.at(name).at("data_offsets");
        auto const begin = offsets.at(0).to_number<std::size_t>();
        return all_.substr(8 + length_ + begin, offsets.at(1).to_number<std::size_t>() - begin);
    }
    bool has(std::string const& name) const { return header_.contains(name); }

  private:
    std::string all_;
    std::uint64_t length_ = 0;
    json::object header_;
};

/// Of each row of `row` bytes, `count` bytes from `first`.
std::string columns(std::string const& bytes, std::size_t row, std::size_t first,
                    std::size_t count) {
    std::string part;
    for (std::size_t at = 0; at < bytes.size(); at += row) part += bytes.substr(at + first, count);
    return part;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(demo_tensor_parallel)

BOOST_AUTO_TEST_CASE(each_worker_holds_what_the_trainer_computed_for_it) {
    sharded_demo const demo;
    for (std::string const transport : {"local", "gloo"}) {
        for (std::string const policy : {"in_place", "shadow"}) {
            auto const run = demo.run(
                {"--workers", "4", "--tp", "2", "--transport", transport, "--policy", policy});
            BOOST_REQUIRE_MESSAGE(run.exit_code == 0, run.err);
            auto const document = json_of(run);
            BOOST_TEST(document.at("tp").to_number<int>() == 2);
            auto const& workers = document.at("workers").as_array();
            BOOST_REQUIRE_EQUAL(workers.size(), 4U);
            for (auto const& w : workers) {
                BOOST_TEST(w.at("digest").as_string() == w.at("expected_digest").as_string());
            }
            BOOST_TEST((workers[0].at("digest") == workers[2].at("digest")));
            BOOST_TEST((workers[0].at("digest") != workers[1].at("digest")));
            BOOST_TEST((workers[0].at("digest") != document.at("trainer_digest")));
        }
    }
}

BOOST_AUTO_TEST_CASE(a_dump_holds_own_tensors_under_own_names) {
    sharded_demo const demo;
    auto const run = demo.run({"--tp", "2", "--change", "0", "--dump", demo.folder / "dump"});
    BOOST_REQUIRE_MESSAGE(run.exit_code == 0, run.err);
    auto const of = [&](std::string const& name) { return bytes_of(demo.model, name); };
    for (std::size_t const r : {0U, 1U}) {
        dumped const held{demo.folder / ("dump/rank-" + std::to_string(r + 1) + ".safetensors")};
        // rows of 12 bytes
        BOOST_TEST((held[attention + "qkv_proj.weight"] ==
                    of(attention + "q_proj.weight").substr(r * 48, 48) +
                        of(attention + "k_proj.weight").substr(r * 24, 24) +
                        of(attention + "v_proj.weight").substr(r * 24, 24)));
        BOOST_TEST((held[attention + "qkv_proj.bias"] ==
                    of(attention + "q_proj.bias").substr(r * 8, 8) +
                        of(attention + "k_proj.bias").substr(r * 4, 4) +
                        of(attention + "v_proj.bias").substr(r * 4, 4)));
        BOOST_TEST((held[mlp + "gate_up_proj.weight"] ==
                    of(mlp + "gate_proj.weight").substr(r * 60, 60) +
                        of(mlp + "up_proj.weight").substr(r * 60, 60)));
        BOOST_TEST((held[attention + "o_proj.weight"] ==
                    columns(of(attention + "o_proj.weight"), 16, r * 8, 8)));
        BOOST_TEST((held[mlp + "down_proj.weight"] ==
                    columns(of(mlp + "down_proj.weight"), 20, r * 10, 10)));
        auto const padded = of("model.embed_tokens.weight") + std::string(12, '\0');
        BOOST_TEST((held["model.embed_tokens.weight"] == padded.substr(r * 48, 48)));
        BOOST_TEST((held["lm_head.weight"] == of("lm_head.weight").substr(r * 48, 48)));
        for (std::string const name :
             {"model.layers.0.input_layernorm.weight", "model.layers.1.mlp.gate_proj.weight",
              "model.layers.1.mlp.up_proj.weight", "model.layers.1.mlp.down_proj.weight"}) {
            BOOST_TEST((held[name] == of(name)), name);
        }
        BOOST_TEST(!held.has(attention + "q_proj.weight"));
    }
}

BOOST_AUTO_TEST_CASE(more_ranks_than_rows_and_sizes_that_do_not_divide) {
    sharded_demo const demo;
    for (std::string const ranks : {"3", "16"}) {  // 16 ranks, 7 rows of the vocabulary
        auto const run = demo.run({"--workers", ranks, "--tp", ranks, "--transport", "local"});
        BOOST_TEST(run.exit_code == 0, run.err);
    }
}

BOOST_AUTO_TEST_CASE(a_shard_with_one_other_byte_is_found) {
    sharded_demo const demo;
    auto const run = demo.run({"--tp", "2", "--corrupt-one-byte"});
    BOOST_TEST(run.exit_code == 1);
    BOOST_TEST(run.err.find("round 2: rank 1") != std::string::npos, run.err);
    BOOST_TEST(run.err.find("tensor 'model.layers.") != std::string::npos, run.err);
    auto const document = json_of(run);
    auto const& workers = document.at("workers").as_array();
    BOOST_TEST((workers[0].at("digest") != workers[0].at("expected_digest")));
    BOOST_TEST((workers[1].at("digest") == workers[1].at("expected_digest")));
}

BOOST_AUTO_TEST_SUITE_END()
