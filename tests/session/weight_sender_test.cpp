// SPDX-License-Identifier: Apache-2.0

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <laws/group_maker.hpp>
#include <support/plain_engine.hpp>
#include <support/says.hpp>
#include <weightcast/comm/local_communicator.hpp>
#include <weightcast/engine/dense_engine.hpp>
#include <weightcast/engine/dense_trainer.hpp>
#include <weightcast/model/parameter_tables.hpp>
#include <weightcast/model/table_source.hpp>
#include <weightcast/session/weight_sender.hpp>
#include <weightcast/session/weight_worker.hpp>
#include <weightcast/tensor/range_tensor.hpp>

using namespace weightcast;
using test::says;
using namespace std::chrono_literals;

namespace {

// --- a trainer engine whose groups fail as a test says ---

struct scripted_group {
    std::string name;
    int size = 2;
    phase where = phase::commit;  ///< the step in which it fails; commit: it does not
    std::exception_ptr why{};
};

class scripted_trainer {
  public:
    using init_type = std::vector<scripted_group>;
    using target_type = target_id;
    using version_type = weight_version;

    void init(init_type const& groups) {
        groups_ = groups;
        failures_.assign(groups.size(), nullptr);
    }
    template <class Source>
    void announce(Source&, weight_version const& version, target_id const&) {
        announced = version;
        failures_.assign(groups_.size(), nullptr);
        step(phase::preflight);
    }
    template <class Source>
    void send(Source&) {
        step(phase::payload);
    }
    void vote() { step(phase::vote); }
    weight_version acknowledged() const { return announced; }
    void shutdown() {}

    std::size_t group_count() const noexcept { return groups_.size(); }
    std::string const& group_name(std::size_t g) const { return groups_[g].name; }
    int group_size(std::size_t g) const { return groups_[g].size; }
    std::exception_ptr failure(std::size_t g) const { return failures_[g]; }
    std::uint64_t wire_bytes() const { return 1000; }
    void announce_failure(std::string const& reason) noexcept { told = reason; }

    weight_version announced{};
    std::string told{};
    phase throws_in = phase::commit;

  private:
    void step(phase now) {
        for (std::size_t g = 0; g < groups_.size(); ++g) {
            if (groups_[g].where == now) failures_[g] = groups_[g].why;
        }
        if (throws_in == now) throw std::runtime_error{"the source broke"};
    }
    init_type groups_;
    std::vector<std::exception_ptr> failures_;
};

std::vector<float> const some_weights{1, 2, 3};

table_source<> source_of(std::vector<float> const& weights) {
    table_source<> source;
    source.add("w", view_of(weights));
    return source;
}
/// The status of each rank, as one line.
std::string ranks_of(group_result const& group) {
    std::string line;
    for (auto const r : group.ranks) line += (line.empty() ? "" : ", ") + std::string{to_string(r)};
    return line;
}
template <class E>
std::exception_ptr error_by(int suspect) {
    return std::make_exception_ptr(E{"what happened", {.suspect = suspect}});
}
update_result update_of(std::vector<scripted_group> groups) {
    weight_sender sender{scripted_trainer{}, std::move(groups)};
    auto source = source_of(some_weights);
    return sender.update(source);
}

// --- ranks of local groups on threads ---

using worker_type = weight_worker<dense_engine<local_communicator, parameter_tables<>>>;
using sender_type = weight_sender<dense_trainer<local_communicator>>;

transfer_limits patient_limits() { return {.announcement = 240s, .stall = 120s, .update = 240s}; }
communicator_factory<local_communicator> joining(std::vector<local_group> groups) {
    return [groups = std::move(groups)](group_init const& init) {
        for (auto const& g : groups) {
            if (g.name() == init.name) return g.join(init.rank);
        }
        throw bad_argument{"the test has no group '" + init.name + "'"};
    };
}
local_group group_named(std::string name, int size) {
    return local_group{size, {.name = std::move(name), .grace = 10s}};
}
group_init place(local_group const& group, int rank) {
    return {.name = group.name(), .rank = rank, .size = group.size()};
}

/// A worker of one float tensor "w" on a thread; `body(worker, weights)` says what is wrong, or "".
class worker_thread {
  public:
    template <class Body>
    worker_thread(local_group const& group, int rank, std::size_t elements, Body body,
                  target_id target = {})
        : thread_{[=, this] {
              try {
                  std::vector<float> weights(elements, 0.0F);
                  parameter_tables<> tables;
                  tables.table(target).add("w", weights);
                  worker_type worker{{joining({group}), tables, patient_limits()},
                                     place(group, rank)};
                  said_ = body(worker, weights);
              } catch (...) {
                  said_ = test::describe_exception();
              }
          }} {}
    std::string join() {
        if (thread_.joinable()) thread_.join();
        return said_;
    }

