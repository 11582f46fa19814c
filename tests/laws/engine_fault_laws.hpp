// SPDX-License-Identifier: Apache-2.0
// What engines keep to when any one step of an update fails: a walk over every call of the communicator, the source, the
// target and the progress sinks of one rank, each of which fails once.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <support/test_source.hpp>
#include <weightcast/session/weight_sender.hpp>
#include <weightcast/session/weight_worker.hpp>

namespace weightcast::test {

/// Fails the nth of the steps that pass it, once. Of one rank's thread.
class step_fault {
  public:
    void fail_at(int n) { left_ = n; }
    void pass(std::string_view step) {
        if (left_ == 0 || --left_ != 0) return;
        step_ = step;
        throw std::runtime_error{"a step failed: " + step_};
    }
    /// The step that failed; "" while none has.
    std::string const& failed_step() const noexcept { return step_; }

  private:
    int left_ = 0;
    std::string step_{};
};
using shared_fault = std::shared_ptr<step_fault>;

/// A rank of another communicator's group whose every call and wait is a step that may fail.
template <class Inner>
class faulty_communicator : public communicator_operations<faulty_communicator<Inner>> {
  public:
    using runtime = typename Inner::runtime;
    faulty_communicator(Inner inner, shared_fault fault)
        : inner_{std::move(inner)}, fault_{std::move(fault)} {}
    faulty_communicator(faulty_communicator&&) noexcept = default;
    faulty_communicator& operator=(faulty_communicator&&) noexcept = default;

    int rank() const noexcept { return inner_.rank(); }
    int size() const noexcept { return inner_.size(); }
    device where() const noexcept { return inner_.where(); }
    auto& core() noexcept { return inner_.core(); }
    auto const& core() const noexcept { return inner_.core(); }
    void const* identity() const noexcept { return inner_.identity(); }
    std::chrono::milliseconds grace() const noexcept { return inner_.grace(); }
    void abort() noexcept { inner_.abort(); }
    bool failed() const noexcept { return inner_.failed(); }
    bool outstanding() const noexcept { return inner_.outstanding(); }
    int suspect() const noexcept { return inner_.suspect(); }
    std::uint64_t bytes_done() const noexcept { return inner_.bytes_done(); }
    void rethrow_if_failed() const { inner_.rethrow_if_failed(); }
    template <class Event>
    void wait(Event event, deadline until, operation_label const& label) {
        fault_->pass((reduces_ ? "wait for an all-reduce in " : "wait in ") +
                     std::string{to_string(label.where())});
        inner_.wait(event, until, label);
    }

  private:
    friend class communicator_operations<faulty_communicator<Inner>>;
    void enqueue_broadcasts(std::span<transfer_range const> ranges, int root, operation const& op) {
        fault_->pass("broadcast in " + std::string{to_string(op.label.where())});
        reduces_ = false;
        alignment_scope<Inner> scope{inner_};
        if (root == rank()) {
            auto group = scope.send_group(op);
            for (auto const& r : ranges) group.add(scope.align(view_of_range(r), already_ready{}));
            group.submit();
        } else {
            auto group = scope.receive_group(root, op);
            for (auto const& r : ranges) {
                auto view = view_of_range(r);
                group.add(scope.require(view, r.label));
            }
            group.submit();
        }
    }
    void enqueue_send(transfer_range const&, int, operation const&) { refuse(); }
    void enqueue_receive(transfer_range const&, int, operation const&) { refuse(); }
    void enqueue_all_reduce(transfer_range const& range, dtype type, reduction how,
                            operation const& op) {
        fault_->pass("all-reduce in " + std::string{to_string(op.label.where())});
        reduces_ = true;
        alignment_scope<Inner> scope{inner_};
        auto view = view_of_range(range, type);
        inner_.all_reduce(scope.require(view, op.label), how, op);
    }
    [[noreturn]] static void refuse() { throw bad_argument{"no engine sends from rank to rank"}; }
    tensor_view<typename runtime::space> view_of_range(transfer_range const& r,
                                                       dtype type = dtype::uint8) const {
        auto const count = static_cast<std::int64_t>(r.bytes / item_size(type));
        return {r.data, type, extents{count}, where()};
    }

