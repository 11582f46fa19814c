// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <support/says.hpp>
#include <weightcast/model/parameter_tables.hpp>
#include <weightcast/tensor/range_tensor.hpp>

namespace weightcast::test {
namespace {

static_assert(explain_weight_target<parameter_tables<>>());

std::vector<parameter> const both{{"a", dtype::float32, {6}}, {"b", dtype::float32, {4}}};
std::vector<parameter> const half{{"a", dtype::float32, {6}}};

struct held {
    std::vector<float> a = std::vector<float>(6);
    std::vector<float> b = std::vector<float>(4);
    parameter_tables<> tables;
    held() {
        tables.main().add("a", a);
        tables.main().add("b", b);
        tables.draft().add("a", a);
    }
    std::string objection(target_id const& id, std::vector<parameter> const& announced) const {
        return tables.objection(id, announced.data(), announced.size(), update_coverage::partial)
            .value_or("");
    }
};

BOOST_AUTO_TEST_SUITE(parameter_tables_suite)

BOOST_AUTO_TEST_CASE(every_target_has_a_table_of_its_own) {
    held h;
    BOOST_TEST(h.tables.main().size() == 2U);
    BOOST_TEST(h.tables.draft().size() == 1U);
    BOOST_TEST(&h.tables.table() == &h.tables.main());
    BOOST_TEST(!h.tables.has(target_id::adapter("x")));
    h.tables.adapter("x").add("a", h.a);
    BOOST_TEST(h.tables.has(target_id::adapter("x")));
    BOOST_TEST(&h.tables.adapter("x") != &h.tables.adapter("y"));
}

BOOST_AUTO_TEST_CASE(a_target_that_is_not_here_is_refused) {
    held h;
    auto const absent = target_id::adapter("x");
    BOOST_CHECK_EXCEPTION(h.tables.begin_update(absent), bad_argument,
                          says("'adapter:x' is not here"));
    BOOST_CHECK_THROW(static_cast<void>(h.tables.version(absent)), bad_argument);
    BOOST_CHECK_THROW(static_cast<void>(h.tables.mixed(absent)), bad_argument);
    BOOST_CHECK_THROW(static_cast<void>(h.tables.destination(absent, "a")), bad_argument);
    BOOST_TEST(h.objection(absent, half) == "target 'adapter:x' is not here");
    h.tables.mark_writing(absent);  // noexcept: nothing to do
    h.tables.roll_back(absent);
    h.tables.publish(absent, {1, {}});
    BOOST_TEST(!h.tables.has(absent));
}

BOOST_AUTO_TEST_CASE(destinations_are_the_tensors_themselves) {
    held h;
    BOOST_TEST(h.tables.destination({}, "b").data() == h.b.data());
    BOOST_CHECK_EXCEPTION(static_cast<void>(h.tables.destination({}, "c")), bad_argument,
                          says("'c' is not here"));
    BOOST_CHECK_THROW(static_cast<void>(h.tables.destination(target_id::draft(), "b")),
                      bad_argument);
}

BOOST_AUTO_TEST_CASE(a_version_is_published_for_its_target_alone) {
    held h;
    BOOST_TEST(!h.tables.version().is_set());
    h.tables.begin_update({});
    h.tables.mark_writing({});
    h.tables.publish({}, {7, "seven"});
    BOOST_TEST((h.tables.version() == weight_version{7, "seven"}));
    BOOST_TEST(!h.tables.version(target_id::draft()).is_set());
    BOOST_TEST(!h.tables.mixed());
}

BOOST_AUTO_TEST_CASE(a_rollback_before_the_first_byte_changes_nothing) {
    held h;
    h.tables.publish({}, {7, {}});
    h.tables.begin_update({});
    h.tables.roll_back({});
    BOOST_TEST(!h.tables.mixed());
    BOOST_TEST(h.tables.version().number == 7U);
}

BOOST_AUTO_TEST_CASE(a_rollback_after_it_marks_the_target_mixed_until_a_full_update) {
    held h;
    h.tables.publish({}, {7, {}});
    h.tables.begin_update({});
    h.tables.mark_writing({});
    h.tables.roll_back({});
    BOOST_TEST(h.tables.mixed());
    BOOST_TEST(!h.tables.mixed(target_id::draft()));
    BOOST_TEST(h.tables.version().number == 7U);
    BOOST_TEST(h.objection({}, half) == "target 'main' is mixed: only a full update repairs it");
    BOOST_TEST(h.objection({}, {}) == "target 'main' is mixed: only a full update repairs it");
    BOOST_TEST(h.objection({}, both) == "");
    BOOST_TEST(h.objection(target_id::draft(), half) == "");

    h.tables.begin_update({});  // one that fails before its first byte
    h.tables.roll_back({});
    BOOST_TEST(h.tables.mixed());

    h.tables.begin_update({});
    h.tables.mark_writing({});
    h.tables.publish({}, {9, {}});
    BOOST_TEST(!h.tables.mixed());
    BOOST_TEST(h.objection({}, half) == "");
}

BOOST_AUTO_TEST_CASE(a_mixed_target_is_repaired_without_the_buffers_that_nobody_had_written) {
    held h;
    std::vector<float> bias(2);
    h.tables.main().add_buffer("bias", bias);
    auto const fail = [&](std::vector<std::string> written) {
        h.tables.begin_update({});
        h.tables.mark_writing({});
        h.tables.note_written({}, std::move(written));
        h.tables.roll_back({});
    };
    fail({"a"});
    BOOST_TEST(h.objection({}, both) == "");
    BOOST_TEST(h.objection({}, half) != "");
    fail({"a", "bias"});
    BOOST_TEST(h.objection({}, both) == "target 'main' is mixed: only a full update repairs it");
    auto all = both;
    all.push_back({"bias", dtype::float32, {2}});
    BOOST_TEST(h.objection({}, all) == "");
}

BOOST_AUTO_TEST_CASE(a_mark_belongs_to_one_update) {
    held h;
    h.tables.begin_update({});
    h.tables.mark_writing({});
    BOOST_CHECK_EXCEPTION(h.tables.begin_update({}), lifecycle_error, says("is open already"));
    h.tables.publish({}, {1, {}});
    h.tables.begin_update({});
    h.tables.roll_back({});  // nothing was written in this one
    BOOST_TEST(!h.tables.mixed());
}

BOOST_AUTO_TEST_CASE(metadata_is_remembered_by_target_and_forgotten_by_all) {
    held h;
    h.tables.remember({}, both);
    h.tables.remember(target_id::draft(), half);
    BOOST_TEST((h.tables.remembered() == both));
    BOOST_TEST((h.tables.remembered(target_id::draft()) == half));
    h.tables.forget();
    BOOST_TEST(h.tables.remembered().empty());
    BOOST_TEST(h.tables.remembered(target_id::draft()).empty());
    BOOST_CHECK_THROW(h.tables.remember(target_id::adapter("x"), both), bad_argument);
}

BOOST_AUTO_TEST_CASE(coverage_is_told_by_target) {
    held const h;
    BOOST_TEST(h.tables.not_covered({}, half.data(), half.size()) == std::vector<std::string>{"b"},
               boost::test_tools::per_element());
    BOOST_TEST(h.tables.not_covered(target_id::draft(), half.data(), half.size()).empty());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weightcast::test
