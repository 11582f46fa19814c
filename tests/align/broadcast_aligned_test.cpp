// SPDX-License-Identifier: Apache-2.0
// The sender's one function: its four paths, source devices, threads, exceptions, and what staging costs.
#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <support/local_ranks.hpp>
#include <support/says.hpp>
#include <weightcast/align/broadcast_aligned.hpp>
#include <weightcast/tensor/range_tensor.hpp>

namespace weightcast::test {
namespace {

using group_type = local_communicator;
using named = named_tensor<tensor_view<>>;

produced_anywhere anywhere() { return {soon()}; }

/// Receives so many bytes and says whether they are those.
std::string receive_and_compare(group_type& c, contents const& expected, std::string const& what) {
    placed_bytes target{c.where(), contents(expected.size(), std::byte{0xAA})};
    auto view = target.view();
    receive_into(c, view, 0, patiently(what));
    return unless(target.read() == expected, what + " is wrong");
}

std::vector<std::uint64_t> wait_counts() {
    std::vector<std::uint64_t> all;
    for (int i = 0; i < runtime::device_count(); ++i) all.push_back(runtime::device_wait_count(i));
    return all;
}

/// One tensor on each of the devices, and one on the cpu.
class scattered {
  public:
    explicit scattered(std::size_t bytes, std::uint64_t seed) : ordinary_{pattern(bytes, seed)} {
        for (auto const where : {host0, host1, host2}) {
            placed_.push_back(std::make_unique<placed_bytes>(where, bytes, ++seed));
        }
    }
    std::vector<named> list() const {
        std::vector<named> all{
            {"cpu", tensor_view<>{const_cast<std::byte*>(ordinary_.data()),
                                  dtype::uint8,
                                  {static_cast<std::int64_t>(ordinary_.size())}}}};
        for (auto const& p : placed_) all.push_back({"on a device", p->view()});
        return all;
    }
    std::vector<contents> expected() const {
        std::vector<contents> all{ordinary_};
        for (auto const& p : placed_) all.push_back(p->read());
        return all;
    }

