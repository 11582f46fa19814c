// SPDX-License-Identifier: Apache-2.0
// A rank of an update in a process of its own, over Gloo: told what to do line by line, stopped at a named point of an
// update, and killed there or told to go on.
#pragma once

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <exception>
#include <iostream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <support/child_process.hpp>
#include <support/progress_hook.hpp>
#include <support/test_source.hpp>
#include <weightcast/comm/gloo_communicator.hpp>
#include <weightcast/engine/joining.hpp>
#include <weightcast/session/weight_sender.hpp>
#include <weightcast/session/weight_worker.hpp>

namespace weightcast::test {

/// Who an update's rank is, and how long it waits.
struct update_place {
    int rank = 0;
    int size = 2;
    std::chrono::milliseconds stall{2000};
    std::chrono::milliseconds connect{30'000};
};
inline transfer_limits limits_of(update_place const& place) {
    return {.announcement = std::chrono::seconds{60},
            .stall = place.stall,
            .update = std::chrono::seconds{60}};
}
/// Chunks, cut tensors, and windows of direct ones.
inline std::vector<tensor_spec> const& update_specs() {
    static auto const specs =
        tensors_of_bytes({300, 50'000, 300, 400'000, 300, 200'000, 90'000, 300});
    return specs;
}
inline transfer_settings update_settings() {
    return {.packing = {.chunk_bytes = 32'768, .direct_from = 150'000}};
}

/// The one point at which this process stops: it says "at POINT" and waits for a line. Points: preflight, payload,
/// vote, commit.
class stop_point {
  public:
    static void set(std::string point) { where() = std::move(point); }
    static void pass(std::string const& point) noexcept {
        if (where() != point) return;
        where().clear();
        std::cout << "at " + point << std::endl;
        std::string go;
        std::getline(std::cin, go);
    }

  private:
    static std::string& where() {
        static std::string point;
        return point;
    }
};

/// "failed KIND in PHASE suspect RANK tensor 'T' ...": the exception in flight, with its facts.
inline std::string failure_line() {
    std::string kind = describe_exception();
    kind = kind.substr(0, kind.find(':'));
    try {
        throw;
    } catch (error const& e) {
        auto const& f = e.facts();
        return "failed " + kind + " in " + std::string{to_string(f.where)} + " suspect " +
               std::to_string(f.suspect) + " tensor '" + f.tensor + "': " + e.what();
    } catch (std::exception const& e) {
        return "failed " + kind + ": " + e.what();
    }
}

struct stopping_tables : parameter_tables<> {
    std::optional<std::string> objection(target_id const& id, parameter const* parameters,
                                         std::size_t count, update_coverage promised) const {
        stop_point::pass("preflight");
        return parameter_tables<>::objection(id, parameters, count, promised);
    }
    void publish(target_id const& id, weight_version const& version) noexcept {
        stop_point::pass("commit");
        parameter_tables<>::publish(id, version);
    }
};
using stopping_base = dense_engine<gloo_communicator, stopping_tables, progress_hook>;
struct stopping_engine : stopping_base {
    using stopping_base::stopping_base;
    void prepare() {
        stop_point::pass("vote");
        stopping_base::prepare();
    }
};
struct stopping_trainer : dense_trainer<gloo_communicator> {
    using dense_trainer::dense_trainer;
    void vote() {
        stop_point::pass("vote");
        dense_trainer::vote();
        stop_point::pass("commit");
    }
};

/// The group's place, and a factory that tells where rank 0 listens.
inline group_init init_of(update_place const& place, std::string const& at) {
    return {.at = at, .rank = place.rank, .size = place.size};
}
inline communicator_factory<gloo_communicator> joining_as(update_place const& place) {
    gloo_options base{.connect_deadline = place.connect};
    base.on_listening = [](endpoint const& at) { std::cout << "listening " << at << std::endl; };
    return joining<gloo_communicator>(base);
}

/// A receiver: serves one update at a time and says what it holds after it.
class update_receiver {
  public:
    explicit update_receiver(update_place const& place)
        : place_{place}, held_{cpu_device, update_specs(), 0} {
        held_.add_to(tables_.main());
    }
    void join(std::string const& at) {
        if (!worker_) {
            progress_hook const hook{[](int step) {
                if (step == 3) stop_point::pass("payload");
            }};
            worker_ = std::make_unique<weight_worker<stopping_engine>>(
                stopping_engine{joining_as(place_), tables_, limits_of(place_), hook});
        }
        worker_->init(init_of(place_, at));
    }
    std::string update(std::uint64_t seed) {
        auto const report = worker_->serve_one();
        for (std::size_t i = 0; i < held_.size(); ++i) {  // as test_model makes them
            if (held_.memory(i).read() != pattern(held_.memory(i).size(), seed + i))
                return "failed: tensor '" + held_.name(i) + "' is wrong";
        }
        return "ok " + to_string(report.version);
    }
    std::string state() const {
        return std::string{tables_.mixed() ? "mixed" : "whole"} + " " +
               to_string(tables_.version());
    }
    void leave() { worker_.reset(); }

