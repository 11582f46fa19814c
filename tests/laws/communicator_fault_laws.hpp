// SPDX-License-Identifier: Apache-2.0
// What every communicator keeps to when ranks disagree, stop, end or are aborted: each rank gets an error in
// time that names what is known, no byte outside the buffers changes, and the group can be formed anew.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <laws/communicator_laws.hpp>

namespace weightcast::test {

/// How an operation failed on a rank.
struct failure {
    std::string kind{};  ///< "timeout", "peer_error", "group_aborted"
    std::string text{};
    failure_facts facts{};
    std::chrono::milliseconds after{};

    bool says(std::string_view words) const { return text.find(words) != std::string::npos; }
};

/// Runs it; nothing when it succeeds. Errors that no communicator may throw leave.
inline std::optional<failure> failure_of(std::function<void()> const& action) {
    auto const begin = std::chrono::steady_clock::now();
    auto const made = [&](char const* kind, error const& e) {
        auto const took = std::chrono::steady_clock::now() - begin;
        return failure{kind, e.what(), e.facts(),
                       std::chrono::duration_cast<std::chrono::milliseconds>(took)};
    };
    try {
        action();
        return std::nullopt;
    } catch (timeout const& e) {
        return made("timeout", e);
    } catch (peer_error const& e) {
        return made("peer_error", e);
    } catch (group_aborted const& e) {
        return made("group_aborted", e);
    }
}

/// What follows on a group that failed: it says so, and each next call and wait throws the same again.
template <Communicator C>
std::string poisoned(C& c, failure const& first) {
    if (!c.failed()) return "failed() is false after: " + first.text;
    for (int i = 0; i < 2; ++i) {
        rank_memory<C> memory{c, 8, 1};
        auto const call = failure_of([&] { enqueue_broadcast(c, memory, 0, patiently()); });
        if (!call) return "a call on a failed group is accepted, after: " + first.text;
        if (call->kind != first.kind || call->text != first.text) {
            return "the next call throws '" + call->text + "', not '" + first.text + "'";
        }
        auto const wait = failure_of([&] { finish(c, patiently()); });
        if (!wait || wait->text != first.text)
            return "a wait does not throw the first failure again";
    }
    return c.outstanding() ? "outstanding after the failure" : "";
}

/// Ranks that called different things: all get peer_error, which has the words of both calls.
template <Communicator C>
std::string disagreement(C& c, std::function<void()> const& action,
                         std::vector<std::string> const& words) {
    auto const failed = failure_of([&] {
        action();
        finish(c, patiently());
    });
    if (!failed) return "the ranks disagree, and nothing failed";
    if (failed->kind != "peer_error")
        return "expected peer_error, got " + failed->kind + ": " + failed->text;
    for (auto const& word : words) {
        if (!failed->says(word)) return "'" + word + "' is not in: " + failed->text;
    }
    if (!failed->says("preflight")) return "the phase is not in: " + failed->text;
    return poisoned(c, *failed);
}
inline operation in_preflight() { return patiently("layers.0.w", phase::preflight); }

/// Different sizes, in both directions; larger receivers and smaller ones.
template <GroupMaker M>
void law_sizes_must_agree(M& maker, int size) {
    using C = typename M::communicator;
    for (auto const& [root_bytes, other_bytes] : std::vector<std::pair<std::size_t, std::size_t>>{
             {16, 12}, {12, 16}, {0, 1}, {1 << 21, 16}}) {
        check_ranks(
            maker.run({.size = size},
                      [root_bytes = root_bytes, other_bytes = other_bytes](C& c) -> std::string {
                          bool const odd_one = c.rank() == c.size() - 1;
                          auto const bytes = odd_one ? other_bytes : root_bytes;
                          rank_memory<C> memory{c, bytes, static_cast<std::uint64_t>(c.rank())};
                          auto wrong = disagreement(
                              c, [&] { enqueue_broadcast(c, memory, 0, in_preflight()); },
                              {std::to_string(root_bytes), std::to_string(other_bytes)});
                          if (!memory.guards_hold()) wrong += " memory beyond the buffer changed";
                          return wrong;
                      }),
            "sizes " + std::to_string(root_bytes) + " and " + std::to_string(other_bytes));
    }
}
template <GroupMaker M>
void law_ranges_must_agree(M& maker) {
    using C = typename M::communicator;
    auto const with = [&](std::vector<std::size_t> const& a, std::vector<std::size_t> const& b) {
        check_ranks(maker.run({.size = 2},
                              [a, b](C& c) -> std::string {
                                  std::vector<rank_memory<C>> memories;
                                  for (auto const bytes : c.rank() == 0 ? a : b)
                                      memories.emplace_back(c, bytes, 1);
                                  return disagreement(
                                      c, [&] { broadcast_group(c, memories, 0, in_preflight()); },
                                      {});
                              }),
                    "ranges");
    };
    with({8, 16, 24}, {8, 17, 24});
    with({8, 16, 24}, {8, 16});
    with({8, 16}, {16, 8});  // equal sums
    with({8, 0, 8}, {8, 8, 0});
}
template <GroupMaker M>
void law_roots_must_agree(M& maker, int size) {
    using C = typename M::communicator;
    check_ranks(maker.run({.size = size},
                          [](C& c) -> std::string {
                              rank_memory<C> memory{c, 64, 1};
                              int const root = c.rank() == 0 ? 0 : 1;
                              return disagreement(
                                  c, [&] { enqueue_broadcast(c, memory, root, in_preflight()); },
                                  {"rank 0", "rank 1"});
                          }),
                "roots");
}
template <GroupMaker M>
void law_kinds_must_agree(M& maker) {
    using C = typename M::communicator;
    check_ranks(maker.run({.size = 2},
                          [](C& c) -> std::string {
                              rank_memory<C> memory{c, 64, 1};
                              auto const op = in_preflight();
                              return disagreement(c,
                                                  [&] {
                                                      if (c.rank() == 0)
                                                          enqueue_broadcast(c, memory, 0, op);
                                                      else
                                                          enqueue_all_reduce(c, memory,
                                                                             dtype::int32,
                                                                             reduction::min, op);
                                                  },
                                                  {"broadcast", "all-reduce"});
                          }),
                "a broadcast and an all-reduce");
    check_ranks(maker.run({.size = 2},
                          [](C& c) -> std::string {
                              rank_memory<C> memory{c, 64, 1};
                              auto const type = c.rank() == 0 ? dtype::float32 : dtype::int32;
                              auto const op = in_preflight();
                              return disagreement(
                                  c,
                                  [&] { enqueue_all_reduce(c, memory, type, reduction::max, op); },
                                  {"float32", "int32"});
                          }),
                "all-reduces of different types");
    check_ranks(maker.run({.size = 2},
                          [](C& c) -> std::string {
                              rank_memory<C> memory{c, 64, 1};
                              auto const how = c.rank() == 0 ? reduction::sum : reduction::min;
                              auto const op = in_preflight();
                              return disagreement(
                                  c, [&] { enqueue_all_reduce(c, memory, dtype::int64, how, op); },
                                  {"sum", "min"});
                          }),
                "different reductions");
}

/// Limits that end an operation soon, for ranks that wait for one that does not come.
inline constexpr std::chrono::milliseconds short_stall{300};
/// What a loaded machine may add to a limit.
inline constexpr std::chrono::milliseconds margin{15'000};
inline operation impatiently(std::string_view tensor = "layers.7.w") {
    return {operation_label{phase::payload, tensor},
            {.stall = short_stall, .at = deadline::after(std::chrono::seconds{240})}};
}

/// A rank that does not call: the others get an error in time, which names phase, tensor, bytes and that rank.
template <GroupMaker M>
void law_a_stuck_rank_is_named(M& maker, int size) {
    using C = typename M::communicator;
    check_ranks(maker.run({.size = size},
                          [](C& c) -> std::string {
                              int const stuck = c.size() - 1;
                              rank_memory<C> memory{c, 1000, 1};
                              enqueue_broadcast(c, memory, 0, patiently());
                              finish(c, patiently());  // all are there
                              auto const op = impatiently();
                              if (c.rank() == stuck) std::this_thread::sleep_for(5 * short_stall);
                              auto const failed = failure_of([&] {
                                  enqueue_broadcast(c, memory, 0, op);
                                  finish(c, patiently());
                              });
                              if (!failed) return "a rank was stuck, and nothing failed";
                              if (failed->after > short_stall + margin)
                                  return "too late: " + failed->text;
                              if (c.rank() == stuck) return poisoned(c, *failed);
                              if (failed->kind == "group_aborted")
                                  return failed->kind + ": " + failed->text;
                              if (failed->facts.suspect != stuck)
                                  return "suspects another: " + failed->text;
                              if (c.suspect() != stuck) return "suspect() is another";
                              if (failed->facts.where != phase::payload ||
                                  !failed->says("payload: ") || !failed->says("layers.7.w") ||
                                  !failed->says("0 bytes done")) {
                                  return "phase, tensor or bytes are not in: " + failed->text;
                              }
                              if (failed->facts.rank != c.rank()) return "another rank reports";
                              return poisoned(c, *failed);
                          }),
                "a stuck rank, " + std::to_string(size) + " ranks");
}

/// The end of the whole operation counts too, and so does that of the wait.
template <GroupMaker M>
void law_deadlines_end_operations(M& maker) {
    using C = typename M::communicator;
    auto const run = [&](bool in_the_operation) {
        check_ranks(maker.run({.size = 2},
                              [in_the_operation](C& c) -> std::string {
                                  rank_memory<C> memory{c, 1000, 1};
                                  enqueue_broadcast(c, memory, 0, patiently());
                                  finish(c, patiently());
                                  if (c.rank() == 1) {
                                      std::this_thread::sleep_for(5 * short_stall);
                                      return "";
                                  }
                                  auto op = patiently("w7");
                                  auto until = patiently();
                                  (in_the_operation ? op : until).limits.at =
                                      deadline::after(short_stall);
                                  until.label = op.label;
                                  auto const failed = failure_of([&] {
                                      enqueue_broadcast(c, memory, 0, op);
                                      finish(c, until);
                                  });
                                  if (!failed) return "nothing failed";
                                  if (failed->kind != "timeout")
                                      return failed->kind + ": " + failed->text;
                                  if (failed->after > short_stall + margin) return "too late";
                                  if (failed->facts.suspect != 1) return "suspect: " + failed->text;
                                  if (!failed->says("w7")) return "no tensor in: " + failed->text;
                                  return c.failed() ? "" : "the group is not failed";
                              }),
                    in_the_operation ? "deadline of the operation" : "deadline of the wait");
    };
    run(true);
    run(false);
}

/// abort() from another thread during a blocked operation: group_aborted here, an error on the others; it
/// returns at once.
template <GroupMaker M>
void law_abort_wakes_everyone(M& maker, int size) {
    using C = typename M::communicator;
    check_ranks(maker.run({.size = size},
                          [](C& c) -> std::string {
                              rank_memory<C> memory{c, 1000, 1};
                              enqueue_broadcast(c, memory, 0, patiently());
                              finish(c, patiently());
                              int const absent = c.size() - 1;
                              if (c.rank() == absent) {
                                  // Comes when the others have ended: the end is waiting for it.
                                  std::this_thread::sleep_for(std::chrono::milliseconds{1500});
                                  auto const late = failure_of([&] {
                                      enqueue_broadcast(c, memory, 0, impatiently());
                                      finish(c, patiently());
                                  });
                                  if (!late) return "the late rank succeeds";
                                  return late->kind == "group_aborted"
                                             ? "aborted on a rank that did not"
                                             : "";
                              }
                              std::chrono::milliseconds took{};
                              std::thread aborter{[&] {
                                  if (c.rank() != 0) return;
                                  std::this_thread::sleep_for(std::chrono::milliseconds{200});
                                  auto const begin = std::chrono::steady_clock::now();
                                  c.abort();
                                  took = std::chrono::duration_cast<std::chrono::milliseconds>(
                                      std::chrono::steady_clock::now() - begin);
                              }};
                              auto const failed = failure_of([&] {
                                  enqueue_broadcast(c, memory, 0, patiently());
                                  finish(c, patiently());
                              });
                              aborter.join();
                              if (!failed) return "aborted, and nothing failed";
                              if (took > std::chrono::seconds{5})
                                  return "abort() did not return at once";
                              if (failed->after > margin) return "too late";
                              auto const expected = c.rank() == 0 ? "group_aborted" : "peer_error";
                              if (c.rank() != 0 && failed->kind == "timeout")
                                  return poisoned(c, *failed);
                              if (failed->kind != expected)
                                  return failed->kind + ": " + failed->text;
                              return poisoned(c, *failed);
                          }),
                "abort, " + std::to_string(size) + " ranks");
}

/// abort() of an idle group: the next call throws, here and on the others.
template <GroupMaker M>
void law_abort_of_an_idle_group(M& maker) {
    using C = typename M::communicator;
    check_ranks(maker.run({.size = 2},
                          [](C& c) -> std::string {
                              rank_memory<C> memory{c, 10, 1};
                              enqueue_broadcast(c, memory, 0, patiently());
                              finish(c, patiently());  // all are there
                              if (c.rank() == 0) {
                                  c.abort();
                                  c.abort();
                              }
                              auto const failed = failure_of([&] {
                                  enqueue_broadcast(c, memory, 0, impatiently());
                                  finish(c, patiently());
                              });
                              if (!failed) return "nothing failed";
                              if ((failed->kind == "group_aborted") != (c.rank() == 0))
                                  return failed->text;
                              return poisoned(c, *failed);
                          }),
                "abort of an idle group");
}

/// Operations behind the one that failed are skipped: they write nothing.
template <GroupMaker M>
void law_later_work_is_skipped(M& maker) {
    using C = typename M::communicator;
    check_ranks(maker.run({.size = 2},
                          [](C& c) -> std::string {
                              auto const own = static_cast<std::uint64_t>(c.rank());
                              rank_memory<C> small{
                                  c, c.rank() == 0 ? std::size_t{8} : std::size_t{9}, own};
                              std::vector<rank_memory<C>> later;
                              for (int i = 0; i < 5; ++i) later.emplace_back(c, 100, own);
                              auto const failed = failure_of([&] {
                                  enqueue_broadcast(c, small, 0, patiently());
                                  for (auto& memory : later)
                                      enqueue_broadcast(c, memory, 0, patiently());
                                  finish(c, patiently());
                              });
                              if (!failed || failed->kind != "peer_error") return "no peer_error";
                              // Some calls may have thrown; what was enqueued ends all the same.
                              static_cast<void>(failure_of([&] { finish(c, patiently()); }));
                              if (c.outstanding()) return "outstanding";
                              for (auto& memory : later) {
                                  if (!memory.holds(pattern(100, own)))
                                      return "written after the failure";
                              }
                              return "";
                          }),
                "later work");
}

/// A rank whose communicator is gone ends the others' operations, and is named.
template <GroupMaker M>
void law_a_rank_that_is_gone_is_named(M& maker, int size) {
    using C = typename M::communicator;
    check_ranks(maker.run({.size = size},
                          [](C& c) -> std::string {
                              rank_memory<C> memory{c, 100, 1};
                              enqueue_broadcast(c, memory, 0, patiently());
                              finish(c, patiently());
                              int const gone = c.size() - 1;
                              if (c.rank() == gone) return "";
                              auto const failed = failure_of([&] {
                                  enqueue_broadcast(c, memory, 0, impatiently());
                                  finish(c, patiently());
                              });
                              if (!failed) return "nothing failed";
                              if (failed->after > short_stall + margin) return "too late";
                              if (failed->kind == "group_aborted") return failed->text;
                              return failed->facts.suspect == gone ? ""
                                                                   : "suspect: " + failed->text;
                          }),
                "a rank that is gone");
}

/// Leaving with operations under way aborts the group within the grace, and never joins a collective.
template <GroupMaker M>
void law_leaving_in_mid_operation(M& maker) {
    using C = typename M::communicator;
    auto const begin = std::chrono::steady_clock::now();
    check_ranks(maker.run({.size = 2},
                          [](C& c) -> std::string {
                              rank_memory<C> first{c, 100, 1};
                              enqueue_broadcast(c, first, 0, patiently());
                              finish(c, patiently());  // all are there
                              if (c.rank() == 1) {
                                  std::this_thread::sleep_for(std::chrono::milliseconds{500});
                                  rank_memory<C> memory{c, 100, 1};
                                  auto const failed = failure_of([&] {
                                      enqueue_broadcast(c, memory, 0, impatiently());
                                      finish(c, patiently());
                                  });
                                  return failed && failed->kind != "group_aborted" ? ""
                                                                                   : "no error";
                              }
                              // Longer than the communicator, which the maker destroys behind this body.
                              static auto* const kept = new std::vector<std::shared_ptr<void>>;
                              auto memory = std::make_shared<rank_memory<C>>(c, 100, 1);
                              kept->push_back(memory);
                              enqueue_broadcast(c, *memory, 0, patiently());
                              return "";
                          }),
                "leaving in mid-operation");
    BOOST_TEST((std::chrono::steady_clock::now() - begin < margin));
}

/// After a failure, and after success, a group of the same name is formed anew in the same process.
template <GroupMaker M>
void law_reforming_under_the_same_name(M& maker) {
    using C = typename M::communicator;
    for (int generation = 0; generation < 4; ++generation) {
        bool const fails = generation % 2 == 0;
        check_ranks(maker.run({.size = 2, .name = "again"},
                              [fails](C& c) -> std::string {
                                  rank_memory<C> memory{c, 500,
                                                        static_cast<std::uint64_t>(c.rank())};
                                  enqueue_broadcast(c, memory, 1, patiently());
                                  finish(c, patiently());
                                  if (!memory.holds(pattern(500, 1))) return "wrong bytes";
                                  if (!fails) return "";
                                  if (c.rank() == 0) c.abort();
                                  auto const failed = failure_of([&] {
                                      enqueue_broadcast(c, memory, 0, impatiently());
                                      finish(c, patiently());
                                  });
                                  return failed ? "" : "nothing failed";
                              }),
                    "generation " + std::to_string(generation));
    }
}

}  // namespace weightcast::test
