// SPDX-License-Identifier: Apache-2.0
// Groups over Gloo for the laws: ranks as threads of one process, and ranks as processes.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <laws/group_maker.hpp>
#include <support/child_process.hpp>
#include <weightcast/comm/gloo_communicator.hpp>

namespace weightcast::test {

inline std::string fresh_group_name() {
    static std::atomic<int> count{0};
    return "test group " + std::to_string(++count);
}
inline gloo_options options_for(group_request const& request, std::string const& name, int rank) {
    gloo_options options{.name = name, .rank = rank, .size = request.size};
    if (request.where.size() == 1) options.where = request.where.front();
    if (request.where.size() > 1) options.where = request.where[static_cast<std::size_t>(rank)];
    options.grace = request.grace;
    options.connect_deadline = std::chrono::seconds{60};
    return options;
}

/// Ranks on threads of this process.
/// Where ranks on threads of one process meet: rank 0 tells it, the others wait for it, but not for ever.
class meeting_point {
  public:
    void tell(endpoint const& at) { told_.set_value(at); }
    /// @throws timeout  when rank 0 never listened
    endpoint get() const {
        if (at_.wait_for(std::chrono::seconds{60}) != std::future_status::ready) {
            throw timeout{"rank 0 never listened"};
        }
        return at_.get();
    }

  private:
    std::promise<endpoint> told_;
    std::shared_future<endpoint> at_ = told_.get_future().share();
};

struct gloo_thread_maker {
    using communicator = gloo_communicator;
    endpoint at{"127.0.0.1:0"};
    void (*adjust)(gloo_options&) = nullptr;

    template <class Body>
    std::vector<std::string> run(group_request const& request, Body body) {
        auto const name = request.name.empty() ? fresh_group_name() : request.name;
        std::vector<std::string> outcomes(static_cast<std::size_t>(request.size));
        meeting_point where;
        std::vector<std::thread> threads;
        for (int rank = 0; rank < request.size; ++rank) {
            threads.emplace_back([&, rank, mine = body] {
                auto& outcome = outcomes[static_cast<std::size_t>(rank)];
                try {
                    auto options = options_for(request, name, rank);
                    if (adjust != nullptr) adjust(options);
                    options.on_listening = [&](endpoint const& bound) { where.tell(bound); };
                    options.at = rank == 0 ? at : where.get();
                    auto c = gloo_communicator::join(options);
                    outcome = mine(c);
                } catch (...) {
                    outcome = describe_exception();
                }
            });
        }
        for (auto& thread : threads) thread.join();
        return outcomes;
    }
};
static_assert(GroupMaker<gloo_thread_maker>);

/// Which part of a test case a child process plays: one rank of every group that the case makes.
struct rank_of_a_case {
    int rank = 0;  ///< 0: this process is the parent
    int skip = 0;  ///< groups that were made before the child was
};
inline rank_of_a_case& part_in_case() {
    static rank_of_a_case part;
    return part;
}
/// Arguments: the test case, the rank, the groups to skip.
inline int play_a_rank(child_arguments const& arguments) {
    part_in_case() = {std::stoi(arguments.at(1)), std::stoi(arguments.at(2))};
    std::string const filter = "--run_test=" + arguments.at(0);
    std::vector<char const*> argv{"child", filter.c_str(), "--log_level=error", "--report_level=no",
                                  "--color_output=no"};
    auto const init = []() -> bool { return true; };
    return boost::unit_test::unit_test_main(+init, static_cast<int>(argv.size()),
                                            const_cast<char**>(argv.data()));
}
inline child const rank_player{"gloo_rank_of_a_case", &play_a_rank};

/// Ranks in processes of their own: each child runs the same test case from its start, in step with the
/// parent, which is rank 0. One maker a test case.
class gloo_process_maker {
  public:
    using communicator = gloo_communicator;

    ~gloo_process_maker() {
        for (auto& one : children_) {
            auto const end = one.wait(deadline::after(std::chrono::seconds{60}));
            BOOST_CHECK_MESSAGE(end && *end == (child_end{0, 0}),
                                "a rank's process failed: " << one.output() << one.errors());
        }
    }

    template <class Body>
    std::vector<std::string> run(group_request const& request, Body body) {
        int const group = groups_++;
        return part_in_case().rank == 0 ? run_parent(request, body, group)
                                        : run_child(request, body, group);
    }

  private:
    template <class Body>
    std::vector<std::string> run_parent(group_request const& request, Body body, int group) {
        auto const name = request.name.empty() ? "group " + std::to_string(group) : request.name;
        while (static_cast<int>(children_.size()) < request.size - 1) {
            auto const rank = std::to_string(children_.size() + 1);
            auto const& current = boost::unit_test::framework::current_test_case();
            children_.emplace_back("gloo_rank_of_a_case", child_arguments{current.full_name(), rank,
                                                                          std::to_string(group)});
        }
        auto options = options_for(request, name, 0);
        options.at = "127.0.0.1:0";
        options.on_listening = [&](endpoint const& bound) {
            for (std::size_t i = 0; i < children_.size(); ++i) {
                bool const takes_part = static_cast<int>(i) + 1 < request.size;
                children_[i].write_line(takes_part ? to_string(bound) + " " + name : "skip");
            }
        };
        std::vector<std::string> outcomes;
        outcomes.push_back(played(options, body));
        if (request.size == 1) {
            for (auto& one : children_) one.write_line("skip");
        }
        for (int rank = 1; rank < request.size; ++rank) {
            outcomes.push_back(outcome_of(children_[static_cast<std::size_t>(rank - 1)]));
        }
        return outcomes;
    }
    template <class Body>
    std::vector<std::string> run_child(group_request const& request, Body body, int group) {
        std::vector<std::string> const nothing(static_cast<std::size_t>(request.size));
        if (group < part_in_case().skip) return nothing;
        std::string line;
        if (!std::getline(std::cin, line)) std::_Exit(3);  // the parent is gone
        if (line == "skip") return nothing;
        auto const space = line.find(' ');
        auto options = options_for(request, line.substr(space + 1), part_in_case().rank);
        options.at = line.substr(0, space);
        auto outcome = played(options, body);
        std::ranges::replace(outcome, '\n', ' ');
        std::cout << "outcome " << outcome << std::endl;
        return nothing;
    }
    template <class Body>
    static std::string played(gloo_options const& options, Body& body) {
        try {
            auto c = gloo_communicator::join(options);
            return body(c);
        } catch (...) {
            return describe_exception();
        }
    }
    static std::string outcome_of(child_process& one) {
        try {
            for (;;) {
                auto const line = one.read_line(deadline::after(std::chrono::seconds{240}));
                if (line.starts_with("outcome ")) return line.substr(8);
            }
        } catch (std::exception const& problem) {
            return problem.what();
        }
    }

    std::vector<child_process> children_;
    int groups_ = 0;
};
static_assert(GroupMaker<gloo_process_maker>);

}  // namespace weightcast::test
