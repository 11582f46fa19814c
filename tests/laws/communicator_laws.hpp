// SPDX-License-Identifier: Apache-2.0
// What every communicator keeps to while all ranks do the same.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <laws/group_maker.hpp>

namespace weightcast::test {

/// Sizes at the edges of cache lines, pages, pieces and of what one copy streams.
inline std::vector<std::size_t> const edge_sizes{
    0, 1, 7, 63, 64, 65, 4095, 4096, 4097, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 9 << 20};

/// broadcast(root) leaves root's bytes on every rank, and nothing else changes anywhere.
template <GroupMaker M>
void law_broadcast_is_exact(M& maker, int size, std::vector<device> const& where = {}) {
    using C = typename M::communicator;
    check_ranks(
        maker.run({.size = size, .where = where},
                  [](C& c) -> std::string {
                      std::uint64_t seed = 1000;
                      for (auto const bytes : edge_sizes) {
                          for (int root = 0; root < c.size(); ++root) {
                              bool const ends = root == 0 || root == c.size() - 1;
                              if (bytes > (1 << 16) && !ends) continue;  // the large ones take long
                              if (bytes > (1 << 21) && root != c.size() - 1) continue;
                              ++seed;
                              auto const own = seed * 64 + static_cast<std::uint64_t>(c.rank());
                              auto const roots = seed * 64 + static_cast<std::uint64_t>(root);
                              rank_memory<C> memory{c, bytes, own};
                              enqueue_broadcast(c, memory, root, patiently());
                              finish(c, patiently());
                              if (memory.holds(pattern(bytes, roots))) continue;
                              return std::to_string(bytes) + " bytes of root " +
                                     std::to_string(root) + " are wrong";
                          }
                      }
                      return "";
                  }),
        "broadcast is exact, " + std::to_string(size) + " ranks");
}

/// Place in the group, device, and a group that is idle and whole.
template <GroupMaker M>
void law_place_and_state(M& maker, std::vector<device> const& where = {}) {
    using C = typename M::communicator;
    static_assert(explain_communicator<C>());
    check_ranks(maker.run({.size = 3, .where = where},
                          [where](C& c) -> std::string {
                              auto const rank = static_cast<std::size_t>(c.rank());
                              if (c.size() != 3 || rank > 2) return "another place in the group";
                              if (!where.empty()) {
                                  auto const expected = where.size() == 1 ? where[0] : where[rank];
                                  if (c.where() != expected) return "on " + to_string(c.where());
                              }
                              if (!c.where().is_resolved()) return "its device has no index";
                              if (c.failed() || c.outstanding())
                                  return "failed, or busy with nothing";
                              rank_memory<C> memory{c, 100, 1};
                              enqueue_broadcast(c, memory, 0, patiently());
                              finish(c, patiently());
                              if (c.failed()) return "failed by a broadcast";
                              if (c.outstanding()) return "outstanding after the wait";
                              if (c.bytes_done() != 100) return "bytes_done is not 100";
                              if (c.suspect() != -1) return "somebody is suspected";
                              return "";
                          }),
                "place and state");
}

/// A receive goes into the caller's own buffer, and a send comes from it.
template <GroupMaker M>
void law_buffers_keep_their_addresses(M& maker, std::vector<device> const& where = {}) {
    using C = typename M::communicator;
    check_ranks(maker.run({.size = 2, .where = where},
                          [](C& c) -> std::string {
                              rank_memory<C> memory{c, 5000, static_cast<std::uint64_t>(c.rank())};
                              auto view = memory.view();
                              {
                                  alignment_scope<C> scope{c};
                                  auto const op = patiently();
                                  if (c.rank() == 0) {
                                      auto const proof = scope.align(view, already_ready{});
                                      if (proof.data() != view.data()) return "sent from elsewhere";
                                      c.broadcast_from(proof, op);
                                  } else {
                                      auto const proof = scope.require(view);
                                      if (proof.data() != view.data()) return "received elsewhere";
                                      c.broadcast_into(proof, 0, op);
                                  }
                              }
                              finish(c, patiently());
                              return memory.holds(pattern(5000, 0)) ? "" : "wrong bytes";
                          }),
                "addresses");
}

/// Many ranges, some of them empty, as one operation; then again with other sizes.
template <GroupMaker M>
void law_groups_of_ranges(M& maker, int size, std::vector<device> const& where = {}) {
    using C = typename M::communicator;
    check_ranks(
        maker.run({.size = size, .where = where},
                  [](C& c) -> std::string {
                      std::mt19937 random{17};  // the same on every rank
                      for (int round = 0; round < 6; ++round) {
                          std::vector<std::size_t> sizes;
                          for (int i = 0; i < 40; ++i) {
                              sizes.push_back(
                                  i % 5 == round % 5 ? 0 : random() % (i % 9 == 0 ? 300'000 : 900));
                          }
                          if (round == 5) sizes.assign(7, 0);
                          int const root =
                              static_cast<int>(random() % static_cast<unsigned>(c.size()));
                          std::vector<rank_memory<C>> memories;
                          for (std::size_t i = 0; i < sizes.size(); ++i) {
                              memories.emplace_back(c, sizes[i],
                                                    i * 64 + static_cast<std::uint64_t>(c.rank()));
                          }
                          broadcast_group(c, memories, root, patiently());
                          finish(c, patiently());
                          for (std::size_t i = 0; i < sizes.size(); ++i) {
                              auto const expected =
                                  pattern(sizes[i], i * 64 + static_cast<std::uint64_t>(root));
                              if (!memories[i].holds(expected))
                                  return "range " + std::to_string(i) + " is wrong";
                          }
                      }
                      return "";
                  }),
        "groups of ranges, " + std::to_string(size) + " ranks");
}
/// Each rank sends to the next and receives from the one before, even ranks sending first.
template <GroupMaker M>
void law_send_and_receive(M& maker, int size, std::vector<device> const& where = {}) {
    using C = typename M::communicator;
    check_ranks(
        maker.run({.size = size, .where = where},
                  [](C& c) -> std::string {
                      int const next = (c.rank() + 1) % c.size();
                      int const before = (c.rank() + c.size() - 1) % c.size();
                      for (std::size_t const bytes : {0U, 1U, 4097U, 1U << 20U}) {
                          rank_memory<C> out{c, bytes, static_cast<std::uint64_t>(c.rank())};
                          rank_memory<C> in{c, bytes, 99};
                          // The last rank of an odd group breaks the ring of senders.
                          bool const sends_first = c.rank() % 2 == 0;
                          if (sends_first) enqueue_send(c, out, next, patiently());
                          enqueue_receive(c, in, before, patiently());
                          if (!sends_first) enqueue_send(c, out, next, patiently());
                          finish(c, patiently());
                          if (!in.holds(pattern(bytes, static_cast<std::uint64_t>(before)))) {
                              return "wrong bytes of " + std::to_string(bytes);
                          }
                          if (!out.holds(pattern(bytes, static_cast<std::uint64_t>(c.rank())))) {
                              return "what was sent has changed";
                          }
                      }
                      return "";
                  }),
        "send and receive, " + std::to_string(size) + " ranks");
}

/// The value of element i on a rank: small enough that every order of summing is exact.
template <class T>
T reduction_input(int rank, std::size_t i) {
    auto const value =
        static_cast<std::int64_t>((i * 37 + static_cast<std::size_t>(rank) * 101) % 1000);
    if constexpr (std::is_unsigned_v<T>)
        return static_cast<T>(value);
    else
        return static_cast<T>(value - 500);
}
template <class T>
T expected_reduction(int ranks, std::size_t i, reduction how) {
    T result = reduction_input<T>(0, i);
    for (int r = 1; r < ranks; ++r) {
        T const value = reduction_input<T>(r, i);
        if (how == reduction::sum) result = static_cast<T>(result + value);
        if (how == reduction::min) result = std::min(result, value);
        if (how == reduction::max) result = std::max(result, value);
    }
    return result;
}
template <class T, Communicator C>
std::string check_all_reduce(C& c, dtype type, reduction how, std::size_t count) {
    std::vector<T> values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = reduction_input<T>(c.rank(), i);
    contents bytes(count * sizeof(T));
    if (count != 0) std::memcpy(bytes.data(), values.data(), bytes.size());
    rank_memory<C> memory{c, bytes.size(), 3};
    memory.write(bytes);
    enqueue_all_reduce(c, memory, type, how, patiently());
    finish(c, patiently());
    for (std::size_t i = 0; i < count; ++i) values[i] = expected_reduction<T>(c.size(), i, how);
    if (count != 0) std::memcpy(bytes.data(), values.data(), bytes.size());
    if (memory.holds(bytes)) return "";
    return "all-reduce of " + std::to_string(count) + " " + std::string{to_string(type)} +
           " is wrong";
}

/// Every type, reduction and size gives the same exact values on all ranks.
template <GroupMaker M>
void law_all_reduce(M& maker, int size, std::vector<device> const& where = {}) {
    using C = typename M::communicator;
    check_ranks(
        maker.run({.size = size, .where = where},
                  [](C& c) -> std::string {
                      std::string wrong;
                      for (std::size_t const count : {0U, 1U, 2U, 3U, 7U, 1000U, 70'001U}) {
                          for (auto const how : {reduction::sum, reduction::min, reduction::max}) {
                              wrong += check_all_reduce<std::int32_t>(c, dtype::int32, how, count);
                              wrong += check_all_reduce<std::int64_t>(c, dtype::int64, how, count);
                              wrong +=
                                  check_all_reduce<std::uint64_t>(c, dtype::uint64, how, count);
                              wrong += check_all_reduce<float>(c, dtype::float32, how, count);
                              wrong += check_all_reduce<double>(c, dtype::float64, how, count);
                          }
                      }
                      return wrong;
                  }),
        "all-reduce, " + std::to_string(size) + " ranks");
}

/// Values at the ends of a type; floating-point sums have the same bits on every rank.
template <GroupMaker M>
void law_all_reduce_at_the_ends(M& maker) {
    using C = typename M::communicator;
    auto const sums = maker.run({.size = 3}, [](C& c) -> std::string {
        auto const one = [&](auto value, dtype type, reduction how) {
            contents bytes(sizeof value);
            std::memcpy(bytes.data(), &value, sizeof value);
            rank_memory<C> memory{c, bytes.size(), 3};
            memory.write(bytes);
            enqueue_all_reduce(c, memory, type, how, patiently());
            finish(c, patiently());
            bytes = memory.read();
            std::memcpy(&value, bytes.data(), sizeof value);
            return value;
        };
        using u64 = std::numeric_limits<std::uint64_t>;
        using i64 = std::numeric_limits<std::int64_t>;
        auto const mine = [&](auto a, auto b, auto d) {
            return c.rank() == 0 ? a : c.rank() == 1 ? b : d;
        };
        bool const ends =
            one(mine(u64::max(), std::uint64_t{0}, u64::max() - 1), dtype::uint64,
                reduction::min) == 0U &&
            one(mine(u64::max(), std::uint64_t{0}, u64::max() - 1), dtype::uint64,
                reduction::max) == u64::max() &&
            one(mine(i64::min(), i64::max(), std::int64_t{0}), dtype::int64, reduction::min) ==
                i64::min() &&
            one(mine(i64::min(), i64::max(), std::int64_t{0}), dtype::int64, reduction::max) ==
                i64::max() &&
            one(mine(i64::min(), i64::max(), std::int64_t{1}), dtype::int64, reduction::sum) == 0;
        if (!ends) return "the ends of a type are wrong";
        auto const sum = one(mine(0.1F, 1e8F, -1e8F), dtype::float32, reduction::sum);
        std::uint32_t bits = 0;
        std::memcpy(&bits, &sum, sizeof bits);
        return "bits " + std::to_string(bits);
    });
    BOOST_TEST(std::set<std::string>(sums.begin(), sums.end()).size() == 1U,
               sums[0] << ", " << sums[1]);
    BOOST_TEST(sums[0].starts_with("bits "), sums[0]);
}

/// Types that have no arithmetic here are refused at the call, and the group stays usable.
template <GroupMaker M>
void law_all_reduce_refuses_other_types(M& maker) {
    using C = typename M::communicator;
    check_ranks(maker.run({.size = 2},
                          [](C& c) -> std::string {
                              for (auto const type : {dtype::bfloat16, dtype::uint8, dtype::bool_,
                                                      dtype::float8_e4m3fn, dtype::complex64}) {
                                  rank_memory<C> memory{c, 64, 1};
                                  try {
                                      enqueue_all_reduce(c, memory, type, reduction::sum,
                                                         patiently());
                                      return "accepted " + std::string{to_string(type)};
                                  } catch (bad_argument const& e) {
                                      std::string const text = e.what();
                                      if (text.find(to_string(type)) == std::string::npos)
                                          return text;
                                  }
                              }
                              return check_all_reduce<float>(c, dtype::float32, reduction::max, 10);
                          }),
                "all-reduce refuses other types");
}

/// What `law_order_is_kept` leaves on a rank, computed one operation after the other.
inline contents replayed(int rank, int size) {
    std::mt19937 plan{4711};
    std::vector<contents> ranks;
    for (int r = 0; r < size; ++r) ranks.push_back(pattern(96, static_cast<std::uint64_t>(r)));
    for (int i = 0; i < 200; ++i) {
        auto const kind = plan() % 4;
        auto const a = static_cast<std::size_t>(plan() % static_cast<unsigned>(size));
        auto const b = (a + 1) % ranks.size();
        plan();
        if (kind < 2 || (kind == 2 && a == b)) {
            for (auto& other : ranks) other = ranks[a];
        } else if (kind == 2) {
            ranks[b] = ranks[a];
        } else {
            std::array<std::uint64_t, 12> sum{};
            for (auto const& other : ranks) {
                for (std::size_t w = 0; w < sum.size(); ++w) {
                    std::uint64_t word = 0;
                    std::memcpy(&word, other.data() + 8 * w, 8);
                    sum[w] += word;
                }
            }
            for (auto& other : ranks) std::memcpy(other.data(), sum.data(), 96);
        }
    }
    return ranks[static_cast<std::size_t>(rank)];
}

/// Operations run in the order of the calls, whatever the ranks' pace: 200 mixed ones, enqueued at once and
/// waited for at random.
template <GroupMaker M>
void law_order_is_kept(M& maker, int size, std::vector<device> const& where = {}) {
    using C = typename M::communicator;
    check_ranks(maker.run({.size = size, .where = where},
                          [](C& c) -> std::string {
                              std::mt19937 plan{4711};  // the same on every rank
                              std::mt19937 pace{static_cast<std::uint32_t>(c.rank())};
                              // Everything goes through one small memory: a reordering shows as other bytes.
                              rank_memory<C> memory{c, 96, static_cast<std::uint64_t>(c.rank())};
                              auto const ranks = static_cast<unsigned>(c.size());
                              for (int i = 0; i < 200; ++i) {
                                  auto const kind = plan() % 4;
                                  int const a = static_cast<int>(plan() % ranks);
                                  int const b = (a + 1) % c.size();
                                  bool const waits = plan() % 10 == 0;
                                  if (kind < 2 || (kind == 2 && a == b)) {
                                      enqueue_broadcast(c, memory, a, patiently());
                                  } else if (kind == 2 && c.rank() == a) {
                                      enqueue_send(c, memory, b, patiently());
                                  } else if (kind == 2 && c.rank() == b) {
                                      enqueue_receive(c, memory, a, patiently());
                                  } else if (kind == 3) {
                                      enqueue_all_reduce(c, memory, dtype::uint64, reduction::sum,
                                                         patiently());
                                  }
                                  dawdle(pace, std::chrono::microseconds{300});
                                  if (waits) finish(c, patiently());
                              }
                              finish(c, patiently());
                              return memory.holds(replayed(c.rank(), c.size())) ? ""
                                                                                : "another order";
                          }),
                "order, " + std::to_string(size) + " ranks");
}
/// Several groups at once, each driven by threads of its own, do not disturb each other.
template <GroupMaker M>
void law_groups_side_by_side(M& maker) {
    using C = typename M::communicator;
    constexpr std::size_t groups = 3;
    std::array<std::vector<std::string>, groups> outcomes;
    std::vector<std::thread> threads;
    for (std::size_t g = 0; g < groups; ++g) {
        threads.emplace_back([&maker, &outcomes, g] {
            outcomes[g] = maker.run(
                {.size = 2, .name = "side " + std::to_string(g)}, [g](C& c) -> std::string {
                    for (std::uint64_t i = 0; i < 30; ++i) {
                        auto const seed = g * 1000 + i;
                        auto const root = static_cast<int>(i % 2);
                        rank_memory<C> memory{c, 3000, c.rank() == root ? seed : 7};
                        enqueue_broadcast(c, memory, root, patiently());
                        finish(c, patiently());
                        if (!memory.holds(pattern(3000, seed))) return "mixed up";
                    }
                    return "";
                });
        });
    }
    for (auto& thread : threads) thread.join();
    for (std::size_t g = 0; g < groups; ++g) check_ranks(outcomes[g], "group " + std::to_string(g));
}

/// Arguments that name no rank, and a proof of another communicator, are refused at the call.
template <GroupMaker M>
void law_wrong_calls_are_refused(M& maker) {
    using C = typename M::communicator;
    auto const refused = []<class Error>(auto call, Error const*) {
        try {
            call();
        } catch (Error const&) {
            return true;
        }
        return false;
    };
    static bad_argument const* const as_argument = nullptr;
    check_ranks(
        maker.run({.size = 2},
                  [refused](C& c) -> std::string {
                      rank_memory<C> memory{c, 10, 1};
                      for (int const no_rank : {-1, 2, 100}) {
                          bool const all =
                              refused([&] { enqueue_send(c, memory, no_rank, patiently()); },
                                      as_argument) &&
                              refused([&] { enqueue_receive(c, memory, no_rank, patiently()); },
                                      as_argument) &&
                              refused(
                                  [&] {
                                      alignment_scope<C> scope{c};
                                      auto view = memory.view();
                                      c.broadcast_into(scope.require(view), no_rank, patiently());
                                  },
                                  as_argument);
                          if (!all) return "rank " + std::to_string(no_rank) + " is accepted";
                      }
                      bool const itself =
                          refused([&] { enqueue_send(c, memory, c.rank(), patiently()); },
                                  as_argument) &&
                          refused([&] { enqueue_receive(c, memory, c.rank(), patiently()); },
                                  as_argument);
                      if (!itself) return "a rank may send to itself";
                      enqueue_broadcast(c, memory, 0, patiently());
                      finish(c, patiently());
                      return "";
                  }),
        "wrong calls");
}

/// A broadcast reads and writes on the communicator's own stream: what waits for it there sees the bytes.
template <GroupMaker M>
void law_bytes_are_there_when_the_event_is(M& maker) {
    using C = typename M::communicator;
    using runtime = typename C::runtime;
    check_ranks(maker.run({.size = 2},
                          [](C& c) -> std::string {
                              std::mt19937 pace{static_cast<std::uint32_t>(c.rank())};
                              for (std::uint64_t round = 0; round < 50; ++round) {
                                  rank_memory<C> memory{c, 10'000, c.rank() == 0 ? round : 555};
                                  dawdle(pace, std::chrono::microseconds{500});
                                  enqueue_broadcast(c, memory, 0, patiently());
                                  event<runtime> done{c.core().collective_stream()};
                                  if (!done.wait(patient().at)) return "the event was not reached";
                                  if (!memory.holds(pattern(10'000, round))) return "not there yet";
                              }
                              return "";
                          }),
                "bytes when the event is reached");
}

}  // namespace weightcast::test
