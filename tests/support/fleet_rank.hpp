// SPDX-License-Identifier: Apache-2.0
// Receivers of a fleet: as threads over local groups, and as processes over Gloo that die where they are told to.
#pragma once

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <support/child_process.hpp>
#include <support/progress_hook.hpp>
#include <support/test_model.hpp>
#include <weightcast/comm/gloo_communicator.hpp>
#include <weightcast/comm/rendezvous_server.hpp>
#include <weightcast/engine/joining.hpp>
#include <weightcast/kernels/model_digest.hpp>
#include <weightcast/session/fleet_member.hpp>
#include <weightcast/session/fleet_sender.hpp>

namespace weightcast::test {

/// Chunks, cut tensors, and windows of direct ones.
inline std::vector<tensor_spec> const& fleet_specs() {
    static auto const specs = tensors_of_bytes({300, 50'000, 400'000, 300, 200'000, 300});
    return specs;
}
inline transfer_settings fleet_packing() {
    return {.packing = {.chunk_bytes = 32'768, .direct_from = 150'000}};
}
inline transfer_limits fleet_transfer_limits() {
    return {.announcement = std::chrono::seconds{120},
            .stall = std::chrono::seconds{20},
            .update = std::chrono::seconds{60}};
}

/// Of all that a model holds.
inline std::string digest_of(test_model const& model) {
    std::vector<named_view<>> tensors;
    for (std::size_t i = 0; i < model.size(); ++i)
        tensors.push_back({model.name(i), model.view(i)});
    return digest_text(model_digest(tensors));
}
inline std::string digest_of_seed(std::uint64_t seed) {
    return digest_of(test_model{cpu_device, fleet_specs(), seed});
}

/// What goes wrong in a receiver, once: "payload", "vote-no", "commit" (before it publishes), "lag" (publishes
/// nothing), "hook" (caches cannot be invalidated).
class fleet_trouble {
  public:
    using action = std::function<void()>;
    void set(std::string where, action what = {}) {
        std::lock_guard const lock{mutex_};
        where_ = std::move(where);
        what_ = std::move(what);
    }
    /// True, once, where it was set; what was to be done there is done.
    bool strikes(std::string const& where) {
        action what;
        {
            std::lock_guard const lock{mutex_};
            if (where_ != where) return false;
            where_.clear();
            what = what_;
        }
        if (what) what();
        return true;
    }

  private:
    std::mutex mutex_;
    std::string where_;
    action what_;
};

struct fleet_tables : parameter_tables<> {
    fleet_trouble* trouble = nullptr;
    void publish(target_id const& id, weight_version const& version) noexcept {
        if (trouble->strikes("lag")) return parameter_tables<>::roll_back(id);
        trouble->strikes("commit");
        parameter_tables<>::publish(id, version);
    }
};
static_assert(WeightTarget<fleet_tables>);

/// A receiver with its model; what a thread serves until it is told to leave.
template <class C>
class fleet_receiver {
  public:
    using engine_type = dense_engine<C, fleet_tables, progress_hook>;

    fleet_receiver(communicator_factory<C> factory, fleet_place const& place, std::string const& id)
        : held_{cpu_device, fleet_specs(), 0} {
        tables_.trouble = &trouble_;
        held_.add_to(tables_.main());
        tables_.hooks({.invalidate = [this](target_id const&) {
            if (trouble_.strikes("hook")) throw std::runtime_error{"no cache answers"};
        }});
        progress_hook const hook{[this](int step) {
            if (step == 3) trouble_.strikes("payload");
            if (step == 3 && trouble_.strikes("vote-no")) throw std::runtime_error{"a full disk"};
        }};
        member_ = std::make_unique<fleet_member<engine_type>>(
            engine_type{std::move(factory), tables_, fleet_transfer_limits(), hook}, place, id);
    }
    ~fleet_receiver() { stop(); }

    /// Each end of an update is told: "served 3", or what was thrown.
    void serve(std::function<void(std::string const&)> tell) {
        thread_ = std::thread{[this, tell = std::move(tell)] {
            while (!stopping_) tell(serve_one());
        }};
    }
    std::string serve_one(std::chrono::seconds limit = std::chrono::seconds{120}) {
        try {
            return "served " + to_string(member_->serve_one(deadline::after(limit)).version);
        } catch (...) {
            return describe_exception();
        }
    }
    /// "VERSION whole|mixed DIGEST"; while nothing is sent.
    std::string state() const {
        return to_string(tables_.version()) + (tables_.mixed() ? " mixed " : " whole ") +
               digest_of(held_);
    }
    void stop() {
        stopping_ = true;
        if (!thread_.joinable()) return;
        member_->interrupt();
        thread_.join();
    }
    fleet_trouble& trouble() { return trouble_; }
    fleet_member<engine_type>& member() { return *member_; }
    fleet_tables& tables() { return tables_; }

  private:
    fleet_trouble trouble_;
    test_model held_;
    fleet_tables tables_;
    std::unique_ptr<fleet_member<engine_type>> member_;
    std::atomic<bool> stopping_{false};
    std::thread thread_;
};

/// Local groups by name, so that threads find each other as processes do.
class local_halls {
  public:
    communicator_factory<local_communicator> factory() {
        return [this](group_init const& init) { return group(init).join(init.rank); };
    }

  private:
    local_group group(group_init const& init) {
        std::lock_guard const lock{mutex_};
        auto const found = groups_.find(init.name);
        if (found != groups_.end()) return found->second;
        local_group const made{init.size, {.grace = std::chrono::seconds{10}}};
        return groups_.emplace(init.name, made).first->second;
    }
    std::mutex mutex_;
    std::map<std::string, local_group> groups_;
};

/// Commands: "state", "trouble WHERE" (there the process kills itself, or fails), "leave". Says "registered" at once,
/// and each end of an update by a line.
inline int play_fleet_rank(child_arguments const& arguments) {
    std::mutex mutex;
    auto const say = [&](std::string const& line) {
        std::lock_guard const lock{mutex};
        std::cout << line << std::endl;
    };
    fleet_receiver<gloo_communicator> self{
        joining<gloo_communicator>({.connect_deadline = std::chrono::seconds{5}}),
        {.name = "fleet", .at = arguments.at(1)},
        arguments.at(0)};
    self.serve(say);
    for (std::string line; std::getline(std::cin, line);) {
        std::istringstream words{line};
        std::string verb;
        std::string where;
        words >> verb >> where;
        if (verb == "state") say("state " + self.state());
        if (verb == "trouble") {
            auto const die =
                [where] {  // where others have voted, they are given time to have heard it
                    if (where == "commit")
                        std::this_thread::sleep_for(std::chrono::milliseconds{500});
                    ::kill(::getpid(), SIGKILL);
                };
            bool const fatal = where == "payload" || where == "commit";
            self.trouble().set(where, fatal ? fleet_trouble::action{die} : fleet_trouble::action{});
            say("trouble set");
        }
        if (verb == "leave") {
            self.stop();
            self.member().leave();
            say("left");
            return 0;
        }
    }
    return 0;
}
inline child const fleet_rank_child{"fleet_rank", &play_fleet_rank};

/// Such a process.
class fleet_rank {
  public:
    fleet_rank(std::string id, endpoint const& at) : process_{"fleet_rank", {id, to_string(at)}} {}

    /// The next line that begins so; others are passed over.
    std::string hear(std::string const& begin) {
        for (;;) {
            auto line = process_.read_line(deadline::after(std::chrono::seconds{90}));
            if (line.starts_with(begin)) return line.substr(begin.size());
        }
    }
    std::string state() {
        process_.write_line("state");
        return hear("state ");
    }
    void trouble(std::string const& where) {
        process_.write_line("trouble " + where);
        hear("trouble set");
    }
    void leave() {
        process_.write_line("leave");
        hear("left");
    }
    child_process& process() { return process_; }

  private:
    child_process process_;
};

/// The limits of tests: short for what is waited for in vain.
inline fleet_settings fleet_test_settings(failure_policy policy) {
    return {.policy = policy,
            .limits = {.update = std::chrono::seconds{90},
                       .regroup = std::chrono::seconds{4},
                       .answer = std::chrono::seconds{3},
                       .report = std::chrono::seconds{3}}};
}
/// "r1 updated 2, r2 dropped 1"
inline std::string text_of(fleet_result const& result) {
    std::string text;
    for (auto const& one : result.members) {
        text += (text.empty() ? "" : ", ") + one.id + " " + std::string{to_string(one.status)} +
                " " + to_string(one.version);
    }
    return text;
}

}  // namespace weightcast::test
