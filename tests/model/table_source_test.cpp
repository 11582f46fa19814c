// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include <boost/test/unit_test.hpp>

#include <runtime/host_support.hpp>
#include <support/says.hpp>
#include <weightcast/model/table_source.hpp>
#include <weightcast/runtime/stream.hpp>
#include <weightcast/tensor/range_tensor.hpp>

namespace weightcast::test {
namespace {

static_assert(explain_weight_source<table_source<>, host_runtime>());
static_assert(!has_tensor_release<table_source<>, host_runtime>);  // its tensors stay

BOOST_AUTO_TEST_SUITE(table_source_suite)

BOOST_AUTO_TEST_CASE(the_laws_of_a_source_hold) {
    std::vector<float> const a(6);
    std::vector<double> const b(100);
    table_source<> source;
    source.add("a", a);
    source.add("b.t", const_tensor_view<>{b.data(), dtype::float64, {4, 3}, {1, 20}});
    source.add("b.s", const_tensor_view<>{b.data(), dtype::float64, {}});
    source.add("elsewhere", const_tensor_view<>{nullptr, dtype::int8, {0}, host1});
    weightcast::stream<runtime> const stream{cpu_device};
    BOOST_REQUIRE(source.parameters().size() == 4U);
    for (std::size_t i = 0; i < 4; ++i) {
        auto const given = source.tensor(i, stream.ref());
        auto const& p = source.parameters()[i];
        BOOST_TEST(given.name == p.name);
        BOOST_TEST((given.tensor.type() == p.type));
        BOOST_TEST((given.tensor.shape() == p.shape));
        BOOST_TEST((source.placement(i) ==
                    tensor_placement{given.tensor.where(), given.tensor.contiguous()}));
    }
    BOOST_TEST(source.tensor(0, stream.ref()).tensor.data() == a.data());
    BOOST_TEST(source.parameters()[1].name == "b.t");  // in the order in which they were added
    BOOST_TEST(!source.placement(1).contiguous);
    BOOST_TEST(source.placement(3).where == host1);
}

BOOST_AUTO_TEST_CASE(a_tensor_needs_a_name) {
    std::vector<float> const a(6);
    table_source<> source;
    BOOST_CHECK_EXCEPTION(source.add("", a), bad_argument, says("needs a name"));
    BOOST_TEST(source.parameters().empty());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weightcast::test