  private:
    update_place place_;
    test_model held_;
    stopping_tables tables_;
    std::unique_ptr<weight_worker<stopping_engine>> worker_;
};

class update_sender {
  public:
    explicit update_sender(update_place const& place)
        : place_{place},
          sender_{stopping_trainer{joining_as(place), update_settings(), limits_of(place)}} {}
    void join(std::string const& at) { sender_.init({init_of(place_, at)}); }
    std::string update(std::uint64_t seed) {
        test_model const model{cpu_device, update_specs(), seed};
        recording_source source{model};
        source.before = [](std::size_t i) {
            if (i == 4) stop_point::pass("payload");
        };
        auto const result = sender_.update(source);
        static_cast<void>(result.or_throw());
        return "ok " + to_string(result.version);
    }
    std::string state() const { return "acknowledged " + to_string(sender_.acknowledged()); }
    void leave() { sender_.engine().shutdown(); }

  private:
    update_place place_;
    weight_sender<stopping_trainer> sender_;
};

/// Commands: "stop POINT", "join AT", "update SEED", "state", "leave". Each is answered by a line, a failure by
/// `failure_line` and the time of its end; a join of rank 0 is announced by "listening AT" first.
template <class Rank>
int obey_updates(update_place const& place) {
    Rank self{place};
    for (std::string line; std::getline(std::cin, line);) {
        std::istringstream words{line};
        std::string verb;
        std::string word;
        words >> verb >> word;
        std::string answer;
        try {
            if (verb == "stop") {
                stop_point::set(word);
                answer = "set";
            } else if (verb == "join") {
                self.join(word);
                answer = "joined";
            } else if (verb == "update") {
                answer = self.update(std::stoull(word));
            } else if (verb == "state") {
                answer = self.state();
            } else if (verb == "leave") {
                self.leave();
                answer = "left";
            }
        } catch (...) {
            answer = failure_line();
        }
        auto const now = std::chrono::steady_clock::now().time_since_epoch();
        auto const ms = std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
        std::cout << std::to_string(ms) + " " + answer << std::endl;
    }
    return 0;
}
/// Puts this process, which has one thread yet, into a network namespace of `ip netns`.
inline void enter_network(std::string const& name) {
    int const fd = ::open(("/var/run/netns/" + name).c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0 || ::setns(fd, CLONE_NEWNET) != 0)
        throw std::system_error{errno, std::generic_category(), "network namespace " + name};
    ::close(fd);
}
inline int play_update_rank(child_arguments const& arguments) {
    if (!arguments.at(4).empty()) enter_network(arguments.at(4));
    update_place const place{.rank = std::stoi(arguments.at(0)),
                             .size = std::stoi(arguments.at(1)),
                             .stall = std::chrono::milliseconds{std::stoi(arguments.at(2))},
                             .connect = std::chrono::milliseconds{std::stoi(arguments.at(3))}};
    return place.rank == 0 ? obey_updates<update_sender>(place)
                           : obey_updates<update_receiver>(place);
}
inline child const update_rank_child{"update_rank", &play_update_rank};

/// Such a process.
class update_rank {
  public:
    /// What it said, and when it had it.
    struct answer {
        std::string text{};
        std::chrono::steady_clock::time_point at{};
        bool has(std::string const& part) const { return text.find(part) != std::string::npos; }
        bool begins(std::string const& part) const { return text.starts_with(part); }
    };

    /// `network`: a network namespace to run in; empty: this process's.
    explicit update_rank(update_place const& place, std::string const& network = "")
        : process_{"update_rank",
                   {std::to_string(place.rank), std::to_string(place.size),
                    std::to_string(place.stall.count()), std::to_string(place.connect.count()),
                    network}} {}

    void tell(std::string const& command) { process_.write_line(command); }
    /// A line as it stands: "listening AT", "at POINT".
    std::string line() { return process_.read_line(deadline::after(std::chrono::seconds{90})); }
    answer hear() {
        auto const said = line();
        auto const space = said.find(' ');
        std::chrono::milliseconds const at{std::stoll(said.substr(0, space))};
        return {said.substr(space + 1), std::chrono::steady_clock::time_point{at}};
    }
    std::string ask(std::string const& command) {
        tell(command);
        return hear().text;
    }
    void kill() { process_.kill(); }

  private:
    child_process process_;
};

}  // namespace weightcast::test
