// SPDX-License-Identifier: Apache-2.0
#include <program/demo.hpp>

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <program/copy_meter.hpp>
#include <program/demo_options.hpp>
#include <program/demo_report.hpp>
#include <program/interrupts.hpp>
#include <program/json_text.hpp>
#include <program/option.hpp>
#include <program/output.hpp>
#include <program/tensor_parallel.hpp>
#include <program/text_table.hpp>
#include <program/trace_files.hpp>
#include <program/trainer.hpp>
#include <program/weight_change.hpp>
#include <program/weight_digest.hpp>
#include <program/weight_file.hpp>
#include <program/weight_memory.hpp>
#include <program/worker_team.hpp>

#include <weightcast/base/error.hpp>
#include <weightcast/base/phase.hpp>
#include <weightcast/kernels/digest.hpp>
#include <weightcast/observe/terminal_progress.hpp>

namespace weightcast::program {

namespace {

/// The demo failed; the message is the line that the user reads.
struct demo_failed : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// One run, from the workers' start to their end.
class demo_run {
  public:
    explicit demo_run(demo_options const& options, weight_memory& weights)
        : options_{options},
          weights_{weights},
          report_{.options = options, .tensors = weights.size(), .bytes = weights.bytes()},
          table_{report_.table()} {
        for (int rank = 1; rank <= options.workers; ++rank)
            report_.workers.push_back({.rank = rank});
    }

    exit_code run() {
        try {
            run_all();
            report_.verified = true;
        } catch (demo_failed const& failure) {
            interrupts_.yield_to_signal();
            print_failure(failure.what());
            if (options_.killed_rank != 0) hear_survivors();
        }
        if (!live_) say(table_text());
        if (report_.verified) say(report_.conclusion());
        if (options_.json) print(json_text(report_.to_json()));
        return report_.verified ? exit_code::done : exit_code::failed;
    }

  private:
    void run_all() {
        say(report_.heading());
        send_ = form();
        copy_meter const meter{weights_};
        if (live_) say(table_.head());
        for (int round = 1; round <= options_.rounds; ++round) {
            auto const record = run_round(round, meter);
            report_.rounds.push_back(record);
            if (live_) say(table_.row(demo_report::row(record)));
            compare(round);
        }
        if (!options_.dump.empty()) dump();
        if (!options_.trace.empty()) write_traces();
        send_ = nullptr;  // leaves the group before the workers do
        team_.dismiss();
    }
    // What the others say of the one that was killed.
    void hear_survivors() {
        send_ = nullptr;  // nobody waits for the trainer
        auto const until = deadline::after(options_.connect());
        for (auto& worker : report_.workers) {
            if (worker.rank == options_.killed_rank) continue;
            bool const done = worker.version == static_cast<std::uint64_t>(options_.rounds);
            worker.last_word = done ? fmt::format("it holds version {}", worker.version)
                                    : team_.last_word(worker.rank, until);
            print_failure(
                fmt::format("{} survived: {}", team_.describe(worker.rank), worker.last_word));
        }
    }
    void say(std::string const& text) const {
        if (!options_.json) print(text);
    }
    std::string table_text() const {
        std::string text = "\n" + table_.head();
        for (auto const& r : report_.rounds) text += table_.row(demo_report::row(r));
        return text;
    }

    send_update form() {
        try {
            return form_group(options_, weights_, team_, trace_);
        } catch (worker_lost const& lost) {
            fail_at("forming the group", phase::connect, lost.rank, lost.what());
        } catch (error const& failure) {
            fail_by("forming the group", failure);
        }
    }

