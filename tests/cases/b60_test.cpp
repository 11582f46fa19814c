// SPDX-License-Identifier: Apache-2.0
// B60: a receiver ran out of memory part-way, and the retry read payload as a header and believed its counts.
#include <boost/test/unit_test.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <new>
#include <string>
#include <vector>

#include <support/gloo_fleet.hpp>
#include <support/progress_hook.hpp>
#include <weightcast/base/error.hpp>
#include <weightcast/plan/announcement.hpp>
#include <weightcast/session/weight_sender.hpp>
#include <weightcast/session/weight_worker.hpp>

namespace weightcast::test {
namespace {

constexpr std::size_t items = 49;
constexpr std::uint64_t chunk = 512;

std::vector<tensor_spec> specs() {
    return tensors_of_bytes(std::vector<std::int64_t>(items, static_cast<std::int64_t>(chunk)));
}

/// A table that is out of memory when it is asked for a destination.
struct short_of_memory : parameter_tables<> {
    int left = -1;  ///< destinations until it happens; negative: never
    tensor_view<> destination(target_id const& id, std::string_view name) {
        if (left >= 0 && left-- == 0) throw std::bad_alloc{};
        return parameter_tables<>::destination(id, name);
    }
};
static_assert(WeightTarget<short_of_memory>);

/// In the payload, where memory for a copy is wanted; or before it, where destinations are made.
enum class when { in_payload, before_payload };

/// Two receivers, the last of which fails at item 3 of the first update. Then the sender tries again.
template <class Ranks>
void run(when moment, device where) {
    using C = typename Ranks::communicator;
    auto const factories = Ranks::factories(3, where);
    test_model const model{where, specs(), 1};
    auto const expected = model.values();
    transfer_settings const settings{
        .packing = {.chunk_bytes = chunk, .direct_from = std::uint64_t{1} << 40U}};
    std::vector<std::function<std::string()>> bodies;
    bodies.push_back([&]() -> std::string {
        weight_sender sender{dense_trainer<C>{factories(0), settings, patient_limits()},
                             {place(0, 3)}};
        auto source = model.source();
        auto const failed = sender.update(source);
        if (failed.ok()) return "it passed";
        auto const& message = failed.groups.at(0).message;
        if (message.find("refused by rank 2: std::bad_alloc") == std::string::npos) return message;
        auto const again = sender.update(source);
        return unless(again.ok(), again.groups.at(0).message);
    });
    for (int rank = 1; rank < 3; ++rank) {
        bodies.push_back([&, rank]() -> std::string {
            short_of_memory tables;
            test_model held{where, specs(), 0};
            held.add_to(tables.main());
            bool fails = rank == 2;
            if (fails && moment == when::before_payload) tables.left = 3;
            progress_hook const hook{[&](int item) {
                if (fails && moment == when::in_payload && item == 3) throw std::bad_alloc{};
            }};
            weight_worker worker{dense_engine<C, short_of_memory, progress_hook>{
                                     factories(rank), tables, patient_limits(), hook},
                                 place(rank, 3)};
            if (message_of([&] { static_cast<void>(worker.serve_one()); }).empty())
                return "it passed";
            if (tables.mixed() != (moment == when::in_payload)) return "another mark";
            if (tables.version().is_set()) return "a version";
            fails = false;
            if (worker.serve_one().tensors != items) return "another number of tensors";
            return first_difference(held, expected);
        });
    }
    check_ranks(run_threads(bodies), moment == when::in_payload ? "in payload" : "before it");
}

BOOST_AUTO_TEST_SUITE(b60)

BOOST_AUTO_TEST_CASE(b60_a_retry_is_right_after_an_allocation_error_at_item_3) {
    for (auto const moment : {when::in_payload, when::before_payload}) {
        run<gloo_ranks>(moment, cpu_device);
        run<local_ranks>(moment, cpu_device);
        run<local_ranks>(moment, {device_kind::host, 1});
    }
}

BOOST_AUTO_TEST_CASE(b60_received_bytes_are_held_once) {
    // on a device that no other test uses: the ring of chunks, the tensors themselves, and small messages
    auto const where = fresh_device();
    test_fleet const fleet{.where = where, .settings = {.packing = {.chunk_bytes = chunk}}};
    check_ranks(fleet.exchange(specs(), cpu_device, 3), "three updates");
    auto const rings = 2 * 2 * chunk;  // of both sides
    BOOST_TEST(runtime::memory(where).peak <= rings + items * chunk + 4096);
}

/// What reading an announcement cut or changed at that byte says; "" where it is read.
std::string reading(std::vector<std::byte> bytes, std::size_t at, std::uint64_t value) {
    for (std::size_t i = 0; i < 8 && at + i < bytes.size(); ++i)
        bytes[at + i] = static_cast<std::byte>(value >> (8 * i));
    try {
        static_cast<void>(decode_announcement(bytes));
        return "";
    } catch (bad_input const& e) {
        return e.what();
    } catch (bad_argument const& e) {  // of a shape or a setting that cannot be
        return e.what();
    } catch (std::bad_alloc const&) {
        return "it allocated for a bogus count";
    } catch (std::length_error const&) {
        return "it allocated for a bogus count";
    }
}

BOOST_AUTO_TEST_CASE(b60_bogus_counts_are_refused_before_anything_is_allocated_for_them) {
    announcement honest;
    for (std::size_t i = 0; i < items; ++i) {
        honest.parameters.push_back({"t" + std::to_string(i), dtype::uint8, {512}});
    }
    honest.roots.assign(items, 0);
    honest.packed.assign(items, 1);
    auto const bytes = encode(honest);
    BOOST_TEST(reading(bytes, bytes.size(), 0) == "");
    int refused = 0;
    for (std::size_t at = 0; at < bytes.size(); ++at) {
        for (std::uint64_t const count : {std::uint64_t{50'000}, ~std::uint64_t{0} >> 1U}) {
            auto const said = reading(bytes, at, count);
            BOOST_REQUIRE_MESSAGE(said != "it allocated for a bogus count", "at byte " << at);
            if (!said.empty()) ++refused;
        }
    }
    BOOST_TEST(refused > 1000);
    // payload in the place of a header
    auto const payload = pattern(bytes.size(), 3);
    BOOST_TEST(reading(payload, payload.size(), 0) != "");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weightcast::test
