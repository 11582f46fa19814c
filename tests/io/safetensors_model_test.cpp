// SPDX-License-Identifier: Apache-2.0
#include <weightcast/io/safetensors_model.hpp>

#include <concepts>
#include <cstddef>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <weightcast/io/safetensors_writer.hpp>
#include <weightcast/kernels/model_digest.hpp>
#include <weightcast/tensor/range_tensor.hpp>
#include "io/temporary_folder.hpp"
#include "support/says.hpp"

namespace {

using namespace weightcast;
using test::says;
using test::temporary_folder;
using test::write_file;

static_assert(!std::copy_constructible<safetensors_model>);
static_assert(std::movable<safetensors_model>);

struct weight {
    std::string name;
    std::vector<float> tensor;
};

std::vector<std::string> names_of(safetensors_model const& model) {
    std::vector<std::string> names;
    for (auto const& t : model.tensors()) names.emplace_back(t.name);
    return names;
}

constexpr char const* index_name = "model.safetensors.index.json";

// Two shards: m-2 holds z and b, m-1 holds a; m-2 is mentioned first.
void write_sharded(temporary_folder const& folder) {
    write_safetensors(folder / "m-1.safetensors", std::vector<weight>{{"a", {1}}},
                      {{"format", "pt"}});
    write_safetensors(folder / "m-2.safetensors", std::vector<weight>{{"z", {2, 3}}, {"b", {4}}});
    write_file(folder / index_name,
               R"({"metadata":{"total_size":16},"weight_map":{"z":"m-2.safetensors",)"
               R"("a":"m-1.safetensors","b":"m-2.safetensors"}})");
}

void index_refused(temporary_folder const& folder, std::string const& map, says const& message) {
    write_file(folder / index_name, "{\"weight_map\":{" + map + "}}");
    BOOST_CHECK_EXCEPTION(safetensors_model::open(folder / index_name), bad_input, message);
}

BOOST_AUTO_TEST_SUITE(safetensors_model_suite)

BOOST_AUTO_TEST_CASE(one_file_is_a_model) {
    temporary_folder const folder;
    write_safetensors(folder / "any name", std::vector<weight>{{"b", {1, 2}}, {"a", {3}}});
    auto const model = safetensors_model::open(folder / "any name");
    BOOST_TEST((names_of(model) == std::vector<std::string>{"b", "a"}));
    BOOST_TEST(model.bytes() == 12U);
    BOOST_TEST(model.files().size() == 1U);
    BOOST_TEST(model.find("a")->tensor.bytes() == 4U);
    BOOST_TEST(model.find("c") == nullptr);
}

BOOST_AUTO_TEST_CASE(shards_come_in_index_order_and_each_in_the_order_of_its_data) {
    temporary_folder const folder;
    write_sharded(folder);
    auto const model = safetensors_model::open(folder / index_name);
    BOOST_TEST((names_of(model) == std::vector<std::string>{"z", "b", "a"}));
    BOOST_TEST(model.bytes() == 16U);
    BOOST_TEST(model.files().size() == 2U);
    BOOST_TEST(model.files()[1].metadata().at("format") == "pt");
    BOOST_TEST(*static_cast<float const*>(model.find("b")->tensor.data()) == 4.0F);
}

BOOST_AUTO_TEST_CASE(a_sharded_model_is_the_same_model_as_one_file) {
    temporary_folder const folder;
    write_sharded(folder);
    write_safetensors(folder / "whole", std::vector<weight>{{"a", {1}}, {"b", {4}}, {"z", {2, 3}}});
    BOOST_TEST(model_digest(safetensors_model::open(folder / index_name).tensors()) ==
               model_digest(safetensors_model::open(folder / "whole").tensors()));
}

BOOST_AUTO_TEST_CASE(views_survive_a_move) {
    temporary_folder const folder;
    write_sharded(folder);
    auto first = safetensors_model::open(folder / index_name);
    auto const before = *first.find("z");
    auto const second = std::move(first);
    BOOST_TEST(second.find("z")->tensor.data() == before.tensor.data());
    BOOST_TEST(before.name == "z");
    BOOST_TEST((names_of(second) == std::vector<std::string>{"z", "b", "a"}));
}

BOOST_AUTO_TEST_CASE(a_folder_opens_the_model_in_it) {
    {
        temporary_folder const folder;
        write_sharded(folder);
        BOOST_TEST(safetensors_model::open(folder.path()).tensors().size() == 3U);
    }
    {
        temporary_folder const folder;
        write_safetensors(folder / "only.safetensors", std::vector<weight>{{"a", {1}}});
        write_file(folder / "config.json", "{}");
        BOOST_TEST(safetensors_model::open(folder.path()).tensors().size() == 1U);
        write_safetensors(folder / "model.safetensors",
                          std::vector<weight>{{"a", {1}}, {"b", {1}}});
        BOOST_TEST(safetensors_model::open(folder.path()).tensors().size() == 2U);
    }
}

BOOST_AUTO_TEST_CASE(a_folder_without_one_model_is_refused) {
    temporary_folder const folder;
    BOOST_CHECK_EXCEPTION(
        safetensors_model::open(folder.path()), bad_input,
        says({folder.path().string(), "0 safetensors indices and 0 safetensors files"}));
    write_safetensors(folder / "x.safetensors", std::vector<weight>{{"a", {1}}});
    write_safetensors(folder / "y.safetensors", std::vector<weight>{{"a", {1}}});
    BOOST_CHECK_EXCEPTION(safetensors_model::open(folder.path()), bad_input,
                          says("2 safetensors files"));
}

BOOST_AUTO_TEST_CASE(a_missing_path_is_refused) {
    temporary_folder const folder;
    BOOST_CHECK_EXCEPTION(safetensors_model::open(folder / "none.safetensors"), bad_input,
                          says("No such file"));
    BOOST_CHECK_EXCEPTION(safetensors_model::open(folder / "none.json"), bad_input,
                          says("No such file"));
    BOOST_CHECK_THROW(safetensors_model::open(""), bad_input);
}

BOOST_AUTO_TEST_CASE(an_index_that_names_what_is_not_there_is_refused) {
    temporary_folder const folder;
    write_sharded(folder);
    index_refused(folder, R"("a":"m-1.safetensors","z":"m-3.safetensors")",
                  says({"m-3.safetensors", "No such file"}));
    index_refused(folder, R"("a":"m-1.safetensors","q":"m-1.safetensors")",
                  says({index_name, "tensor 'q' is not in shard 'm-1.safetensors'"}));
    index_refused(
        folder, R"("a":"m-1.safetensors","z":"m-2.safetensors")",
        says({index_name, "tensor 'b' is in shard 'm-2.safetensors', but not by the index"}));
    index_refused(folder, R"("a":"m-2.safetensors","z":"m-2.safetensors","b":"m-2.safetensors")",
                  says({"tensor 'a' is not in shard 'm-2.safetensors'"}));
}

BOOST_AUTO_TEST_CASE(a_tensor_in_two_shards_is_refused) {
    temporary_folder const folder;
    write_sharded(folder);
    write_safetensors(folder / "m-1.safetensors", std::vector<weight>{{"a", {1}}, {"b", {9}}});
    BOOST_CHECK_EXCEPTION(safetensors_model::open(folder / index_name), bad_input,
                          says({"tensor 'b' is in shard 'm-1.safetensors', but not by the index"}));
}

BOOST_AUTO_TEST_CASE(an_index_never_leads_out_of_its_folder) {
    temporary_folder const folder;
    write_sharded(folder);
    std::filesystem::create_directory(folder / "sub");
    std::filesystem::copy_file(folder / index_name, folder / "sub" / index_name);
    BOOST_CHECK_EXCEPTION(safetensors_model::open(folder / "sub"), bad_input, says("No such file"));
    write_file(folder / "sub" / index_name, R"({"weight_map":{"a":"../m-1.safetensors"}})");
    BOOST_CHECK_EXCEPTION(safetensors_model::open(folder / "sub"), bad_input,
                          says("no plain file name"));
}

BOOST_AUTO_TEST_CASE(a_shard_may_be_a_link_as_in_a_download_cache) {
    temporary_folder const folder;
    write_sharded(folder);
    std::filesystem::rename(folder / "m-1.safetensors", folder / "blob");
    std::filesystem::create_symlink("blob", folder / "m-1.safetensors");
    BOOST_TEST(safetensors_model::open(folder.path()).tensors().size() == 3U);
}

BOOST_AUTO_TEST_CASE(a_shard_that_is_cut_short_is_refused_by_its_own_name) {
    temporary_folder const folder;
    write_sharded(folder);
    std::filesystem::resize_file(folder / "m-2.safetensors",
                                 std::filesystem::file_size(folder / "m-2.safetensors") - 1);
    BOOST_CHECK_EXCEPTION(safetensors_model::open(folder / index_name), bad_input,
                          says({"m-2.safetensors", "tensor 'b'", "cut short"}));
    write_file(folder / "m-2.safetensors", "");
    BOOST_CHECK_EXCEPTION(safetensors_model::open(folder / index_name), bad_input,
                          says({"m-2.safetensors", "too few"}));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