    round_record run_round(int round, copy_meter const& meter) {
        change_weights(weights_, options_.change, static_cast<std::uint64_t>(round));
        sent_ = digests_of(weights_);
        report_.trainer_digest = sent_.model;
        for (std::int64_t r = 0; r < options_.tensor_parallel; ++r) {
            shard_position const at{r, options_.tensor_parallel};
            expected_[static_cast<std::size_t>(r)] =
                at.ranks == 1 ? sent_ : digests_of(shard_of(weights_, own_, at));
        }
        auto const what = fmt::format("round {}", round);
        round_record record{.round = round, .digest = sent_.model};
        give_orders(what, round == options_.rounds);
        send_round(what, record);
        take_reports(what);
        record.memcpy_seconds = meter.seconds();  // now, because the workers are idle
        return record;
    }
    void give_orders(std::string const& what, bool last) {
        try {
            for (int rank = 1; rank <= team_.count(); ++rank) {
                bool const dies = last && rank == options_.killed_rank;
                receive_order const order{options_.corrupt && last && rank == 1,
                                          dies ? death_phase{options_.killed_in} : std::nullopt};
                team_.order(rank, order, answer_deadline());
            }
        } catch (worker_lost const& lost) {
            fail_at(what, phase::preflight, lost.rank, lost.what());
        }
    }
    void send_round(std::string const& what, round_record& record) {
        try {
            auto const result = send_();
            result.or_throw();
            if (!result.ok()) throw demo_failed{what + ": nothing was updated"};
            record.version = result.version.number;
            record.bytes = result.bytes;
            record.wire_bytes = result.wire_bytes;
            record.seconds = result.seconds.total();
        } catch (error const& failure) {
            fail_by(what, failure);
        }
    }
    void take_reports(std::string const& what) {
        try {
            for (auto& worker : report_.workers) {
                auto const received = team_.received(worker.rank, answer_deadline());
                worker.version = received.version;
                worker.digest = received.digests.model;
                worker.snapshots = received.snapshots;
                worker.expected_digest = expected_of(worker.rank).model;
                received_[static_cast<std::size_t>(worker.rank - 1)] = received.digests;
            }
        } catch (worker_lost const& lost) {
            fail_at(what, phase::commit, lost.rank, lost.what());
        }
    }

    // Every worker's digest, after the round is in the report.
    void compare(int round) {
        for (auto const& worker : report_.workers) {
            auto const where = fmt::format("round {}: {}", round, team_.describe(worker.rank));
            auto const version = report_.rounds.back().version;
            if (worker.version != version) {
                throw demo_failed{fmt::format("{} holds version {}, the trainer sent version {}",
                                              where, worker.version, version)};
            }
            auto const& digests = received_[static_cast<std::size_t>(worker.rank - 1)];
            auto const& expected = expected_of(worker.rank);
            if (digests != expected) throw demo_failed{where + difference(digests, expected)};
        }
    }
    weight_digests const& expected_of(int rank) const {
        return expected_[static_cast<std::size_t>(options_.shard_of_worker(rank).rank)];
    }
    std::string difference(weight_digests const& digests, weight_digests const& expected) const {
        std::size_t differ = 0;
        std::string first;
        for (std::size_t i = 0; i < expected.tensors.size() && i < digests.tensors.size(); ++i) {
            if (digests.tensors[i] == expected.tensors[i] || differ++ > 0) continue;
            first = fmt::format("tensor '{}' has digest {}, sent with {}", own_[i].name,
                                digest_text(digests.tensors[i]), digest_text(expected.tensors[i]));
        }
        if (digests.tensors.size() != expected.tensors.size()) {
            first = fmt::format("{}, expected {}", counted(digests.tensors.size(), "tensor"),
                                expected.tensors.size());
        } else if (differ == 0)
            first = "the tensors' digests are equal, the model's are not";
        auto const more =
            differ > 1 ? fmt::format(", and {} more", counted(differ - 1, "tensor")) : "";
        return fmt::format(" holds other bytes than the trainer: {}{}", first, more);
    }

