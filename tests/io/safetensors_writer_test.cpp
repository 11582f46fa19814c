// SPDX-License-Identifier: Apache-2.0
#include <weightcast/io/safetensors_writer.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <list>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <weightcast/io/safetensors_file.hpp>
#include <weightcast/kernels/model_digest.hpp>
#include <weightcast/tensor/range_tensor.hpp>
#include "io/temporary_folder.hpp"
#include "kernels/strided_tensors.hpp"
#include "support/says.hpp"

namespace {

using namespace weightcast;
using test::random_bytes;
using test::read_file;
using test::says;
using test::temporary_folder;
using test::write_file;

using model = std::vector<named_view<>>;

std::vector<std::string> names_of(safetensors_file const& file) {
    std::vector<std::string> names;
    for (auto const& t : file.tensors()) names.emplace_back(t.name);
    return names;
}

// Refused before anything is written.
template <class E>
void refused(model const& tensors, safetensors_metadata const& metadata, says const& message) {
    temporary_folder const folder;
    write_file(folder / "f", "old");
    BOOST_CHECK_EXCEPTION(write_safetensors(folder / "f", tensors, metadata), E, message);
    BOOST_TEST(read_file(folder / "f") == "old");
    BOOST_TEST(folder.names().size() == 1U);
}

std::array<std::byte, 64> const memory{};
const_tensor_view<> const byte{memory.data(), dtype::uint8, {}};

BOOST_AUTO_TEST_SUITE(safetensors_writer_suite)

BOOST_AUTO_TEST_CASE(b45_every_dtype_goes_there_and_back) {
    temporary_folder const folder;
    auto const bytes = random_bytes(512, 1);
    model tensors;
    for (std::size_t i = 0; i < dtype_count; ++i) {
        auto const type = static_cast<dtype>(i);
        tensors.push_back({to_string(type), {bytes.data() + i, type, {3, 5}}});
    }
    write_safetensors(folder / "f", tensors, {{"format", "pt"}});
    auto const file = safetensors_file::open(folder / "f");
    BOOST_TEST(file.tensors().size() == dtype_count);
    for (auto const& t : tensors) {
        auto const* const found = file.find(t.name);
        BOOST_TEST_REQUIRE(found != nullptr);
        BOOST_TEST(found->tensor.type() == t.tensor.type());
        BOOST_TEST(found->tensor.shape() == t.tensor.shape());
        BOOST_TEST(tensor_digest(found->tensor) == tensor_digest(t.tensor));
    }
    BOOST_TEST(model_digest(file.tensors()) == model_digest(tensors));
    BOOST_TEST(file.metadata().at("format") == "pt");
}

BOOST_AUTO_TEST_CASE(a_file_is_written_byte_for_byte_as_the_format_says) {
    temporary_folder const folder;
    std::array<std::uint8_t, 3> const a{1, 2, 3};
    write_safetensors(folder / "f", model{{"a\"\n", {a.data(), dtype::uint8, {3}}}}, {{"k", "v"}});
    std::string const header =
        R"({"__metadata__":{"k":"v"},"a\"\n":{"dtype":"U8","shape":[3],"data_offsets":[0,3]}})";
    auto padded = header;
    padded.resize((padded.size() + 7) / 8 * 8, ' ');
    BOOST_TEST(read_file(folder / "f") == test::safetensors_bytes(padded, "\x01\x02\x03"));
}

BOOST_AUTO_TEST_CASE(data_begin_at_a_multiple_of_8) {
    temporary_folder const folder;
    for (std::size_t length = 0; length < 17; ++length) {
        std::string const name(length, 'n');
        write_safetensors(folder / "f", model{{name, byte}});
        auto const bytes = read_file(folder / "f");
        std::uint64_t header = 0;
        std::memcpy(&header, bytes.data(), 8);
        BOOST_TEST(header % 8 == 0U);
        BOOST_TEST(bytes.size() == 8 + header + 1);
    }
}

BOOST_AUTO_TEST_CASE(nothing_is_a_model_too) {
    temporary_folder const folder;
    write_safetensors(folder / "f", model{});
    BOOST_TEST(safetensors_file::open(folder / "f").tensors().empty());
    BOOST_TEST(safetensors_file::open(folder / "f").metadata().empty());
}

BOOST_AUTO_TEST_CASE(strided_scalar_and_empty_tensors_are_written_as_they_are) {
    temporary_folder const folder;
    for (auto const& c : test::strided_cases()) {
        BOOST_TEST_CONTEXT(c.name) {
            auto const bytes = random_bytes(test::reach(c), 2);
            model const tensors{{"w", {bytes.data(), c.type, c.shape, c.strides}},
                                {"none", {nullptr, c.type, {2, 0}}}};
            write_safetensors(folder / "f", tensors);
            auto const file = safetensors_file::open(folder / "f");
            BOOST_TEST(model_digest(file.tensors()) == model_digest(tensors));
            BOOST_TEST(file.find("w")->tensor.shape() == c.shape);
            BOOST_TEST(file.find("none")->tensor.shape() == (extents{2, 0}));
        }
    }
}