    Inner inner_;
    shared_fault fault_;
    bool reduces_ = false;  // the last operation is an all-reduce
};
static_assert(Communicator<faulty_communicator<local_communicator>>);

class faulty_source {
  public:
    faulty_source(test_model const& model, shared_fault fault)
        : inner_{model.source()}, fault_{std::move(fault)} {}
    std::span<parameter const> parameters() const {
        fault_->pass("the source's parameters");
        return inner_.parameters();
    }
    tensor_placement placement(std::size_t index) const {
        fault_->pass("the source's placement");
        return inner_.placement(index);
    }
    source_tensor<const_tensor_view<>> tensor(std::size_t index, host_stream_ref stream) {
        fault_->pass("tensor " + std::to_string(index) + " of the source");
        return inner_.tensor(index, stream);
    }
    void release(std::size_t, host_stream_ref) { fault_->pass("a release of the source"); }

  private:
    table_source<> inner_;
    shared_fault fault_;
};
static_assert(WeightSource<faulty_source, host_runtime>);

/// Also remembers whether it was told that bytes are written.
class faulty_tables : public parameter_tables<> {
  public:
    explicit faulty_tables(shared_fault fault) : fault_{std::move(fault)} {}
    bool wrote = false;

    void begin_update(target_id const& id) {
        fault_->pass("begin_update");
        parameter_tables<>::begin_update(id);
    }
    std::optional<std::string> objection(target_id const& id, parameter const* parameters,
                                         std::size_t count, update_coverage promised) const {
        fault_->pass("objection");
        return parameter_tables<>::objection(id, parameters, count, promised);
    }
    void prepare_writing(target_id const& id, parameter const* parameters, std::size_t count) {
        fault_->pass("prepare_writing");
        parameter_tables<>::prepare_writing(id, parameters, count);
    }
    auto parts(target_id const& id, parameter const& announced) const {
        fault_->pass("parts of " + announced.name);
        return parameter_tables<>::parts(id, announced);
    }
    tensor_view<> destination(target_id const& id, std::string_view name) {
        fault_->pass("destination of " + std::string{name});
        return parameter_tables<>::destination(id, name);
    }
    void mark_writing(target_id const& id) noexcept {
        wrote = true;
        parameter_tables<>::mark_writing(id);
    }
    weight_version version(target_id const& id) const {
        fault_->pass("version");
        return parameter_tables<>::version(id);
    }
    std::vector<std::string> not_covered(target_id const& id, parameter const* parameters,
                                         std::size_t count) const {
        fault_->pass("not_covered");
        return parameter_tables<>::not_covered(id, parameters, count);
    }
    /// What it holds, past the fault.
    weight_version held() const { return parameter_tables<>::version({}); }

  private:
    shared_fault fault_;
};
static_assert(WeightTarget<faulty_tables> && has_parts<faulty_tables> &&
              has_coverage<faulty_tables>);

struct faulty_progress {
    shared_fault fault{};
    void begin(phase, std::uint64_t) { fault->pass("the sink's begin"); }
    void advance(std::uint64_t, std::string_view) { fault->pass("the sink's advance"); }
    void end() { fault->pass("the sink's end"); }
};
static_assert(ProgressSink<faulty_progress>);

/// What the law of faults needs of a pair of engines: their templates, and groups of the communicator below them.
/// `P::group(size)` is a function from a rank to its communicator; `P::where()` the device of tensors.
template <class P>
concept FaultPair = Communicator<typename P::inner> && requires(int size) {
    { P::group(size) } -> std::convertible_to<std::function<typename P::inner(int)>>;
    { P::where() } -> std::same_as<device>;
};

/// One sender and receivers, one of which meets a fault at its nth step of the second of three updates.
template <FaultPair P>
class faulty_fleet {
    using inner = typename P::inner;
    using communicator = faulty_communicator<inner>;
    using trainer = typename P::template trainer<communicator, faulty_progress>;
    using engine = typename P::template engine<communicator, faulty_tables, faulty_progress>;

