// SPDX-License-Identifier: Apache-2.0
// The project's own first promises about devices, streams and staging, each as it was first asked for.
#include <algorithm>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <support/local_ranks.hpp>
#include <weightcast/align/broadcast_aligned.hpp>

namespace weightcast::test {
namespace {

using named = named_tensor<tensor_view<>>;

produced_anywhere anywhere() { return {soon()}; }

tensor_view<> ordinary(contents const& bytes) {
    return {const_cast<std::byte*>(bytes.data()),
            dtype::uint8,
            {static_cast<std::int64_t>(bytes.size())}};
}
std::string receive_and_compare(local_communicator& c, contents const& expected) {
    placed_bytes target{c.where(), contents(expected.size(), std::byte{0xAA})};
    auto view = target.view();
    receive_into(c, view, 0, patiently());
    return unless(target.read() == expected, "other bytes came");
}

BOOST_AUTO_TEST_SUITE(seed)

BOOST_AUTO_TEST_CASE(seed_a_same_device_tensor_is_sent_from_its_own_address_with_no_allocation) {
    // that nothing at all is allocated on the way is counted in align/allocation_test.cpp
    for (auto const where : {fresh_device(), fresh_device(), cpu_device}) {
        placed_bytes const memory{where, 100'000, 1};
        auto const before = runtime::memory(where);
        auto const said = run_ranks(2, where, [&](local_communicator& c) -> std::string {
            if (c.rank() == 1) {
                contents target(100'000);
                placed_bytes held{c.where(), target};
                auto view = held.view();
                receive_into(c, view, 0, patiently());
                return unless(held.read() == memory.read(), "other bytes came");
            }
            alignment_scope<local_communicator> scope{c};
            auto const proof = scope.align(memory.view());
            if (proof.data() != memory.data() || proof.staged()) return "sent from elsewhere";
            c.broadcast_from(proof, patiently());
            finish(c, patiently());
            return "";
        });
        check_ranks(said, "same device");
        BOOST_TEST(runtime::memory(where).active == before.active);
        // the receiver's buffer; other tests have been on cpu before
        BOOST_TEST(runtime::memory(where).peak <= std::max(before.peak, before.active + 100'000));
    }
}

BOOST_AUTO_TEST_CASE(
    seed_each_source_device_is_waited_for_exactly_once_for_many_tensors_and_the_cpu_never) {
    std::vector<std::unique_ptr<placed_bytes>> memory;
    contents const plain = pattern(100, 1);
    std::vector<named> list;
    for (int i = 0; i < 30; ++i) {
        memory.push_back(std::make_unique<placed_bytes>(device{device_kind::host, i % 3}, 100, 2));
        list.push_back({"w", memory.back()->view()});
        list.push_back({"on cpu", ordinary(plain)});
    }
    auto group = local_group{1, {.where = {host1}}}.join(0);
    settled const done{group};
    std::vector<std::uint64_t> before;
    for (int d = 0; d < 4; ++d) before.push_back(runtime::device_wait_count(d));
    broadcast_aligned(group, list, anywhere(), patiently()).wait(soon());
    for (int d = 0; d < 4; ++d) {
        BOOST_TEST(runtime::device_wait_count(d) ==
                   before[static_cast<std::size_t>(d)] + (d < 3 ? 1 : 0));
    }
    std::vector<named> const on_cpu(10, {"on cpu", ordinary(plain)});
    broadcast_aligned(group, on_cpu, anywhere(), patiently()).wait(soon());
    for (int d = 0; d < 3; ++d) {
        BOOST_TEST(runtime::device_wait_count(d) == before[static_cast<std::size_t>(d)] + 1);
    }
}

BOOST_AUTO_TEST_CASE(seed_a_thread_on_device_0_sends_for_a_communicator_on_device_1) {
    auto const bytes = pattern(5000, 3);
    check_ranks(
        run_ranks(2, host1,
                  [&](local_communicator& c) -> std::string {
                      if (runtime::current_device() != 0) return "the thread is not on device 0";
                      if (c.rank() == 1) return receive_and_compare(c, bytes);
                      placed_bytes const memory{host0, bytes};
                      broadcast_aligned(c, memory.view(), anywhere(), patiently()).wait(soon());
                      for (auto const stream :
                           {c.core().collective_stream(), c.core().copy_stream()}) {
                          if (runtime::device_of(stream) != host1)
                              return "a stream of another device";
                      }
                      return unless(runtime::current_device() == 0, "the thread's device changed");
                  }),
        "device 0 for device 1");
}

BOOST_AUTO_TEST_CASE(seed_an_exception_leaves_a_scope_with_a_staged_broadcast_in_flight) {
    settings_scope const strict{
        {.poison_freed = true, .max_delay = std::chrono::microseconds{300}, .delay_seed = 4}};
    auto const bytes = pattern(40'000, 4);
    auto const said = run_ranks(2, host1, [&](local_communicator& c) -> std::string {
        placed_bytes const memory{host0, bytes};
        for (int round = 0; round < 10; ++round) {
            if (c.rank() == 1) {
                auto wrong = receive_and_compare(c, bytes);
                if (!wrong.empty()) return wrong;
                continue;
            }
            try {
                alignment_scope<local_communicator> scope{c};
                c.broadcast_from(scope.align(memory.view(), anywhere()), patiently());
                throw std::runtime_error{"the caller's own"};
            } catch (std::runtime_error const&) {
                placed_bytes const next{host1,
                                        contents(40'000, std::byte{0xEE})};  // wants memory at once
            }
        }
        finish(c, patiently());
        return "";
    });
    check_ranks(said, "exception");
    BOOST_TEST(runtime::memory(host1).active == 0U);
}

BOOST_AUTO_TEST_CASE(seed_pool_threads_send_the_same_tensors_to_several_groups_at_once) {
    settings_scope const delayed{{.max_delay = std::chrono::microseconds{100}, .delay_seed = 5}};
    placed_bytes const on0{host0, 20'000, 5};
    placed_bytes const on1{host1, 20'000, 6};
    contents const plain = pattern(20'000, 7);
    std::vector<named> const list{{"a", on0.view()}, {"b", on1.view()}, {"c", ordinary(plain)}};
    std::vector<contents> const expected{on0.read(), on1.read(), plain};
    std::vector<std::string> said(4);
    {
        std::vector<std::jthread> pool;
        for (std::size_t g = 0; g < said.size(); ++g) {
            pool.emplace_back([&, g] {
                device const where{device_kind::host, static_cast<int>(g % 3)};
                auto const ranks = run_ranks(2, where, [&](local_communicator& c) -> std::string {
                    for (int round = 0; round < 5; ++round) {
                        if (c.rank() == 0) {
                            broadcast_aligned(c, list, anywhere(), patiently()).wait(soon());
                            continue;
                        }
                        for (auto const& bytes : expected) {
                            auto wrong = receive_and_compare(c, bytes);
                            if (!wrong.empty()) return wrong;
                        }
                    }
                    return "";
                });
                for (auto const& one : ranks) said[g] += one;
            });
        }
    }
    check_ranks(said, "several groups");
}

BOOST_AUTO_TEST_CASE(seed_a_receive_keeps_its_buffers_address) {
    auto const bytes = pattern(5000, 8);
    for (auto const where : {cpu_device, host1}) {
        check_ranks(
            run_ranks(2, where,
                      [&](local_communicator& c) -> std::string {
                          placed_bytes memory{where, c.rank() == 0 ? bytes : contents(5000)};
                          auto view = memory.view();
                          if (c.rank() == 0) {
                              broadcast_aligned(c, view, anywhere(), patiently()).wait(soon());
                              return "";
                          }
                          alignment_scope<local_communicator> scope{c};
                          auto const proof = scope.require(view);
                          if (proof.data() != memory.data()) return "received elsewhere";
                          c.broadcast_into(proof, 0, patiently());
                          finish(c, patiently());
                          return unless(memory.read() == bytes, "other bytes came");
                      }),
            "address");
    }
}

BOOST_AUTO_TEST_CASE(seed_fifty_cycles_of_a_64_mib_mismatched_tensor_leave_no_staging) {
    std::size_t const size = is_sanitized() ? std::size_t{4} << 20U : std::size_t{64} << 20U;
    constexpr int cycles = 50;
    runtime::trim(host1);
    contents const source = pattern(size, 9);
    auto const said =
        run_ranks(2, std::vector{host1, host2}, [&](local_communicator& c) -> std::string {
            if (c.rank() == 1) {
                placed_bytes target{host2, contents(size)};
                auto view = target.view();
                for (int i = 0; i < cycles; ++i) receive_into(c, view, 0, patiently());
                return unless(target.read() == source, "other bytes came");
            }
            std::uint64_t reserved = 0;
            for (int i = 0; i < cycles; ++i) {
                broadcast_aligned(c, ordinary(source), anywhere(), patiently()).wait(soon());
                auto const now = runtime::memory(host1);
                if (i == 0) reserved = now.reserved;
                if (now.active != 0) return "staging is active after cycle " + std::to_string(i);
                if (now.reserved != reserved) {
                    return "reserved went from " + std::to_string(reserved) + " to " +
                           std::to_string(now.reserved);
                }
            }
            return "";
        });
    check_ranks(said, "50 cycles");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weightcast::test