  private:
    std::string said_;
    std::jthread thread_;
};

sender_type sender_for(std::vector<local_group> const& groups, transfer_settings settings = {}) {
    std::vector<group_init> places;
    for (auto const& g : groups) places.push_back(place(g, 0));
    return sender_type{
        dense_trainer<local_communicator>{joining(groups), settings, patient_limits()}, places};
}

/// Runs them in turn; what the first that is not content says.
template <class... Steps>
std::string in_turn(Steps const&... steps) {
    std::string said;
    static_cast<void>(((said = steps()).empty() && ...));
    return said;
}

std::string expect(bool holds, std::string sentence) { return holds ? std::string{} : sentence; }

/// Serves one update that must bring these weights.
auto serves(std::vector<float> expected) {
    return [expected](worker_type& worker, std::vector<float> const& weights) {
        auto const report = worker.serve_one();
        if (report.status != update_status::updated) return std::string{to_string(report.status)};
        return expect(weights == expected, "other weights came");
    };
}
template <class Error>
std::string serve_until(worker_type& worker, std::string_view words) {
    try {
        static_cast<void>(worker.serve_one());
        return "no error came";
    } catch (Error const& e) {
        return expect(std::string_view{e.what()}.find(words) != std::string_view::npos, e.what());
    }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(weight_sender_suite)

// --- what the result says, phase by phase ---

BOOST_AUTO_TEST_CASE(all_is_well) {
    auto const result = update_of({{"a", 3}, {"b", 2}});
    BOOST_TEST(result.ok());
    BOOST_TEST(to_string(result.status) == "updated");
    BOOST_REQUIRE(result.groups.size() == 2U);
    BOOST_TEST(result.groups[0].name == "a");
    BOOST_TEST(ranks_of(result.groups[0]) == "updated, updated, updated");
    BOOST_TEST(ranks_of(result.groups[1]) == "updated, updated");
    BOOST_TEST(result.tensors == 1U);
    BOOST_TEST(result.bytes == 12U);
    BOOST_TEST(result.wire_bytes == 1000U);
    BOOST_TEST(&result.or_throw() == &result);
}

BOOST_AUTO_TEST_CASE(a_refusal_leaves_all_ranks_as_they_were) {
    auto const result = update_of({{"a", 4, phase::preflight, error_by<refused_update>(2)}});
    BOOST_TEST(!result.ok());
    BOOST_TEST(to_string(result.status) == "failed");
    auto const& group = result.groups[0];
    BOOST_TEST(!group.ok());
    BOOST_TEST(ranks_of(group) == "unchanged, unchanged, refused, unchanged");
    BOOST_TEST(group.message == "what happened");
    BOOST_TEST(to_string(group.where) == "preflight");
    BOOST_CHECK_THROW(static_cast<void>(result.or_throw()), refused_update);
}

BOOST_AUTO_TEST_CASE(a_rank_lost_before_the_payload_changes_no_other) {
    auto const result = update_of({{"a", 3, phase::preflight, error_by<peer_error>(1)}});
    BOOST_TEST(ranks_of(result.groups[0]) == "unchanged, lost, unchanged");
}

BOOST_AUTO_TEST_CASE(after_the_payload_began_ranks_have_rolled_back) {
    auto const known = update_of({{"a", 3, phase::payload, error_by<timeout>(2)}});
    BOOST_TEST(ranks_of(known.groups[0]) == "rolled back, rolled back, lost");
    auto const unknown = update_of({{"a", 3, phase::payload, error_by<timeout>(-1)}});
    BOOST_TEST(ranks_of(unknown.groups[0]) == "rolled back, rolled back, rolled back");
    BOOST_TEST(to_string(unknown.groups[0].where) == "payload");
}

BOOST_AUTO_TEST_CASE(a_no_at_the_vote_is_no_loss) {
    auto const result = update_of({{"a", 3, phase::vote, error_by<refused_update>(1)}});
    BOOST_TEST(ranks_of(result.groups[0]) == "rolled back, refused, rolled back");
}

BOOST_AUTO_TEST_CASE(a_loss_at_the_vote_leaves_the_version_unknown) {
    auto const result = update_of({{"a", 3, phase::vote, error_by<peer_error>(1)}});
    BOOST_TEST(ranks_of(result.groups[0]) == "version unknown, lost, version unknown");
    BOOST_TEST(to_string(result.groups[0].where) == "vote");
}

BOOST_AUTO_TEST_CASE(suspects_that_are_no_ranks_are_nobody) {
    for (int const suspect : {-1, 3, 99}) {
        auto const result = update_of({{"a", 3, phase::payload, error_by<peer_error>(suspect)}});
        BOOST_TEST(ranks_of(result.groups[0]) == "rolled back, rolled back, rolled back");
    }
    auto const foreign = std::make_exception_ptr(std::runtime_error{"not ours"});
    auto const result = update_of({{"a", 2, phase::vote, foreign}});
    BOOST_TEST(ranks_of(result.groups[0]) == "version unknown, version unknown");
    BOOST_TEST(result.groups[0].message == "not ours");
    BOOST_CHECK_THROW(static_cast<void>(result.or_throw()), std::runtime_error);
}

BOOST_AUTO_TEST_CASE(one_group_that_fails_is_the_overall_failure_and_its_own) {
    auto const result =
        update_of({{"a", 2}, {"b", 2, phase::payload, error_by<timeout>(1)}, {"c", 2}});
    BOOST_TEST(!result.ok());
    BOOST_TEST(ranks_of(result.groups[0]) == "updated, updated");
    BOOST_TEST(ranks_of(result.groups[1]) == "rolled back, lost");
    BOOST_TEST(ranks_of(result.groups[2]) == "updated, updated");
    BOOST_CHECK_THROW(static_cast<void>(result.or_throw()), timeout);
}

BOOST_AUTO_TEST_CASE(b42_nothing_updated_is_no_success_unless_allowed) {
    weight_sender sender{scripted_trainer{}, {scripted_group{"a"}}};
    table_source<> empty;
    auto const nothing = sender.update(empty);
    BOOST_TEST(to_string(nothing.status) == "nothing updated");
    BOOST_TEST(!nothing.ok());
    BOOST_TEST(nothing.groups[0].ok());
    BOOST_TEST(ranks_of(nothing.groups[0]) == "unchanged, unchanged");
    auto const allowed = sender.update(empty, {.allow_empty = true});
    BOOST_TEST(allowed.ok());
    BOOST_TEST(ranks_of(allowed.groups[0]) == "unchanged, unchanged");
}

BOOST_AUTO_TEST_CASE(versions_are_counted_whatever_becomes_of_them) {
    weight_sender sender{scripted_trainer{}, {scripted_group{"a"}}};
    auto source = source_of(some_weights);
    BOOST_TEST(sender.update(source).version.number == 1U);
    auto const labelled = sender.update(source, {.target = target_id::draft(), .label = "step-2"});
    BOOST_TEST(labelled.version.number == 2U);
    BOOST_TEST(to_string(labelled.version) == "step-2");
    BOOST_TEST(to_string(labelled.target) == "draft");
    BOOST_TEST((sender.engine().announced == labelled.version));
    BOOST_TEST((sender.acknowledged() == labelled.version));
    for (auto const where : {phase::preflight, phase::payload, phase::vote}) {
        sender.engine().throws_in = where;
        BOOST_CHECK_EXCEPTION(static_cast<void>(sender.update(source)), std::runtime_error,
                              says{"the source broke"});
    }
    sender.engine().throws_in = phase::commit;
    BOOST_TEST(sender.update(source).version.number == 6U);
}

BOOST_AUTO_TEST_CASE(a_failure_can_be_announced) {
    weight_sender sender{scripted_trainer{}};
    sender.announce_failure("no weights today");
    BOOST_TEST(sender.engine().told == "no weights today");
}

BOOST_AUTO_TEST_CASE(an_engine_without_groups_throws_what_fails) {
    struct engine : test::plain_trainer {
        void vote() const { throw timeout{"nobody voted"}; }
    };
    auto source = source_of(some_weights);
    weight_sender plain{test::plain_trainer{}, test::plain_init{}};
    auto const result = plain.update(source);
    BOOST_TEST(result.ok());
    BOOST_TEST(result.groups.empty());
    BOOST_TEST(result.bytes == 12U);
    weight_sender failing{engine{}};
    BOOST_CHECK_THROW(static_cast<void>(failing.update(source)), timeout);
}

BOOST_AUTO_TEST_CASE(words_of_statuses) {
    BOOST_TEST(to_string(rank_status::unknown) == "version unknown");
    BOOST_TEST(to_string(static_cast<rank_status>(99)) == "unknown status");
    BOOST_TEST(to_string(static_cast<update_status>(99)) == "failed");
}

// --- over local groups ---

BOOST_AUTO_TEST_CASE(an_update_reaches_every_rank_of_a_group) {
    auto const group = group_named("ws.all", 3);
    std::vector<float> weights{1, 2, 3};
    auto const body = [](worker_type& worker, std::vector<float> const& held) -> std::string {
        for (std::uint64_t n = 1; n <= 3; ++n) {
            auto const report = worker.serve_one();
            if (report.status != update_status::updated)
                return std::string{to_string(report.status)};
            if (report.version.number != n ||
                to_string(report.version) != "step-" + std::to_string(n)) {
                return "version " + to_string(report.version);
            }
            if (report.tensors != 1 || report.bytes != 12) return "another count";
            if (held != std::vector<float>{1, 2, static_cast<float>(n)})
                return "other weights came";
        }
        return "";
    };
    worker_thread first{group, 1, 3, body};
    worker_thread second{group, 2, 3, body};
    auto sender = sender_for({group}, {.verify = true});
    for (int n = 1; n <= 3; ++n) {
        weights[2] = static_cast<float>(n);
        auto source = source_of(weights);
        auto const result = sender.update(source, {.label = "step-" + std::to_string(n)});
        BOOST_TEST(result.ok());
        BOOST_TEST(result.tensors == 1U);
        BOOST_TEST(result.bytes == 12U);
        BOOST_TEST(result.wire_bytes >= 12U);
        BOOST_TEST(result.seconds.total() > 0);
        BOOST_TEST(ranks_of(result.groups.at(0)) == "updated, updated, updated");
        BOOST_TEST(sender.acknowledged().number == static_cast<std::uint64_t>(n));
    }
    BOOST_TEST(first.join() == "");
    BOOST_TEST(second.join() == "");
}

BOOST_AUTO_TEST_CASE(b29_a_refused_update_leaves_the_group_usable) {
    auto const group = group_named("ws.refused", 3);
    // rank 2 holds four elements where three are sent, and is right the second time
    worker_thread first{
        group, 1, 3, [](worker_type& worker, std::vector<float> const& held) {
            return in_turn(
                [&] {
                    return serve_until<refused_update>(worker, "refused by rank 2: tensor 'w'");
                },
                [&] { return expect(held == std::vector<float>(3), "written all the same"); },
                [&] { return serves({1, 2, 3})(worker, held); });
        }};
    worker_thread second{
        group, 2, 4, [](worker_type& worker, std::vector<float> const&) -> std::string {
            auto const said = serve_until<refused_update>(worker, "float32[3], held as float32[4]");
            if (!said.empty()) return said;
            std::vector<float> right(3);
            worker.engine().target() = {};
            worker.engine().target().main().add("w", right);
            return serves({1, 2, 3})(worker, right);
        }};
    auto sender = sender_for({group});
    auto source = source_of(some_weights);
    auto const refused = sender.update(source);
    BOOST_TEST(!refused.ok());
    BOOST_TEST(ranks_of(refused.groups.at(0)) == "unchanged, unchanged, refused");
    BOOST_TEST(says{"refused by rank 2"}(std::runtime_error{refused.groups.at(0).message}));
    BOOST_TEST(!sender.acknowledged().is_set());
    auto const accepted = sender.update(source);
    BOOST_TEST(accepted.ok());
    BOOST_TEST(accepted.version.number == 2U);
    BOOST_TEST(sender.acknowledged().number == 2U);
    BOOST_TEST(first.join() == "");
    BOOST_TEST(second.join() == "");
}

// A target that one worker does not have: refused, not waited for, and the next update passes.
BOOST_AUTO_TEST_CASE(an_unknown_target_is_refused) {
    auto const group = group_named("ws.target", 2);
    worker_thread worker{
        group, 1, 3, [](worker_type& w, std::vector<float> const& held) {
            return in_turn(
                [&] { return serve_until<refused_update>(w, "target 'draft' is not here"); },
                [&] { return serves({1, 2, 3})(w, held); });
        }};
    auto sender = sender_for({group});
    auto source = source_of(some_weights);
    auto const refused = sender.update(source, {.target = target_id::draft()});
    BOOST_TEST(ranks_of(refused.groups.at(0)) == "unchanged, refused");
    BOOST_TEST(sender.update(source).ok());
    BOOST_TEST(worker.join() == "");
}

BOOST_AUTO_TEST_CASE(b42_an_update_without_tensors_updates_nothing) {
    auto const group = group_named("ws.nothing", 2);
    worker_thread worker{group, 1, 3,
                         [](worker_type& w, std::vector<float> const& held) -> std::string {
                             auto const report = w.serve_one();
                             if (report.status != update_status::nothing_updated)
                                 return "not nothing";
                             if (report.version.is_set()) return "a version was published";
                             if (report.not_covered != std::vector<std::string>{"w"})
                                 return "w counts as covered";
                             return serves({1, 2, 3})(w, held);
                         }};
    auto sender = sender_for({group});
    table_source<> empty;
    auto const nothing = sender.update(empty);
    BOOST_TEST(to_string(nothing.status) == "nothing updated");
    BOOST_TEST(ranks_of(nothing.groups.at(0)) == "unchanged, unchanged");
    BOOST_TEST(!sender.acknowledged().is_set());
    auto source = source_of(some_weights);
    BOOST_TEST(sender.update(source).ok());
    BOOST_TEST(worker.join() == "");
}

BOOST_AUTO_TEST_CASE(a_group_whose_worker_left_does_not_stop_the_other) {
    auto const good = group_named("ws.good", 2);
    auto const broken = group_named("ws.broken", 2);
    worker_thread worker{good, 1, 3, [](worker_type& w, std::vector<float> const& held) {
                             auto const one = [&] { return serves({1, 2, 3})(w, held); };
                             return in_turn(one, one);
                         }};
    worker_thread leaver{broken, 1, 3,
                         [](worker_type&, std::vector<float> const&) { return std::string{}; }};
    auto sender = sender_for({broken, good});
    BOOST_TEST(leaver.join() == "");
    auto source = source_of(some_weights);
    for (std::uint64_t n = 1; n <= 2; ++n) {
        auto const result = sender.update(source);
        BOOST_TEST(!result.ok());
        BOOST_TEST(result.version.number == n);
        BOOST_TEST(!result.groups.at(0).ok());
        BOOST_TEST(result.groups[0].message != "");
        BOOST_TEST(to_string(result.groups[0].ranks.at(0)) == "unchanged");
        BOOST_TEST(ranks_of(result.groups.at(1)) == "updated, updated");
        BOOST_TEST(!sender.acknowledged().is_set());  // not by every group
    }
    BOOST_TEST(worker.join() == "");
}

// A refusal in one group: the other group has the new version, and both take part in the next update.
BOOST_AUTO_TEST_CASE(a_group_that_refuses_takes_part_again) {
    auto const yes = group_named("ws.yes", 2);
    auto const no = group_named("ws.no", 2);
    worker_thread willing{yes, 1, 3, [](worker_type& w, std::vector<float> const& held) {
                              auto const one = [&] { return serves({1, 2, 3})(w, held); };
                              return in_turn(one, one);
                          }};
    worker_thread unwilling{no, 1, 3, [](worker_type& w, std::vector<float> const& held) {
                                auto const announced = w.next();
                                try {
                                    w.engine().refuse(announced, "asleep");
                                    return std::string{"not refused"};
                                } catch (refused_update const&) {}
                                return serves({1, 2, 3})(w, held);
                            }};
    auto sender = sender_for({yes, no});
    auto source = source_of(some_weights);
    auto const first = sender.update(source);
    BOOST_TEST(ranks_of(first.groups.at(0)) == "updated, updated");
    BOOST_TEST(ranks_of(first.groups.at(1)) == "unchanged, refused");
    BOOST_TEST(says{"refused by rank 1: asleep"}(std::runtime_error{first.groups[1].message}));
    auto const second = sender.update(source);
    BOOST_TEST(second.ok());
    BOOST_TEST(sender.acknowledged().number == 2U);
    BOOST_TEST(willing.join() == "");
    BOOST_TEST(unwilling.join() == "");
}

// A trainer that fails before it sends says so: nobody waits, and the next update passes.
BOOST_AUTO_TEST_CASE(b31_an_announced_failure_is_heard_and_forgotten) {
    auto const group = group_named("ws.failure", 2);
    worker_thread worker{
        group, 1, 3, [](worker_type& w, std::vector<float> const& held) {
            return in_turn(
                [&] {
                    return serve_until<refused_update>(w,
                                                       "rank 0 failed before it sent: no weights");
                },
                [&] { return serve_until<refused_update>(w, "no weights either"); },
                [&] { return serves({1, 2, 3})(w, held); });
        }};
    auto sender = sender_for({group});
    sender.announce_failure("no weights");
    sender.announce_failure("no weights either");
    auto source = source_of(some_weights);
    auto const result = sender.update(source);
    BOOST_TEST(result.ok(), result.groups.at(0).message);
    BOOST_TEST(worker.join() == "");
}

BOOST_AUTO_TEST_CASE(a_trainer_outside_every_group_walks_the_source) {
    struct walked_source : table_source<> {
        std::vector<std::size_t> asked{};
        source_tensor<const_tensor_view<>> tensor(std::size_t index, host_stream_ref stream) {
            asked.push_back(index);
            return table_source<>::tensor(index, stream);
        }
    };
    walked_source source;
    source.add("w", view_of(some_weights));
    source.add("v", view_of(some_weights));
    sender_type sender{dense_trainer<local_communicator>{joining({})}, std::vector<group_init>{}};
    auto const result = sender.update(source);
    BOOST_TEST(source.asked.size() == 2U);
    BOOST_TEST(result.groups.empty());
    BOOST_TEST(result.tensors == 2U);
    BOOST_TEST(!sender.acknowledged().is_set());
}

BOOST_AUTO_TEST_SUITE_END()
