// SPDX-License-Identifier: Apache-2.0

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <support/plain_engine.hpp>
#include <support/says.hpp>
#include <weightcast/engine/any_engine.hpp>
#include <weightcast/engine/erased_value.hpp>

using namespace weightcast;
using test::says;

namespace {

struct first_init {
    std::string name;
};
struct first_update {
    int number = 0;
    target_id where{};
    target_id const& target() const noexcept { return where; }
};

/// Writes down what it is asked, in the order of the calls.
class full_engine {
  public:
    using init_type = first_init;
    using update_type = first_update;
    using target_type = target_id;

    explicit full_engine(std::shared_ptr<std::vector<std::string>> calls)
        : calls_{std::move(calls)} {}
    void init(first_init const& init) { calls_->push_back("init " + init.name); }
    void start(target_id const& target) { calls_->push_back("start " + to_string(target)); }
    void receive(first_update const& u) {
        calls_->push_back("receive " + std::to_string(u.number));
    }
    void refuse(first_update const& u, std::string const& why) {
        calls_->push_back("refuse " + std::to_string(u.number) + " " + why);
    }
    first_update next() { return {.number = 9, .where = target_id::draft()}; }
    void prepare() { calls_->push_back("prepare"); }
    void commit() noexcept { calls_->push_back("commit"); }
    void rollback() noexcept { calls_->push_back("rollback"); }
    void shutdown() { calls_->push_back("shutdown"); }
    void interrupt() noexcept { calls_->push_back("interrupt"); }
    template <class Report>
    void describe(Report& report) const {
        report.status = decltype(report.status)::updated;
        report.target = target_id::draft();
        report.version = {7, "seven"};
        report.tensors = 3;
        report.bytes = 12;
        report.not_covered = {"bias"};
    }