BOOST_AUTO_TEST_CASE(a_strided_tensor_larger_than_the_buffer_is_written_in_pieces) {
    temporary_folder const folder;
    test::strided_case const c{"large", dtype::float32, {701, 503}, {1, 702}};
    auto const bytes = random_bytes(test::reach(c), 3);
    model const tensors{{"w", {bytes.data(), c.type, c.shape, c.strides}}};
    write_safetensors(folder / "f", tensors);
    BOOST_TEST(model_digest(safetensors_file::open(folder / "f").tensors()) ==
               model_digest(tensors));
}

BOOST_AUTO_TEST_CASE(the_given_order_is_kept_where_it_is_aligned) {
    temporary_folder const folder;
    std::vector<std::byte> const bytes(64);
    model const tensors{{"c", {bytes.data(), dtype::uint8, {8}}},
                        {"b", {bytes.data(), dtype::float64, {1}}},
                        {"a", {bytes.data(), dtype::float16, {3}}}};
    write_safetensors(folder / "f", tensors);
    BOOST_TEST((names_of(safetensors_file::open(folder / "f")) ==
                std::vector<std::string>{"c", "b", "a"}));
}

BOOST_AUTO_TEST_CASE(otherwise_larger_elements_come_first_so_that_all_are_aligned) {
    temporary_folder const folder;
    std::vector<std::byte> const bytes(64);
    model const tensors{{"e", {bytes.data(), dtype::uint8, {3}}},
                        {"d", {bytes.data(), dtype::float32, {1}}},
                        {"c", {bytes.data(), dtype::float64, {1}}},
                        {"b", {bytes.data(), dtype::int32, {1}}},
                        {"a", {bytes.data(), dtype::bool_, {1}}}};
    write_safetensors(folder / "f", tensors);
    auto const file = safetensors_file::open(folder / "f");
    BOOST_TEST((names_of(file) == std::vector<std::string>{"c", "d", "b", "e", "a"}));
    for (auto const& t : file.tensors()) {
        BOOST_TEST(reinterpret_cast<std::uintptr_t>(t.tensor.data()) % item_size(t.tensor.type()) ==
                   0U);
    }
}

BOOST_AUTO_TEST_CASE(any_range_of_named_tensors_will_do) {
    struct weight {
        std::string name;
        std::vector<float> tensor;
    };
    temporary_folder const folder;
    std::list<weight> const weights{{"a", {1, 2}}, {"b", {}}};
    write_safetensors(folder / "f", weights);
    BOOST_TEST(model_digest(safetensors_file::open(folder / "f").tensors()) ==
               model_digest(weights));
}

BOOST_AUTO_TEST_CASE(names_that_cannot_be_are_refused) {
    refused<bad_argument>({{"a", byte}, {"b", byte}, {"a", byte}}, {}, says("'a' comes twice"));
    refused<bad_argument>({{"__metadata__", byte}}, {}, says("'__metadata__'"));
    refused<bad_argument>({{"\xFF", byte}}, {}, says("could not be read back"));
    refused<bad_argument>({{"a", byte}}, {{"\xFF", ""}}, says("could not be read back"));
    refused<bad_argument>({{"a", byte}}, {{"", "\xC3"}}, says("could not be read back"));
}

BOOST_AUTO_TEST_CASE(tensors_that_the_format_cannot_describe_are_refused) {
    refused<bad_argument>({{"a", {memory.data(), dtype::float4_e2m1fn_x2, {}}}}, {},
                          says("no safetensors shape"));
}

BOOST_AUTO_TEST_CASE(f4_shapes_count_values_in_the_file) {
    temporary_folder const folder;
    model const tensors{{"w", {memory.data(), dtype::float4_e2m1fn_x2, {2, 3}}}};
    write_safetensors(folder / "f", tensors);
    BOOST_TEST(read_file(folder / "f").find(R"("dtype":"F4","shape":[2,6],"data_offsets":[0,6])") !=
               std::string::npos);
    BOOST_TEST(model_digest(safetensors_file::open(folder / "f").tensors()) ==
               model_digest(tensors));
}

BOOST_AUTO_TEST_CASE(a_mapped_file_may_be_rewritten_from_its_own_views) {
    temporary_folder const folder;
    auto const bytes = random_bytes(64, 4);
    write_safetensors(folder / "f", model{{"w", {bytes.data(), dtype::uint8, {64}}}});
    auto const file = safetensors_file::open(folder / "f");
    auto const before = model_digest(file.tensors());
    write_safetensors(folder / "f", file.tensors(), {{"again", "yes"}});
    BOOST_TEST(model_digest(file.tensors()) == before);
    BOOST_TEST(model_digest(safetensors_file::open(folder / "f").tensors()) == before);
    BOOST_TEST(safetensors_file::open(folder / "f").metadata().at("again") == "yes");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
