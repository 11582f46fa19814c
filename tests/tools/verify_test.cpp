// SPDX-License-Identifier: Apache-2.0
// `weightcast verify`: equal, different in each way, and what it refuses.

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <string>
#include <vector>

#include <boost/json.hpp>

#include <tools/model_files.hpp>
#include <tools/program.hpp>

using namespace weightcast;
using namespace weightcast::test;
namespace json = boost::json;

namespace {

struct two_files {
    temporary_folder folder{};
    std::string a = folder / "a.safetensors";
    std::string b = folder / "b.safetensors";

    two_files(std::vector<file_tensor> const& first, std::vector<file_tensor> const& second) {
        write_file(a, safetensors_bytes(first));
        write_file(b, safetensors_bytes(second));
    }
    outcome verify(child_arguments more = {}) const {
        child_arguments all{"verify", a, b};
        all.insert(all.end(), more.begin(), more.end());
        return run_program(all);
    }
};

file_tensor& named(std::vector<file_tensor>& model, std::string const& name) {
    return *std::ranges::find(model, name, &file_tensor::name);
}

void check_difference(json::value const& d, std::string const& name, std::string const& reason) {
    BOOST_TEST(
        (keys_of(d.as_object()) == std::vector<std::string>{"name", "reason", "first_byte"}));
    BOOST_TEST(d.at("name").as_string() == name);
    BOOST_TEST(d.at("reason").as_string() == reason);
    BOOST_TEST(d.at("first_byte").is_null() == (reason != "bytes"));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(verify)

BOOST_AUTO_TEST_CASE(equal_models) {
    two_files const files{mixed_model(), mixed_model()};
    auto const run = files.verify();
    BOOST_TEST(run.exit_code == 0);
    BOOST_TEST(run.err.empty());
    BOOST_TEST(run.out.starts_with("equal: 9 tensors, 1,123,"));
    auto const document = json_of(files.verify({"--json"}));
    BOOST_TEST((keys_of(document) == std::vector<std::string>{"equal", "tensors", "differences"}));
    BOOST_TEST(document.at("equal").as_bool());
    BOOST_TEST(document.at("tensors").to_number<int>() == 9);
    BOOST_TEST(document.at("differences").as_array().empty());
}

BOOST_AUTO_TEST_CASE(the_order_in_the_file_does_not_matter) {
    auto reversed = mixed_model();
    std::ranges::reverse(reversed);
    two_files const files{mixed_model(), reversed};
    auto const run = files.verify();
    BOOST_TEST(run.exit_code == 0);
    two_files const same{mixed_model(), mixed_model()};
    BOOST_TEST(run.out == same.verify().out);  // the digest too
}

BOOST_AUTO_TEST_CASE(a_file_is_equal_to_itself) {
    two_files const files{mixed_model(), {}};
    BOOST_TEST(run_program({"verify", files.a, files.a}).exit_code == 0);
    BOOST_TEST(run_program({"verify", files.b, files.b}).exit_code == 0);
}

BOOST_AUTO_TEST_CASE(each_reason_is_told) {
    auto other = mixed_model();
    named(other, "layers.0.norm").bytes[100] ^= 1;
    named(other, "layers.0.norm").bytes[200] ^= 1;
    named(other, "embed.weight").type = "F16";
    named(other, "layers.1.fp8").shape = {25};
    std::erase_if(other, [](auto const& t) { return t.name == "layers.0.mask"; });
    other.push_back(made_tensor("only.in.b", "F32", {2}, 4));
    two_files const files{mixed_model(), other};
    auto const run = files.verify({"--json"});
    BOOST_TEST(run.exit_code == 1);
    BOOST_TEST(run.err.empty());
    auto const document = json_of(run);
    BOOST_TEST(!document.at("equal").as_bool());
    BOOST_TEST(document.at("tensors").to_number<int>() == 10);
    auto const& differences = document.at("differences").as_array();
    BOOST_REQUIRE_EQUAL(differences.size(), 5U);
    check_difference(differences[0], "embed.weight", "dtype");
    check_difference(differences[1], "layers.0.norm", "bytes");
    BOOST_TEST(differences[1].at("first_byte").to_number<int>() == 100);
    check_difference(differences[2], "layers.0.mask", "missing");
    check_difference(differences[3], "layers.1.fp8", "shape");
    check_difference(differences[4], "only.in.b", "missing");
}

BOOST_AUTO_TEST_CASE(the_text_shows_both_sides) {
    auto other = mixed_model();
    named(other, "lm_head.weight").bytes.back() ^= 1;
    named(other, "layers.1.fp8").shape = {25};
    std::erase_if(other, [](auto const& t) { return t.name == "layers.0.scale"; });
    two_files const files{mixed_model(), other};
    auto const run = files.verify();
    BOOST_TEST(run.exit_code == 1);
    auto const lines = messages(run.out);
    BOOST_REQUIRE_EQUAL(lines.size(), 6U);
    BOOST_TEST(lines[0] == "different: 3 of 9 tensors");
    BOOST_TEST(lines[2].starts_with("tensor"));
    BOOST_TEST(lines[3].starts_with("layers.0.scale"));
    BOOST_TEST(lines[3].find("missing") != std::string::npos);
    BOOST_TEST(lines[3].find("float64[]") != std::string::npos);
    BOOST_TEST(lines[3].ends_with("  -"));
    BOOST_TEST(lines[4].find("float8_e4m3fn[5, 5]") != std::string::npos);
    BOOST_TEST(lines[4].ends_with("float8_e4m3fn[25]"));
    BOOST_TEST(lines[5].find("bytes") != std::string::npos);
    BOOST_TEST(lines[5].find(" 197 ") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(the_first_and_the_last_byte_of_a_tensor_count) {
    for (auto const at : {std::size_t{0}, std::size_t{1119999}}) {
        auto other = mixed_model();
        named(other, "layers.0.large").bytes[at] ^= 64;
        two_files const files{mixed_model(), other};
        auto const document = json_of(files.verify({"--json"}));
        BOOST_REQUIRE_EQUAL(document.at("differences").as_array().size(), 1U);
        BOOST_TEST(document.at("differences").at(0).at("first_byte").to_number<std::size_t>() ==
                   at);
    }
}

BOOST_AUTO_TEST_CASE(an_empty_tensor_differs_by_its_metadata) {
    auto other = mixed_model();
    named(other, "layers.1.empty").shape = {5, 0};
    two_files const files{mixed_model(), other};
    auto const document = json_of(files.verify({"--json"}));
    check_difference(document.at("differences").at(0), "layers.1.empty", "shape");
}

BOOST_AUTO_TEST_CASE(files_that_hold_no_model) {
    two_files const files{mixed_model(), mixed_model()};
    auto const none = files.folder / "none.safetensors";
    check_refused(run_program({"verify", files.a, none}), {none});
    check_refused(run_program({"verify", none, files.b}), {none});
    check_refused(run_program({"verify", files.a, "http://127.0.0.1:1/"}), {"http://127.0.0.1:1/"});
    auto const whole = read_file(files.b);
    write_file(files.b, whole.substr(0, whole.size() - 1));
    check_refused(files.verify(), {files.b});
    check_refused(files.verify({"--json"}), {files.b});
}

BOOST_AUTO_TEST_SUITE_END()