  private:
    std::shared_ptr<std::vector<std::string>> calls_;
};

/// What describe fills, named as in update_report.
struct report {
    enum class outcome { nothing_updated, updated, failed };
    outcome status = outcome::nothing_updated;
    target_id target{};
    weight_version version{};
    std::size_t tensors = 0;
    std::uint64_t bytes = 0;
    std::vector<std::string> not_covered{};
    std::vector<std::string> unknown{};
    std::uint64_t held_bytes = 0;
};

struct fixture {
    std::shared_ptr<std::vector<std::string>> calls = std::make_shared<std::vector<std::string>>();
    any_engine engine{full_engine{calls}};
};

/// Neither copies nor moves.
struct fixed_engine : test::plain_engine {
    explicit fixed_engine(int& made) { ++made; }
    fixed_engine(fixed_engine const&) = delete;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(any_engine_suite)

static_assert(AnyTransferEngine<any_engine>);
static_assert(has_announcements<any_engine> && has_refusal<any_engine> &&
              has_interrupt<any_engine>);
static_assert(has_report<any_engine, report>);
static_assert(!std::copyable<any_engine> && std::movable<any_engine>);

BOOST_FIXTURE_TEST_CASE(forwards_every_step, fixture) {
    engine.init(first_init{"weights"});
    engine.start(target_id::draft());
    engine.receive(first_update{.number = 4});
    engine.prepare();
    engine.commit();
    engine.rollback();
    engine.interrupt();
    engine.refuse(first_update{.number = 5}, "why");
    engine.shutdown();
    std::vector<std::string> const expected{"init weights", "start draft",  "receive 4",
                                            "prepare",      "commit",       "rollback",
                                            "interrupt",    "refuse 5 why", "shutdown"};
    BOOST_TEST(*calls == expected, boost::test_tools::per_element());
}

BOOST_FIXTURE_TEST_CASE(a_wrong_type_names_both_and_reaches_nobody, fixture) {
    BOOST_CHECK_EXCEPTION(engine.init(3), bad_argument,
                          (says{"init", "full_engine", "first_init", "got int"}));
    BOOST_CHECK_EXCEPTION(engine.receive(first_init{"no update"}), bad_argument,
                          (says{"receive", "first_update", "got", "first_init"}));
    BOOST_CHECK_EXCEPTION(engine.refuse(test::plain_update{}, "x"), bad_argument,
                          (says{"refuse", "plain_update"}));
    BOOST_CHECK_EXCEPTION(engine.init({}), bad_argument, says{"got nothing"});
    BOOST_CHECK_EXCEPTION(engine.receive({}), bad_argument, says{"got nothing"});
    BOOST_TEST(calls->empty());
}

BOOST_FIXTURE_TEST_CASE(announcements_keep_their_target, fixture) {
    auto const update = engine.next();
    BOOST_TEST(to_string(update.target()) == "draft");
    BOOST_REQUIRE(update.get_if<first_update>() != nullptr);
    BOOST_TEST(update.get_if<first_update>()->number == 9);
    engine.receive(update);
    BOOST_TEST(calls->back() == "receive 9");
}

BOOST_FIXTURE_TEST_CASE(describes_what_the_engine_describes, fixture) {
    report r;
    engine.describe(r);
    BOOST_TEST((r.status == report::outcome::updated));
    BOOST_TEST(to_string(r.target) == "draft");
    BOOST_TEST(to_string(r.version) == "seven");
    BOOST_TEST(r.tensors == 3U);
    BOOST_TEST(r.bytes == 12U);
    BOOST_TEST(r.not_covered.size() == 1U);
}

BOOST_AUTO_TEST_CASE(an_engine_with_the_lifecycle_only) {
    any_engine engine{test::plain_engine{}};
    engine.start(target_id::adapter("a"));
    engine.receive(test::plain_update{});
    engine.interrupt();
    engine.refuse(test::plain_update{}, "does nothing here");
    BOOST_CHECK_EXCEPTION(engine.next(), lifecycle_error,
                          (says{"next", "plain_engine", "no announcements"}));
    report r;
    engine.describe(r);
    BOOST_TEST((r.status == report::outcome::updated));
    BOOST_TEST(to_string(r.target) == "adapter:a");
}

BOOST_FIXTURE_TEST_CASE(moved_from_it_is_empty, fixture) {
    any_engine taken{std::move(engine)};
    BOOST_TEST(taken.type_name().ends_with("full_engine"));
    // NOLINTBEGIN(bugprone-use-after-move): the moved-from state is stated
    BOOST_TEST(engine.type_name() == "nothing");
    BOOST_TEST(engine.get_if<full_engine>() == nullptr);
    engine.commit();
    engine.rollback();
    engine.interrupt();
    BOOST_CHECK_EXCEPTION(engine.start({}), lifecycle_error, says{"empty"});
    BOOST_CHECK_THROW(engine.init(first_init{}), lifecycle_error);
    BOOST_CHECK_THROW(engine.receive(first_update{}), lifecycle_error);
    BOOST_CHECK_THROW(engine.prepare(), lifecycle_error);
    BOOST_CHECK_THROW(engine.shutdown(), lifecycle_error);
    BOOST_CHECK_THROW(engine.next(), lifecycle_error);
    report r;
    BOOST_CHECK_THROW(engine.describe(r), lifecycle_error);
    // NOLINTEND(bugprone-use-after-move)
    BOOST_TEST(calls->empty());
    engine = std::move(taken);
    engine.prepare();
    BOOST_TEST(calls->size() == 1U);
}

BOOST_FIXTURE_TEST_CASE(gives_the_engine_back_by_its_type, fixture) {
    BOOST_TEST(engine.get_if<full_engine>() != nullptr);
    BOOST_TEST(engine.get_if<test::plain_engine>() == nullptr);
}

BOOST_AUTO_TEST_CASE(makes_an_engine_in_place_that_does_not_move) {
    int made = 0;
    any_engine engine{std::in_place_type<fixed_engine>, made};
    BOOST_TEST(made == 1);
    engine.prepare();
    BOOST_TEST(engine.get_if<fixed_engine>() != nullptr);
}

BOOST_AUTO_TEST_CASE(a_value_is_shared_not_copied) {
    struct counted {
        std::shared_ptr<int> copies = std::make_shared<int>(0);
        counted() = default;
        counted(counted const& other) : copies{other.copies} { ++*copies; }
        counted(counted&&) = default;
    };
    counted original;
    auto const copies = original.copies;
    any_update const update{std::move(original)};
    auto const again = update;  // NOLINT(performance-unnecessary-copy-initialization)
    BOOST_TEST(*copies == 0);
    BOOST_TEST(again.get_if<counted>() == update.get_if<counted>());
    BOOST_TEST(to_string(again.target()) == "main");
}

BOOST_AUTO_TEST_CASE(an_erased_value_knows_its_exact_type) {
    struct base {};
    struct derived : base {};
    erased_value const value{derived{}};
    BOOST_TEST(value.has_value());
    BOOST_TEST(value.get_if<derived>() != nullptr);
    BOOST_TEST(value.get_if<base>() == nullptr);
    BOOST_TEST(value.type_name().ends_with("derived"));
    BOOST_CHECK_EXCEPTION(value.get<int>("the test"), bad_argument,
                          (says{"the test takes int", "derived"}));
    erased_value const none;
    BOOST_TEST(!none.has_value());
    BOOST_TEST(none.type_name() == "nothing");
    BOOST_TEST(none.get_if<int>() == nullptr);
    std::string const text = "copied in";
    BOOST_TEST(erased_value{text}.get<std::string>("the test") == text);
}

BOOST_AUTO_TEST_SUITE_END()
