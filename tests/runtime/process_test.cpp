// SPDX-License-Identifier: Apache-2.0
// host_runtime and the life of a process: its end with work queued or stuck, a fork, and calls that end it.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <dlfcn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>

#include "runtime/host_support.hpp"
#include "support/child_process.hpp"

namespace {

using namespace weightcast;
using namespace weightcast::test;
using namespace std::chrono_literals;

/// Runs the child; what its standard error and exit must be.
void check_child(std::string const& name, child_end expected, std::string_view words = {}) {
    child_process process{name};
    auto const end = process.wait(soon());
    BOOST_REQUIRE_MESSAGE(end.has_value(), name << " did not end");
    BOOST_TEST(*end == expected);
    if (words.empty()) {
        BOOST_TEST(process.errors() == "");
    } else {
        BOOST_TEST(process.errors().find(words) != std::string::npos, process.errors());
    }
}

// --- the end of a process ---

child const queued{"runtime_exit_with_queued_work", [](child_arguments const&) {
                       static std::atomic<std::uint64_t> ran{0};
                       auto const s = runtime::create_stream(host0);
                       auto const t = runtime::create_stream(host1);
                       auto const e = runtime::create_event();
                       void* const used = runtime::allocate(1'000, host0, s);
                       runtime::deallocate(runtime::allocate(5'000, host0, s), s);
                       for (int i = 0; i < 10'000; ++i) {
                           runtime::enqueue(s, []() noexcept {
                               ++ran;
                               std::this_thread::sleep_for(1ms);
                           });
                           runtime::record(e, s);
                           runtime::stream_wait(t, e);
                       }
                       return used == nullptr ? 1 : 0;  // ten seconds of work are left behind
                   }};

child const stuck{"runtime_exit_with_stuck_work", [](child_arguments const&) {
                      static std::atomic<bool> begun{false};
                      auto const s = runtime::create_stream(host0);
                      runtime::deallocate(runtime::allocate(5'000, host0, s), s);
                      runtime::enqueue(s, []() noexcept {
                          begun.store(true);
                          for (;;) ::pause();
                      });
                      while (!begun.load()) std::this_thread::yield();
                      runtime::destroy_stream(s);
                      return 0;
                  }};

/// Destroyed after the runtime has stopped, as statics are that stand before it.
struct late_witness {
    std::atomic<bool> alive{true};
    std::atomic<bool> used_late{false};
    ~late_witness() {
        alive.store(false);
        std::this_thread::sleep_for(100ms);
        if (used_late.load()) std::_Exit(7);
    }
};
child const keeps_still{"runtime_runs_nothing_after_its_end", [](child_arguments const&) {
                            static late_witness witness;
                            auto const s = runtime::create_stream(host0);
                            for (int i = 0; i < 2'000; ++i) {
                                runtime::enqueue(s, []() noexcept {
                                    std::this_thread::sleep_for(1ms);
                                    if (!witness.alive.load()) witness.used_late.store(true);
                                });
                            }
                            return 0;
                        }};

/// Owners that are destroyed with the statics, after the runtime has stopped.
struct late_owners {
    stream<runtime> s{host0};
    event<runtime> e{s.ref()};
    device_buffer<runtime> b{100, host0, s};
};
child const late{"runtime_owners_outlive_main", [](child_arguments const&) {
                     static std::optional<late_owners>
                         before;  // destroyed after the runtime's own handler has run
                     before.emplace();
                     static late_owners const after;
                     return 0;
                 }};

BOOST_AUTO_TEST_SUITE(process_suite)

BOOST_AUTO_TEST_CASE(a_process_ends_with_work_queued) {
    auto const begin = std::chrono::steady_clock::now();
    check_child("runtime_exit_with_queued_work", {0, 0});
    BOOST_TEST((std::chrono::steady_clock::now() - begin < 9s));
}

BOOST_AUTO_TEST_CASE(a_process_ends_with_work_stuck) {
    check_child("runtime_exit_with_stuck_work", {0, 0});
}

BOOST_AUTO_TEST_CASE(no_operation_runs_when_statics_are_destroyed) {
    check_child("runtime_runs_nothing_after_its_end", {0, 0});
}

BOOST_AUTO_TEST_CASE(owners_may_outlive_main) {
    check_child("runtime_owners_outlive_main", {0, 0});
}

// --- fork ---

/// In a forked process: the sentence that the call throws, or what it does instead.
template <class Call>
bool refuses(char const* name, Call call) {
    try {
        call();
    } catch (contract_violation const& refusal) {
        if (std::string_view{refusal.what()}.find("forked") != std::string_view::npos) return true;
        std::fprintf(stderr, "%s: %s\n", name, refusal.what());
        return false;
    } catch (...) {}
    std::fprintf(stderr, "%s is not refused\n", name);
    return false;
}

bool all_is_refused(host_stream_ref s, host_event_ref e, void* memory) {
    bool good = true;
    auto const check = [&](char const* name, auto call) { good = refuses(name, call) && good; };
    check("settings", [] { static_cast<void>(runtime::settings()); });
    check("configure", [] { runtime::configure({}); });
    check("device_count", [] { static_cast<void>(runtime::device_count()); });
    check("current_device", [] { static_cast<void>(runtime::current_device()); });
    check("set_current_device", [] { runtime::set_current_device(0); });
    check("create_stream", [] { static_cast<void>(runtime::create_stream(host0)); });
    check("device_of", [&] { static_cast<void>(runtime::device_of(s)); });
    check("query stream", [&] { static_cast<void>(runtime::query(s)); });
    check("wait stream", [&] { static_cast<void>(runtime::wait(s, soon())); });
    check("enqueue", [&] { runtime::enqueue(s, []() noexcept {}); });
    check("mark", [&] { runtime::mark_communicator_stream(s); });
    check("create_event", [] { static_cast<void>(runtime::create_event()); });
    check("record", [&] { runtime::record(e, s); });
    check("stream_wait", [&] { runtime::stream_wait(s, e); });
    check("query event", [&] { static_cast<void>(runtime::query(e)); });
    check("wait event", [&] { static_cast<void>(runtime::wait(e, soon())); });
    check("allocate", [&] { static_cast<void>(runtime::allocate(1, host0, s)); });
    check("memory", [] { static_cast<void>(runtime::memory(host0)); });
    check("trim", [] { runtime::trim(host0); });
    check("locate", [&] { static_cast<void>(runtime::locate(memory)); });
    check("copy", [&] { runtime::copy(memory, host0, &good, cpu_device, 1, s); });
    check("wait_device", [] { static_cast<void>(runtime::wait_device(0, soon())); });
    check("device_wait_count", [] { static_cast<void>(runtime::device_wait_count(0)); });
    runtime::deallocate(memory, s);  // these have nothing to give back here
    runtime::destroy_event(e);
    runtime::destroy_stream(s);
    return good;
}

child const forks{"runtime_fork", [](child_arguments const&) {
                      auto const s = runtime::create_stream(host0);
                      auto const e = runtime::create_event();
                      void* const memory = runtime::allocate(100, host0, s);
                      runtime::record(e, s);
                      pid_t const forked = ::fork();
                      if (forked == 0) {
                          alarm(30);
                          std::exit(all_is_refused(s, e, memory)
                                        ? 0
                                        : 1);  // exit: the handler must keep still too
                      }
                      int status = 0;
                      if (::waitpid(forked, &status, 0) != forked) return 2;
                      bool const parent_goes_on = runtime::wait(s, soon()) && runtime::query(e);
                      runtime::deallocate(memory, s);
                      return WIFEXITED(status) && parent_goes_on ? WEXITSTATUS(status) : 3;
                  }};

BOOST_AUTO_TEST_CASE(a_forked_process_is_told_so) {
    child_process process{"runtime_fork"};
    auto const end = process.wait(soon());
    BOOST_REQUIRE(end.has_value());
    BOOST_TEST(*end == (child_end{0, 0}), process.errors());
}

// --- a system without threads to give ---

child const no_threads{
    "runtime_without_threads", [](child_arguments const&) {
        std::vector<stream<runtime>> streams;
        streams.reserve(1'000);
        streams.emplace_back(host0);
        std::ifstream statm{"/proc/self/statm"};
        std::uint64_t pages = 0;
        statm >> pages;
        rlimit before{};
        ::getrlimit(RLIMIT_AS, &before);
        rlimit few = before;  // room for a few stacks of 8 MiB, and for nothing more
        few.rlim_cur = pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)) + (64U << 20U);
        ::setrlimit(RLIMIT_AS, &few);
        bool told = false;
        try {
            while (streams.size() < 1'000) streams.emplace_back(host0);
        } catch (system_failure const& failure) {
            told = std::string_view{failure.what()}.find("create_stream: pthread_create") !=
                   std::string_view::npos;
        }
        ::setrlimit(RLIMIT_AS, &before);
        streams.emplace_back(host0);  // what is there goes on, and more comes
        bool good = told;
        for (auto const& s : streams) good = runtime::wait(s, soon()) && good;
        return good ? 0 : 1;
    }};

BOOST_AUTO_TEST_CASE(a_system_without_threads_says_so) {
    if (::dlsym(RTLD_DEFAULT, "__asan_init") != nullptr ||
        ::dlsym(RTLD_DEFAULT, "__tsan_init") != nullptr) {
        BOOST_TEST_MESSAGE("skipped: a sanitizer's address space cannot be limited");
        return;
    }
    check_child("runtime_without_threads", {0, 0});
}

// --- calls that may not throw ---

int ends_by(void (*call)()) {
    std::set_terminate([] { std::_Exit(42); });
    call();
    return 0;
}
child const twice_stream{"runtime_destroys_a_stream_twice", [](child_arguments const&) {
                             return ends_by([] {
                                 auto const s = runtime::create_stream(host0);
                                 runtime::destroy_stream(s);
                                 runtime::destroy_stream(s);
                             });
                         }};
child const twice_event{"runtime_destroys_an_event_twice", [](child_arguments const&) {
                            return ends_by([] {
                                auto const e = runtime::create_event();
                                runtime::destroy_event(e);
                                runtime::destroy_event(e);
                            });
                        }};
child const twice_memory{"runtime_deallocates_twice", [](child_arguments const&) {
                             return ends_by([] {
                                 auto const s = runtime::create_stream(host0);
                                 void* const p = runtime::allocate(10, host0, s);
                                 runtime::deallocate(p, s);
                                 runtime::deallocate(p, s);
                             });
                         }};
child const unknown_memory{"runtime_deallocates_the_unknown", [](child_arguments const&) {
                               return ends_by([] {
                                   int local = 0;
                                   runtime::deallocate(&local, runtime::create_stream(host0));
                               });
                           }};
child const middle_of_memory{
    "runtime_deallocates_from_the_middle", [](child_arguments const&) {
        return ends_by([] {
            auto const s = runtime::create_stream(host0);
            runtime::deallocate(static_cast<std::byte*>(runtime::allocate(10, host0, s)) + 1, s);
        });
    }};
child const dead_stream{"runtime_deallocates_on_a_dead_stream", [](child_arguments const&) {
                            return ends_by([] {
                                auto const s = runtime::create_stream(host0);
                                void* const p = runtime::allocate(10, host0, s);
                                runtime::destroy_stream(s);
                                runtime::deallocate(p, s);
                            });
                        }};

BOOST_AUTO_TEST_CASE(a_broken_contract_that_cannot_throw_ends_the_process_with_its_sentence) {
    check_child("runtime_destroys_a_stream_twice", {42, 0},
                "destroy_stream: host_runtime: this stream was destroyed");
    check_child("runtime_destroys_an_event_twice", {42, 0},
                "destroy_event: host_runtime: this event was destroyed");
    check_child("runtime_deallocates_twice", {42, 0}, "is deallocated already");
    check_child("runtime_deallocates_the_unknown", {42, 0}, "was not allocated here");
    check_child("runtime_deallocates_from_the_middle", {42, 0}, "was not allocated here");
    check_child("runtime_deallocates_on_a_dead_stream", {42, 0}, "this stream was destroyed");
}

// --- a guard on the wrong thread ---

child const wrong_thread{"runtime_guard_on_another_thread", [](child_arguments const&) {
                             return ends_by([] {
                                 auto guard = std::make_unique<device_guard<runtime>>(host1);
                                 std::thread{[&] { guard.reset(); }}.join();
                             });
                         }};

BOOST_AUTO_TEST_CASE(a_guard_left_on_another_thread_ends_the_process) {
    child_process process{"runtime_guard_on_another_thread"};
    BOOST_TEST((process.wait(soon()) == child_end{42, 0}));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