  public:
    /// What an update was to one rank.
    struct outcome {
        std::string error{};
        bool refused = false;
        std::chrono::steady_clock::duration took{};
    };

    faulty_fleet(int size, std::vector<tensor_spec> const& specs, transfer_settings const& settings)
        : specs_{specs}, size_{size} {
        group_ = P::group(size);
        for (int rank = 0; rank < size; ++rank) faults_.push_back(std::make_shared<step_fault>());
        sender_.emplace(trainer{factory(0), settings, limits(), {faults_[0]}});
        for (int rank = 1; rank < size; ++rank) receivers_.push_back(make_receiver(rank));
        form();
    }
    step_fault& fault(int rank) { return *faults_[static_cast<std::size_t>(rank)]; }

    /// An update with bytes of that seed; every rank on a thread of its own.
    std::vector<outcome> update(std::uint64_t seed) {
        std::vector<outcome> outcomes(static_cast<std::size_t>(size_));
        std::vector<std::function<std::string()>> bodies;
        bodies.push_back([&, seed] { return timed(outcomes[0], [&] { send(seed); }); });
        for (int rank = 1; rank < size_; ++rank) {
            auto const at = static_cast<std::size_t>(rank);
            receivers_[at - 1]->tables.wrote = false;
            bodies.push_back([&, at] {
                return timed(outcomes[at],
                             [&] { static_cast<void>(receivers_[at - 1]->worker->serve_one()); });
            });
        }
        static_cast<void>(run_threads(bodies));
        return outcomes;
    }
    /// Some rank's communicator has failed: only forming the group anew helps.
    bool is_over() {
        for (auto& r : receivers_) {
            if (r->worker->engine().member().communicator().failed()) return true;
        }
        return false;
    }
    void form_anew() {
        group_ = P::group(size_);
        form();
    }
    faulty_tables const& tables(int rank) const { return of(rank).tables; }
    std::string difference(int rank, std::uint64_t seed) const {
        return first_difference(of(rank).held, test_model{cpu_device, specs_, seed}.values());
    }
    static std::chrono::seconds stall() { return std::chrono::seconds{is_sanitized() ? 30 : 5}; }

  private:
    struct receiver {
        receiver(std::vector<tensor_spec> const& specs, shared_fault fault)
            : held{P::where(), specs, 0}, tables{std::move(fault)} {
            held.add_to(tables.main());
        }
        test_model held;
        faulty_tables tables;
        std::optional<weight_worker<engine>> worker{};
    };
    receiver const& of(int rank) const { return *receivers_[static_cast<std::size_t>(rank - 1)]; }
    static transfer_limits limits() {
        return {.announcement = stall(), .stall = stall(), .update = std::chrono::seconds{240}};
    }
    communicator_factory<communicator> factory(int rank) {
        return [this, rank](group_init const& init) {
            return communicator{group_(init.rank), faults_[static_cast<std::size_t>(rank)]};
        };
    }
    std::unique_ptr<receiver> make_receiver(int rank) {
        auto made = std::make_unique<receiver>(specs_, faults_[static_cast<std::size_t>(rank)]);
        made->worker.emplace(engine{
            factory(rank), made->tables, limits(), {faults_[static_cast<std::size_t>(rank)]}});
        return made;
    }
    void form() {
        std::vector<std::function<std::string()>> joins;
        joins.push_back([&] {
            sender_->init({place(0, size_)});
            return std::string{};
        });
        for (int rank = 1; rank < size_; ++rank) {
            joins.push_back([&, rank] {
                receivers_[static_cast<std::size_t>(rank - 1)]->worker->init(place(rank, size_));
                return std::string{};
            });
        }
        check_ranks(run_threads(joins), "the group forms");
    }
    void send(std::uint64_t seed) {
        test_model const model{cpu_device, specs_, seed};
        faulty_source source{model, faults_[0]};
        try {
            static_cast<void>(sender_->update(source).or_throw());
        } catch (error const&) {
            throw;
        } catch (std::exception const& e) {  // the source's own: nobody need wait for the rest
            sender_->announce_failure(e.what());
            throw;
        }
    }
    template <class F>
    static std::string timed(outcome& to, F const& f) {
        auto const began = std::chrono::steady_clock::now();
        try {
            f();
        } catch (refused_update const& e) {
            to.error = e.what();
            to.refused = true;
        } catch (std::exception const& e) {
            to.error = e.what();
        }
        to.took = std::chrono::steady_clock::now() - began;
        return "";
    }

