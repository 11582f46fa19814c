// SPDX-License-Identifier: Apache-2.0
#include <set>
#include <string>

#include <boost/test/unit_test.hpp>

#include <support/says.hpp>
#include <weightcast/model/target_id.hpp>

namespace weightcast::test {
namespace {

BOOST_AUTO_TEST_SUITE(target_id_suite)

BOOST_AUTO_TEST_CASE(every_kind_parses_back) {
    for (auto const& id : {target_id{}, target_id::main(), target_id::draft(),
                           target_id::adapter("x"), target_id::adapter("main"),
                           target_id::adapter("a:b c/\xc3\xa4"), target_id::adapter(":")}) {
        BOOST_TEST((target_id::parse(to_string(id)) == id));
    }
    BOOST_TEST(to_string(target_id{}) == "main");
    BOOST_TEST(to_string(target_id::adapter("7")) == "adapter:7");
}

BOOST_AUTO_TEST_CASE(targets_are_told_apart_and_ordered) {
    std::set<target_id> const all{target_id::main(), target_id::draft(), target_id::adapter("main"),
                                  target_id::adapter("draft"), target_id{}};
    BOOST_TEST(all.size() == 4U);
}

BOOST_AUTO_TEST_CASE(other_texts_are_refused) {
    for (auto const* text :
         {"", "Main", " main", "main ", "adapter", "adapter:", "drafts", "layer", "base"}) {
        BOOST_CHECK_EXCEPTION(
            static_cast<void>(target_id::parse(text)), bad_input,
            says({"target '" + std::string{text} + "'", "main, draft, adapter:ID"}));
    }
    BOOST_CHECK_EXCEPTION(static_cast<void>(target_id::adapter("")), bad_argument,
                          says("an adapter needs an id"));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weightcast::test
