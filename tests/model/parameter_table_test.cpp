// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <support/says.hpp>
#include <weightcast/model/parameter_table.hpp>
#include <weightcast/tensor/range_tensor.hpp>

namespace weightcast::test {
namespace {

std::string objection(parameter_table<> const& table, std::vector<parameter> const& announced) {
    return table.objection(announced.data(), announced.size()).value_or("");
}

struct three {
    std::vector<float> a = std::vector<float>(6);
    std::vector<std::int32_t> b = std::vector<std::int32_t>(4);
    std::vector<double> c = std::vector<double>(1);
    parameter_table<> table;
    three() {
        table.add("layers.0.a", tensor_view<>{a.data(), dtype::float32, {2, 3}});
        table.add("layers.0.b", b);
        table.add("c", tensor_view<>{c.data(), dtype::float64, {}});
    }
};

BOOST_AUTO_TEST_SUITE(parameter_table_suite)

BOOST_AUTO_TEST_CASE(tensors_are_found_by_name_where_they_are) {
    three t;
    BOOST_TEST(t.table.size() == 3U);
    BOOST_REQUIRE(t.table.find("layers.0.b") != nullptr);
    BOOST_TEST(t.table.find("layers.0.b")->data() == t.b.data());
    BOOST_TEST((t.table.find("layers.0.a")->shape() == extents{2, 3}));
    BOOST_TEST(t.table.find("layers.0") == nullptr);
    BOOST_TEST(t.table.find("") == nullptr);
    std::vector<std::string> names;
    names = t.table.names();
    BOOST_TEST(names == (std::vector<std::string>{"c", "layers.0.a", "layers.0.b"}),
               boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_name_is_there_once_and_is_not_empty) {
    three t;
    BOOST_CHECK_EXCEPTION(t.table.add("c", t.a), bad_argument, says("'c' is in the table already"));
    BOOST_CHECK_EXCEPTION(t.table.add("", t.a), bad_argument, says("needs a name"));
    BOOST_TEST(t.table.find("c")->data() == t.c.data());
    BOOST_TEST(t.table.size() == 3U);
}

BOOST_AUTO_TEST_CASE(an_update_that_fits_meets_no_objection) {
    three const t;
    BOOST_TEST(objection(t.table, {}) == "");
    BOOST_TEST(objection(t.table, {{"c", dtype::float64, {}}}) == "");
    BOOST_TEST(objection(t.table, {{"layers.0.b", dtype::int32, {4}},
                                   {"layers.0.a", dtype::float32, {2, 3}}}) == "");
}

BOOST_AUTO_TEST_CASE(what_does_not_fit_is_told_with_both_sides) {
    three const t;
    BOOST_TEST(objection(t.table, {{"c", dtype::float32, {}}}) ==
               "tensor 'c' is announced as float32[], held as float64[]");
    BOOST_TEST(objection(t.table, {{"layers.0.a", dtype::float32, {3, 2}}}) ==
               "tensor 'layers.0.a' is announced as float32[3, 2], held as float32[2, 3]");
    BOOST_TEST(objection(t.table, {{"layers.0.a", dtype::float32, {6}}}) ==
               "tensor 'layers.0.a' is announced as float32[6], held as float32[2, 3]");
    BOOST_TEST(objection(t.table, {{"c", dtype::float64, {1}}}) ==
               "tensor 'c' is announced as float64[1], held as float64[]");
    BOOST_TEST(objection(t.table, {{"c", dtype::float64, {}}, {"c", dtype::float64, {}}}) ==
               "tensor 'c' is announced twice");
    BOOST_TEST(objection(t.table, {{"x", dtype::float64, {}}, {"x", dtype::float64, {}}}) ==
               "tensor 'x' is announced twice");
}

BOOST_AUTO_TEST_CASE(unknown_names_are_counted_and_the_first_are_named) {
    three const t;
    parameter const known{"c", dtype::float64, {}};
    std::vector<parameter> announced{known, {"m.c", dtype::float64, {}}};
    BOOST_TEST(objection(t.table, announced) == "1 of 2 announced names are unknown here: 'm.c'");
    for (int i = 0; i < 5; ++i) announced.push_back({"m." + std::to_string(i), dtype::float64, {}});
    BOOST_TEST(objection(t.table, announced) ==
               "6 of 7 announced names are unknown here: 'm.c', 'm.0', 'm.1', ...");
}

BOOST_AUTO_TEST_CASE(what_an_update_does_not_bring_is_named) {
    three const t;
    std::vector<parameter> const announced{{"layers.0.a", dtype::float32, {2, 3}}};
    BOOST_TEST(
        t.table.not_covered(announced.data(), 1) == (std::vector<std::string>{"c", "layers.0.b"}),
        boost::test_tools::per_element());
    BOOST_TEST(t.table.not_covered(nullptr, 0).size() == 3U);
    std::vector<parameter> const all{
        {"c", {}, {}}, {"layers.0.a", {}, {}}, {"layers.0.b", {}, {}}, {"x", {}, {}}};
    BOOST_TEST(t.table.not_covered(all.data(), all.size()).empty());
}

BOOST_AUTO_TEST_CASE(strided_tensors_are_held_as_they_are) {
    std::vector<float> memory(100);
    parameter_table<> table;
    table.add("t", tensor_view<>{memory.data(), dtype::float32, {4, 3}, {1, 20}});
    BOOST_TEST(objection(table, {{"t", dtype::float32, {4, 3}}}) == "");
    BOOST_TEST(!table.find("t")->contiguous());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weightcast::test