    void dump() {
        auto const folder = std::filesystem::path{options_.dump};
        auto const until = answer_deadline();
        try {
            for (int rank = 1; rank <= team_.count(); ++rank) {
                auto const file = folder / fmt::format("rank-{}.safetensors", rank);
                team_.order(rank, dump_order{file.string()}, until);
            }
            team_.await_done(until);
        } catch (worker_lost const& lost) {
            fail_at("writing what was received", phase::commit, lost.rank, lost.what());
        }
    }

    void write_traces() {
        auto const until = answer_deadline();
        std::vector<std::string> parts{options_.trace};
        try {
            for (int rank = 1; rank <= team_.count(); ++rank) {
                parts.push_back(fmt::format("{}.rank-{}", options_.trace, rank));
                team_.order(rank, trace_order{parts.back()}, until);
            }
            team_.await_done(until);
            write_trace(trace_, options_.trace);
            join_traces(parts, options_.trace);
        } catch (worker_lost const& lost) {
            fail_at("writing the trace", phase::commit, lost.rank, lost.what());
        } catch (error const& failure) {
            throw demo_failed{failure.what()};
        }
    }

    // All workers may use the same cores and disk.
    deadline answer_deadline() const {
        return deadline::after(
            options_.pass_over(weights_.bytes() * static_cast<std::uint64_t>(options_.workers)));
    }

    // Who was killed explains more than who noticed, or who gave up.
    [[noreturn]] void fail_at(std::string const& what, phase where, int rank,
                              std::string const& why) {
        auto const killed = team_.find_killed(deadline::after(std::chrono::milliseconds{500}));
        auto const drill =
            killed != 0 && killed == options_.killed_rank
                ? fmt::format(" (as --kill {}@{} asked)", killed, to_string(options_.killed_in))
                : "";
        throw demo_failed{fmt::format("{} failed in phase {} at {}{}: {}", what, to_string(where),
                                      team_.describe(killed != 0 ? killed : rank), drill, why)};
    }
    [[noreturn]] void fail_by(std::string const& what, error const& failure) {
        auto const& facts = failure.facts();
        fail_at(what, facts.where, facts.suspect, failure.what());
    }

