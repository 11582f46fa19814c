// SPDX-License-Identifier: Apache-2.0
// B64: double-buffered receive plus a loader that keeps tensors for later let a later bucket overwrite what the
// loader still held.
#include <chrono>
#include <cstring>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <support/test_model.hpp>
#include <weightcast/align/alignment_scope.hpp>

namespace weightcast::test {
namespace {

constexpr std::size_t buckets = 5;
constexpr std::size_t bucket = 1024;

BOOST_AUTO_TEST_SUITE(b64)

BOOST_AUTO_TEST_CASE(b64_what_the_target_holds_is_never_a_buffer_of_the_ring) {
    // five buckets, two buffers: the target's own tensors have the bytes at finish, and for good
    auto const specs = tensors_of_bytes(std::vector<std::int64_t>(buckets * 4, 256));
    test_model const model{cpu_device, specs, 1};
    auto const expected = model.values();
    for (auto const where : {cpu_device, host1}) {
        settings_scope const strict{
            {.poison_freed = true, .max_delay = std::chrono::microseconds{200}, .delay_seed = 64}};
        test_fleet const fleet{
            .where = where,
            .settings = {.packing = {.chunk_bytes = bucket, .direct_from = 1U << 30U, .ring = 2}}};
        check_ranks(
            fleet.run(
                [&](test_trainer& trainer) {
                    auto source = model.source();
                    send_update(trainer, source, 1);
                    return failure_of(trainer);
                },
                [&](test_engine& engine, int) -> std::string {
                    test_model held{where, specs, 0};
                    held.add_to(engine.target().main());
                    std::vector<void const*> addresses;
                    for (std::size_t i = 0; i < held.size(); ++i)
                        addresses.push_back(held.view(i).data());
                    auto const update = engine.next();
                    engine.start({});
                    engine.receive(update);
                    auto wrong = first_difference(held, expected);
                    if (!wrong.empty()) return "at finish: " + wrong;
                    engine.prepare();
                    engine.commit();
                    engine.shutdown();
                    for (std::size_t i = 0; i < held.size(); ++i) {
                        if (engine.target().destination({}, held.name(i)).data() != addresses[i])
                            return "moved";
                    }
                    return first_difference(held, expected);
                }),
            "targets on " + to_string(where));
    }
}

BOOST_AUTO_TEST_CASE(b64_a_view_into_a_buffer_is_good_until_its_proof_ends_and_a_copy_stays) {
    auto const said = run_ranks(2, host1, [&](local_communicator& c) -> std::string {
        alignment_scope<local_communicator> scope{c, {.slots = 2}};
        std::vector<contents> retained;
        std::vector<void const*> views;
        for (std::size_t i = 0; i < buckets; ++i) {
            auto const sent = pattern(bucket, i + 1);
            if (c.rank() == 0) {
                placed_bytes const memory{host1, sent};
                c.broadcast_from(scope.align(memory.view()), patiently());
                finish(c, patiently());
                continue;
            }
            auto const proof = scope.chunk(bucket, {phase::payload, "bucket"});
            c.broadcast_into(proof, 0, patiently());
            finish(c, patiently());
            auto const* const bytes = static_cast<std::byte const*>(proof.data());
            views.push_back(bytes);
            retained.emplace_back(bytes,
                                  bytes + bucket);  // the loader's own copy, while the view is good
        }
        if (c.rank() == 0) return "";
        settle(c.core().unpack_stream());
        for (std::size_t i = 0; i < buckets; ++i) {
            if (retained[i] != pattern(bucket, i + 1)) return "a retained copy changed";
        }
        // a view that was kept instead is one of two buffers by now: it shows a later bucket
        if (views[0] != views[2] || views[2] != views[4] || views[1] != views[3])
            return "more than two buffers";
        return unless(std::memcmp(views[0], pattern(bucket, 5).data(), bucket) == 0,
                      "the first buffer has other bytes");
    });
    check_ranks(said, "views and copies");
}

BOOST_AUTO_TEST_CASE(b64_released_buffers_are_poisoned_on_request) {
    char const* const sanitizer = std::getenv("WEIGHTCAST_SANITIZER");
    if (sanitizer != nullptr && std::string{sanitizer} == "address")
        return;  // there, reading it would be the report
    settings_scope const strict{{.poison_freed = true}};
    auto group = local_group{1, {.where = {host1}}}.join(0);
    settled const done{group};
    void const* view = nullptr;
    {
        alignment_scope<local_communicator> scope{group};
        auto const proof = scope.chunk(bucket, {phase::payload, "bucket"});
        std::memset(proof.data(), 0x11, bucket);
        view = proof.data();
    }
    settle(group.core().collective_stream());
    contents const poisoned(bucket, static_cast<std::byte>(detail::host_poison_pattern));
    BOOST_TEST(std::memcmp(view, poisoned.data(), bucket) == 0);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weightcast::test