  private:
    contents ordinary_;
    std::vector<std::unique_ptr<placed_bytes>> placed_;
};

BOOST_AUTO_TEST_SUITE(broadcast_aligned_suite)

// --- the seed's four sender paths are one function ---

BOOST_AUTO_TEST_CASE(sender_path_one_tensor) {
    auto const bytes = pattern(12'345, 1);
    for (auto const where : {host1, cpu_device}) {
        check_ranks(run_ranks(3, where,
                              [&](group_type& c) -> std::string {
                                  if (c.rank() != 0) return receive_and_compare(c, bytes, "tensor");
                                  placed_bytes const memory{host0, bytes};
                                  broadcast_aligned(c, memory.view(), anywhere(),
                                                    patiently("tensor"))
                                      .wait(soon());
                                  return "";
                              }),
                    "one tensor");
    }
}

BOOST_AUTO_TEST_CASE(sender_path_many_named_tensors) {
    scattered const source{5000, 10};
    auto const expected = source.expected();
    for (auto const where : {host1, cpu_device}) {
        check_ranks(
            run_ranks(
                3, where,
                [&](group_type& c) -> std::string {
                    if (c.rank() == 0) {
                        broadcast_aligned(c, source.list(), anywhere(), patiently()).wait(soon());
                        return "";
                    }
                    for (auto const& bytes : expected) {
                        auto said = receive_and_compare(c, bytes, "tensor");
                        if (!said.empty()) return said;
                    }
                    return "";
                }),
            "many named tensors");
    }
}

BOOST_AUTO_TEST_CASE(sender_path_a_flattened_bucket) {
    contents bucket;  // several tensors, one after the other, as one tensor of bytes
    for (std::uint64_t seed = 20; seed < 25; ++seed) {
        auto const part = pattern(1000 + seed, seed);
        bucket.insert(bucket.end(), part.begin(), part.end());
    }
    check_ranks(run_ranks(2, host1,
                          [&](group_type& c) -> std::string {
                              if (c.rank() != 0) return receive_and_compare(c, bucket, "bucket");
                              placed_bytes const memory{host2, bucket};
                              std::vector<named> const one{{"bucket", memory.view()}};
                              broadcast_aligned(c, one, anywhere(), patiently()).wait(soon());
                              return "";
                          }),
                "a flattened bucket");
}

BOOST_AUTO_TEST_CASE(sender_path_a_lora_set) {
    // low-rank factors, half of them transposed views, alternating devices
    std::vector<std::unique_ptr<placed_bytes>> memory;
    std::vector<named> set;
    std::vector<std::string> names;
    names.reserve(8);
    for (std::uint64_t layer = 0; layer < 4; ++layer) {
        auto const where = layer % 2 == 0 ? host0 : host1;
        for (char const* const part : {".lora_A", ".lora_B"}) {
            memory.push_back(std::make_unique<placed_bytes>(where, 8 * 64 * 4, 30 + layer));
            names.push_back("layers." + std::to_string(layer) + part);
            auto const& m = *memory.back();
            set.push_back({names.back(), part[6] == 'A'
                                             ? m.view(dtype::float32, {8, 64})
                                             : m.view(dtype::float32, {64, 8}, {1, 64})});
        }
    }
    std::vector<contents> expected;
    for (auto const& n : set) expected.push_back(gathered(n.tensor));
    check_ranks(run_ranks(2, host1,
                          [&](group_type& c) -> std::string {
                              if (c.rank() == 0) {
                                  broadcast_aligned(c, set, anywhere(), patiently()).wait(soon());
                                  return "";
                              }
                              for (std::size_t i = 0; i < expected.size(); ++i) {
                                  auto said = receive_and_compare(c, expected[i], names[i]);
                                  if (!said.empty()) return said;
                              }
                              return "";
                          }),
                "a LoRA set");
}

// --- source devices ---

BOOST_AUTO_TEST_CASE(many_tensors_wait_for_each_unique_source_device_once) {
    scattered const first{100, 40};
    scattered const second{100, 50};
    auto list = first.list();
    for (auto const& n : second.list()) list.push_back(n);
    auto group = local_group{1, {.where = {host1}}}.join(0);
    settled const group_done{group};
    auto expected = wait_counts();
    broadcast_aligned(group, list, anywhere(), patiently()).wait(soon());
    for (std::size_t i : {0U, 1U, 2U}) ++expected[i];
    BOOST_TEST(wait_counts() == expected, boost::test_tools::per_element());

    std::vector<named> const ordinary(5, list.front());
    broadcast_aligned(group, ordinary, anywhere(), patiently()).wait(soon());
    broadcast_aligned(group, list, already_ready{}, patiently()).wait(soon());
    weightcast::stream<runtime> const producer{host0};
    broadcast_aligned(group, list, produced_on{producer.ref()}, patiently()).wait(soon());
    BOOST_TEST(wait_counts() == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_busy_source_is_a_timeout_before_anything_was_sent) {
    placed_bytes const idle{host0, 100, 60};
    placed_bytes const busy{host2, 100, 61};
    stream_blocker<runtime> const blocker{busy.stream()};
    auto group = local_group{2, {.where = {host1}}}.join(0);
    std::vector<named> const list{{"idle", idle.view()}, {"busy", busy.view()}};
    BOOST_CHECK_EXCEPTION(static_cast<void>(broadcast_aligned(
                              group, list, produced_anywhere{at_once()}, patiently())),
                          timeout, says({"host:2", "produced_on"}));
    BOOST_CHECK_EXCEPTION(static_cast<void>(broadcast_aligned(
                              group, busy.view(), produced_anywhere{at_once()}, patiently())),
                          timeout, says({"host:2", "produced_on"}));
    BOOST_TEST(!group.outstanding());
    BOOST_TEST(!group.failed());
}

BOOST_AUTO_TEST_CASE(a_tensor_in_the_wrong_place_is_refused_before_the_first_one_is_sent) {
    placed_bytes const good{host0, 100, 62};
    contents ordinary(100);
    auto group = local_group{2, {.where = {host1}}}.join(0);
    for (auto const where : {host1, device{device_kind::cuda, 0}, device{device_kind::cuda, 99}}) {
        std::vector<named> const list{
            {"good", good.view()},
            {"layers.7.bad", tensor_view<>{ordinary.data(), dtype::uint8, {100}, where}}};
        BOOST_CHECK_EXCEPTION(
            static_cast<void>(broadcast_aligned(group, list, anywhere(), patiently())),
            device_mismatch, says({"tensor 'layers.7.bad'", to_string(where)}));
    }
    BOOST_TEST(!group.outstanding());
    BOOST_TEST(!group.failed());
    BOOST_TEST(runtime::memory(host1).active == 0U);
}

BOOST_AUTO_TEST_CASE(an_empty_list_is_sent_at_once) {
    auto group = local_group{2, {.where = {host1}}}.join(0);
    broadcast_aligned(group, std::vector<named>{}, anywhere(), patiently()).wait(soon());
    BOOST_TEST(!group.outstanding());
}

// --- streams, devices, threads ---

BOOST_AUTO_TEST_CASE(a_thread_on_another_device_sends_and_stays_there) {
    auto const bytes = pattern(5000, 63);
    check_ranks(
        run_ranks(2, host1,
                  [&](group_type& c) -> std::string {
                      if (runtime::current_device() != 0)
                          return "a fresh thread is not on device 0";
                      if (c.rank() != 0) return receive_and_compare(c, bytes, "tensor");
                      placed_bytes const memory{host0, bytes};
                      broadcast_aligned(c, memory.view(), anywhere(), patiently()).wait(soon());
                      if (runtime::device_of(c.core().collective_stream()) != host1)
                          return "another stream";
                      return unless(runtime::current_device() == 0, "the caller's device changed");
                  }),
        "device 0 sends for device 1");
}

BOOST_AUTO_TEST_CASE(an_exception_restores_the_callers_device_too) {
    contents ordinary(100);
    auto group = local_group{1, {.where = {host1}}}.join(0);
    settled const group_done{group};
    runtime::set_current_device(2);
    tensor_view<> const lie{ordinary.data(), dtype::uint8, {100}, host0};
    BOOST_CHECK_THROW(static_cast<void>(broadcast_aligned(group, lie, anywhere(), patiently())),
                      device_mismatch);
    BOOST_TEST(runtime::current_device() == 2);
    runtime::set_current_device(0);
}

BOOST_AUTO_TEST_CASE(produced_on_is_recorded_at_the_call) {
    auto const new_bytes = pattern(50'000, 64);
    for (auto const from : {host1, host0}) {
        check_ranks(run_ranks(2, host1,
                              [&](group_type& c) -> std::string {
                                  if (c.rank() != 0)
                                      return receive_and_compare(c, new_bytes, "tensor");
                                  placed_bytes memory{from, contents(50'000)};
                                  stream_blocker<runtime> blocker{memory.stream()};
                                  runtime::copy(memory.data(), from, new_bytes.data(), cpu_device,
                                                50'000, memory.stream());
                                  auto sent = broadcast_aligned(
                                      c, memory.view(), produced_on{memory.stream()}, patiently());
                                  std::this_thread::sleep_for(std::chrono::milliseconds{10});
                                  bool const early = sent.ready();
                                  blocker.open();
                                  sent.wait(soon());
                                  return unless(!early, "sent before it was produced");
                              }),
                    "produced_on");
    }
}

BOOST_AUTO_TEST_CASE(an_asynchronous_copy_to_ordinary_memory_is_waited_for_with_produced_on) {
    auto const new_bytes = pattern(50'000, 65);
    check_ranks(run_ranks(2,
                          [&](group_type& c) -> std::string {
                              if (c.rank() != 0) return receive_and_compare(c, new_bytes, "tensor");
                              placed_bytes const memory{host0, new_bytes};
                              contents landing(50'000);
                              stream_blocker<runtime> blocker{memory.stream()};
                              runtime::copy(landing.data(), cpu_device, memory.data(), host0,
                                            landing.size(), memory.stream());
                              auto sent = broadcast_aligned(
                                  c, tensor_view<>{landing.data(), dtype::uint8, {50'000}},
                                  produced_on{memory.stream()}, patiently());
                              blocker.open();
                              sent.wait(soon());
                              return "";
                          }),
                "device to host");
}

// --- what staging leaves behind ---

BOOST_AUTO_TEST_CASE(an_exception_leaves_a_scope_with_a_staged_broadcast_in_flight) {
    settings_scope const strict{
        {.poison_freed = true, .max_delay = std::chrono::microseconds{300}, .delay_seed = 66}};
    auto const bytes = pattern(40'000, 66);
    auto const said = run_ranks(2, host1, [&](group_type& c) -> std::string {
        placed_bytes const memory{host0, bytes};
        for (int round = 0; round < 10; ++round) {
            if (c.rank() != 0) {
                auto wrong = receive_and_compare(c, bytes, "round " + std::to_string(round));
                if (!wrong.empty()) return wrong;
                continue;
            }
            try {
                alignment_scope<group_type> scope{c};
                c.broadcast_from(scope.align(memory.view(), anywhere()), patiently());
                throw std::runtime_error{"the caller's own"};
            } catch (std::runtime_error const&) {
                // its slot is free again: what comes next may get the same memory, in the stream's order
                placed_bytes const other{host1, contents(40'000, std::byte{0xEE})};
                if (runtime::memory(host1).active > 2 * 40'000U)
                    return "the staging was not given back";
            }
        }
        finish(c, patiently());
        return "";
    });
    check_ranks(said, "exception");
    BOOST_TEST(runtime::memory(host1).active == 0U);
}

BOOST_AUTO_TEST_CASE(staging_of_a_failed_group_is_given_back) {
    placed_bytes const memory{host0, 40'000, 67};
    {
        auto group = local_group{2, {.where = {host1}, .grace = std::chrono::seconds{10}}}.join(0);
        auto sent = broadcast_aligned(group, memory.view(), anywhere(), patiently());
        group.abort();
        BOOST_CHECK_THROW(sent.wait(soon()), group_aborted);
        BOOST_CHECK_THROW(
            static_cast<void>(broadcast_aligned(group, memory.view(), anywhere(), patiently())),
            error);
        BOOST_TEST(runtime::memory(host1).active == 0U);
        settle(group.core().copy_stream());
    }
    runtime::trim(host1);
    BOOST_TEST(runtime::memory(host1).reserved == 0U);
}

BOOST_AUTO_TEST_CASE(a_failed_group_leaves_the_source_before_the_call_throws) {
    // The staging copy waits behind a blocked stream: the call may not return while it still has to read.
    for (bool const many : {false, true}) {
        auto group = local_group{2, {.where = {host1}, .grace = std::chrono::seconds{10}}}.join(0);
        group.abort();
        placed_bytes const memory{host0, 40'000, 67};
        stream_blocker<runtime> blocker{group.core().copy_stream()};
        std::atomic<bool> opened{false};
        std::jthread const later{[&] {
            std::this_thread::sleep_for(std::chrono::milliseconds{50});
            opened = true;
            blocker.open();
        }};
        auto const send = [&] {
            std::vector<named> const list{{"w", memory.view()}};
            if (many)
                static_cast<void>(broadcast_aligned(group, list, anywhere(), patiently()));
            else
                static_cast<void>(broadcast_aligned(group, memory.view(), anywhere(), patiently()));
        };
        BOOST_CHECK_THROW(send(), error);
        BOOST_TEST(opened, (many ? "many tensors" : "one tensor"));
    }
}

BOOST_AUTO_TEST_CASE(staging_of_many_calls_that_nobody_waited_for_is_bounded) {
    // each call gives its slot back in the stream's order; the next one gets the same memory
    placed_bytes const memory{host0, 40'000, 68};
    runtime::trim(host1);
    auto const before = runtime::memory(host1).reserved;
    auto const said = run_ranks(2, std::vector{host1, host2}, [&](group_type& c) -> std::string {
        if (c.rank() != 0) {
            for (int i = 0; i < 20; ++i) {
                auto wrong = receive_and_compare(c, memory.read(), "tensor");
                if (!wrong.empty()) return wrong;
            }
            return "";
        }
        std::vector<pending<group_type>> all;
        for (int i = 0; i < 20; ++i)
            all.push_back(broadcast_aligned(c, memory.view(), already_ready{}, patiently()));
        auto const reserved = runtime::memory(host1).reserved;
        for (auto& sent : all) sent.wait(soon());
        return unless(reserved <= before + 41'000,
                      "staging of " + std::to_string(reserved - before) + " bytes");
    });
    check_ranks(said, "20 calls");
}

// --- receiving ---

BOOST_AUTO_TEST_CASE(a_receive_keeps_its_buffers_address) {
    check_ranks(
        run_ranks(2,
                  [](group_type& c) -> std::string {
                      std::vector<float> weights(1000, c.rank() == 0 ? 2.0F : 0.0F);
                      auto const* const address = weights.data();
                      if (c.rank() == 0) {
                          broadcast_aligned(c, weights, anywhere(), patiently()).wait(soon());
                          return "";
                      }
                      receive_into(c, weights, 0, patiently());
                      if (weights.data() != address) return "the buffer moved";
                      return unless(weights.front() == 2.0F && weights.back() == 2.0F,
                                    "other bytes");
                  }),
        "address");
}

BOOST_AUTO_TEST_CASE(a_strided_buffer_is_unpacked_when_receive_into_returns) {
    auto const bytes = pattern(60, 71);
    settings_scope const delayed{{.max_delay = std::chrono::microseconds{500}, .delay_seed = 71}};
    check_ranks(
        run_ranks(2, host1,
                  [&](group_type& c) -> std::string {
                      placed_bytes memory{host1, contents(400)};
                      if (c.rank() == 0) {
                          placed_bytes const source{host0, bytes};
                          broadcast_aligned(c, source.view(), anywhere(), patiently()).wait(soon());
                          return "";
                      }
                      auto view = memory.view(dtype::int32, {5, 3}, {17, 2});
                      receive_into(c, view, 0, patiently());
                      return unless(gathered(view) == bytes, "not unpacked");
                  }),
        "strided");
}

BOOST_AUTO_TEST_CASE(a_buffer_elsewhere_is_refused_and_the_group_is_usable) {
    auto const bytes = pattern(1000, 72);
    check_ranks(
        run_ranks(2, host1,
                  [&](group_type& c) -> std::string {
                      if (c.rank() == 0) {
                          placed_bytes const source{host1, bytes};
                          broadcast_aligned(c, source.view(), anywhere(), patiently()).wait(soon());
                          return "";
                      }
                      placed_bytes elsewhere{host0, contents(1000, std::byte{0x11})};
                      auto view = elsewhere.view();
                      try {
                          receive_into(c, view, 0, patiently());
                          return "received into another device's memory";
                      } catch (device_mismatch const&) {}
                      if (elsewhere.read() != contents(1000, std::byte{0x11}))
                          return "bytes were written";
                      return receive_and_compare(c, bytes, "tensor");
                  }),
        "mismatch");
}

BOOST_AUTO_TEST_CASE(a_receive_that_throws_writes_no_more) {
    // The unpacking waits behind a blocked stream when the deadline passes.
    auto const bytes = pattern(60, 73);
    check_ranks(
        run_ranks(2, host1,
                  [&](group_type& c) -> std::string {
                      if (c.rank() == 0) {
                          placed_bytes const source{host1, bytes};
                          broadcast_aligned(c, source.view(), anywhere(), patiently()).wait(soon());
                          return "";
                      }
                      placed_bytes memory{host1, contents(400)};
                      auto view = memory.view(dtype::int32, {5, 3}, {17, 2});
                      stream_blocker<runtime> blocker{c.core().unpack_stream()};
                      std::atomic<bool> opened{false};
                      std::jthread const later{[&] {
                          std::this_thread::sleep_for(std::chrono::milliseconds{600});
                          opened = true;
                          blocker.open();
                      }};
                      operation const op{{phase::payload, "w"},
                                         {.stall = std::chrono::seconds{60},
                                          .at = deadline::after(std::chrono::milliseconds{300})}};
                      try {
                          receive_into(c, view, 0, op);
                          return "no timeout";
                      } catch (timeout const&) {}
                      return unless(opened, "it returned while the unpacking was still to come");
                  }),
        "unpacking");
}

BOOST_AUTO_TEST_CASE(a_receiver_that_waits_in_vain_is_a_timeout_within_its_deadline) {
    auto group = local_group{2, {.where = {host1}, .grace = std::chrono::seconds{10}}};
    auto receiver = group.join(1);
    auto const sender = group.join(0);
    placed_bytes target{host1, contents(1000)};
    auto view = target.view();
    operation const op{
        {phase::payload, "layers.0.w"},
        {.stall = std::chrono::milliseconds{200}, .at = deadline::after(std::chrono::seconds{60})}};
    auto const began = std::chrono::steady_clock::now();
    BOOST_CHECK_EXCEPTION(receive_into(receiver, view, 0, op), timeout,
                          says({"payload: tensor 'layers.0.w'", "rank 1", "suspected rank 0"}));
    BOOST_TEST((std::chrono::steady_clock::now() - began < std::chrono::seconds{30}));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weightcast::test