    demo_options const& options_;
    weight_memory& weights_;
    interrupt_guard interrupts_{};
    demo_report report_;
    text_table table_;
    // row by row, but where the rows would stand among the progress bars of the same terminal
    bool live_ = !is_terminal(STDOUT_FILENO) || !is_terminal(STDERR_FILENO);
    chrome_trace trace_{trace_of_rank(0, !options_.trace.empty())};
    worker_team team_{};
    send_update send_{};  // after the team: it leaves the group first
    weight_digests sent_{};
    std::vector<own_tensor> own_ = own_tensors(weights_.parameters(), options_.tensor_parallel);
    std::vector<weight_digests> expected_ =  // by rank of a tensor-parallel group
        std::vector<weight_digests>(static_cast<std::size_t>(options_.tensor_parallel));
    std::vector<weight_digests> received_ =
        std::vector<weight_digests>(static_cast<std::size_t>(options_.workers));
};

void check_files(demo_options const& options, weight_memory const& weights) {
    if (weights.size() == 0) throw bad_usage{"'" + options.model + "' holds no tensors"};
    if (options.corrupt && weights.bytes() == 0) {
        throw bad_usage{"--corrupt-one-byte: the tensors of '" + options.model + "' have no bytes"};
    }
    if (!options.trace.empty() && !std::ofstream{options.trace, std::ios::app}) {
        throw bad_usage{"--trace: cannot write the file '" + options.trace + "'"};
    }
    if (options.dump.empty()) return;
    std::error_code failure;
    std::filesystem::create_directories(options.dump, failure);
    if (failure) {
        throw bad_usage{"--dump: cannot make the folder '" + options.dump +
                        "': " + failure.message()};
    }
}

void check_workers(demo_options const& options) {
    if (options.workers % options.tensor_parallel == 0) return;
    throw bad_usage{fmt::format("--tp: expected a number that divides the {} workers, got {}",
                                options.workers, options.tensor_parallel)};
}

void check_kill(demo_options const& options) {
    if (options.killed_rank == 0) return;
    if (options.transport != "gloo")
        throw bad_usage{"--kill: expected processes (--transport gloo), got threads (local)"};
    if (options.killed_rank <= options.workers) return;
    throw bad_usage{fmt::format("--kill: expected a rank from 1 to {}, got {}", options.workers,
                                options.killed_rank)};
}

// RANK@PHASE
void parse_kill(demo_options& options, std::string const& text) {
    auto const at = text.find('@');
    auto const where = at == std::string::npos ? std::nullopt : parse_phase(text.substr(at + 1));
    if (!where) {
        throw CLI::ValidationError{"--kill",
                                   fmt::format("expected RANK@PHASE, PHASE one of {}, got '{}'",
                                               fmt::join(detail::phase_names, " "), text)};
    }
    options.killed_rank = parse_number<int>("--kill", text.substr(0, at), 1, 64);
    options.killed_in = *where;
}

exit_code run_demo(demo_options const& options) {
    ::signal(SIGPIPE, SIG_IGN);  // who is gone is found out where it is dealt with
    check_workers(options);
    check_kill(options);
    auto weights = copy_of(open_model(options.model));
    check_files(options, weights);
    return demo_run{options, weights}.run();
}

}  // namespace

command add_demo(CLI::App& program) {
    auto* const app = program.add_subcommand(
        "demo", "A trainer updates workers on this machine; every byte is proven by digest");
    auto const chosen = std::make_shared<demo_options>();
    auto& o = *chosen;
    constexpr double day = 86'400;
    add_text(*app, "--model", o.model, "FILE", "safetensors file, or the index of a sharded model")
        ->required();
    add_number(*app, "--workers", o.workers, 1, 64, "N", "Number of workers");
    add_number(*app, "--rounds", o.rounds, 1, 1'000'000, "K", "Number of updates");
    add_number(*app, "--change", o.change.fraction, 0.0, 1.0, "FRACTION",
               "Of the elements, changed before each update");
    add_number(*app, "--seed", o.change.seed, std::uint64_t{0},
               std::numeric_limits<std::uint64_t>::max(), "S", "What the changes are drawn from");
    add_choice(*app, "--engine", o.engine, engine_names,
               "Tensors one by one, or the small ones packed");
    add_choice(*app, "--transport", o.transport, transport_names,
               "Workers as threads, or as processes over Gloo");
    add_number(*app, "--tp", o.tensor_parallel, 1, 64, "N",
               "Workers that share a copy of the model, each with its tensor-parallel shard");
    add_choice(*app, "--policy", o.policy, policy_names,
               "Updates write what is served, or a second set while a reader goes on");
    add_text(*app, "--dump", o.dump, "DIR",
             "Write what each worker received: DIR/rank-R.safetensors");
    add_text(*app, "--trace", o.trace, "FILE.json",
             "Write when each rank packed, broadcast and unpacked, for ui.perfetto.dev");
    app->add_flag("--corrupt-one-byte", o.corrupt,
                  "Flip a byte at one worker after the last update: the demo must fail");
    app->add_option_function<std::string>(
           "--kill", [chosen](std::string const& text) { parse_kill(*chosen, text); },
           "That worker ends itself by SIGKILL in the last round's phase (connect: as the group "
           "forms): the demo must fail")
        ->take_last()
        ->type_name("RANK@PHASE");
    add_number(*app, "--deadline", o.deadline_s, 0.1, day, "SECONDS", "No byte moved for so long");
    add_number(*app, "--announce-deadline", o.announce_deadline_s, 0.1, 30 * day, "SECONDS",
               "No update announced for so long");
    app->add_flag("--json", o.json, "One JSON document instead of text");
    return {app, [chosen] { return run_demo(*chosen); }};
}

}  // namespace weightcast::program