    std::vector<tensor_spec> specs_;
    int size_;
    std::function<inner(int)> group_;
    std::vector<shared_fault> faults_;
    std::optional<weight_sender<trainer>> sender_;
    std::vector<std::unique_ptr<receiver>> receivers_;
};

/// What is wrong after an update that failed at some step of one rank. `uncertain`: the rank failed while it waited for
/// the result of the vote, which the others have: it alone cannot know that they publish.
template <class Fleet, class Outcomes>
std::string fault_complaint(Fleet const& fleet, Outcomes const& outcomes, int size,
                            bool uncertain) {
    int published = 0;
    for (int rank = 1; rank < size; ++rank) published += fleet.tables(rank).held().number == 2;
    if (!uncertain && published != 0 && published != size - 1) return "some receivers published";
    for (int rank = 0; rank < size; ++rank) {
        auto const& o = outcomes[static_cast<std::size_t>(rank)];
        auto const who = "rank " + std::to_string(rank);
        if (o.took > Fleet::stall() * 4 / 5) {
            return who + " returned only at its limit: " + o.error;
        }
        bool const holds = rank == 0 ? published != 0 : fleet.tables(rank).held().number == 2;
        if (o.error.empty() != holds && !(rank == 0 && uncertain)) {
            return who + (o.error.empty() ? " heard of no error" : " has an error: " + o.error) +
                   ", and " + std::to_string(published) + " receivers published";
        }
        if (rank == 0) continue;
        auto const& tables = fleet.tables(rank);
        bool const expected = tables.wrote && !holds;
        if (tables.mixed() != expected) {
            return who + (expected ? " is not mixed: " : " is mixed by nothing: ") + o.error;
        }
        if (!tables.wrote && !fleet.difference(rank, 100).empty())
            return who + " was written to without a mark: " + o.error;
    }
    return "";
}

/// Every step of an update fails once on that rank. Each time: every rank returns before its limits, with an error
/// unless all published; no rank publishes unless all do (but for the rank that loses the result of the vote); what was written is marked, and nothing else is; and the
/// next full update, in the same group where that is still usable, repairs all.
/// Returns the steps that failed.
template <FaultPair P>
std::vector<std::string> law_every_step_may_fail(int size, int faulty_rank,
                                                 std::vector<tensor_spec> const& specs,
                                                 transfer_settings const& settings) {
    std::vector<std::string> steps;
    for (int n = 1; n < 10'000; ++n) {
        faulty_fleet<P> fleet{size, specs, settings};
        for (auto const& o : fleet.update(100)) BOOST_REQUIRE_MESSAGE(o.error.empty(), o.error);
        fleet.fault(faulty_rank).fail_at(n);
        auto const outcomes = fleet.update(200);
        auto const step = fleet.fault(faulty_rank).failed_step();
        BOOST_TEST_CONTEXT("step " << n << " of rank " << faulty_rank << ": " << step) {
            if (step.empty()) {  // past the last step
                for (auto const& o : outcomes) BOOST_TEST(o.error == "");
                return steps;
            }
            auto const complaint =
                fault_complaint(fleet, outcomes, size, step == "wait for an all-reduce in vote");
            BOOST_TEST(complaint == "", complaint);
            if (fleet.is_over()) fleet.form_anew();
            for (auto const& o : fleet.update(300)) BOOST_TEST(o.error == "", o.error);
            for (int rank = 1; rank < size; ++rank) {
                BOOST_TEST(fleet.difference(rank, 300) == "");
                BOOST_TEST(!fleet.tables(rank).mixed());
                BOOST_TEST(fleet.tables(rank).held().number == 3U);
            }
        }
        steps.push_back(step);
    }
    BOOST_ERROR("the walk over an update's steps does not end");
    return steps;
}

}  // namespace weightcast::test
