// SPDX-License-Identifier: Apache-2.0
// B56: a single tensor larger than the bucket crashed the transfer.
#include <algorithm>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <support/gloo_fleet.hpp>

namespace weightcast::test {
namespace {

constexpr std::uint64_t bucket = 64;
constexpr std::uint64_t never = std::uint64_t{1} << 40U;

BOOST_AUTO_TEST_SUITE(b56)

BOOST_AUTO_TEST_CASE(b56_tensors_of_any_size_pass_a_bucket_of_64_bytes) {
    for (auto const& sizes :
         {std::vector<std::int64_t>{10, 64, 65, 1000}, std::vector<std::int64_t>{1000, 65, 64, 10},
          std::vector<std::int64_t>{63, 64, 65}, std::vector<std::int64_t>{127, 128, 129, 1, 63},
          std::vector<std::int64_t>{1}, std::vector<std::int64_t>{64}}) {
        for (std::uint64_t const direct_from : {never, bucket, bucket + 1}) {
            test_fleet local{
                .size = 3,
                .settings = {.packing = {.chunk_bytes = bucket, .direct_from = direct_from}}};
            check_ranks(local.exchange(tensors_of_bytes(sizes), cpu_device), "local");
            local.where = host1;
            check_ranks(local.exchange(tensors_of_bytes(sizes), cpu_device), "staged");
            gloo_fleet const gloo{
                .settings = {.packing = {.chunk_bytes = bucket, .direct_from = direct_from}}};
            check_ranks(gloo.exchange(tensors_of_bytes(sizes), cpu_device, 1), "gloo");
        }
    }
}

BOOST_AUTO_TEST_CASE(b56_no_buffer_is_larger_than_the_bucket) {
    device const where{device_kind::host, 3};  // which nothing else of this program uses
    auto const specs = tensors_of_bytes({10, 64, 65, 1000, 100'000});
    std::uint64_t tensor_bytes = 0;
    for (auto const& s : specs) tensor_bytes += static_cast<std::uint64_t>(s.shape[0]);
    auto const expected = test_model{cpu_device, specs, 1}.values();
    for (std::size_t const ring : {1U, 2U, 4U}) {
        test_fleet const fleet{
            .where = where,
            .settings = {.packing = {.chunk_bytes = bucket, .direct_from = never, .ring = ring}}};
        std::uint64_t most = 0;
        check_ranks(fleet.run(
                        [&](test_trainer& trainer) {
                            test_model const model{cpu_device, specs, 1};
                            auto source = model.source();
                            send_update(trainer, source, 1);
                            most = runtime::memory(where).peak;
                            return failure_of(trainer);
                        },
                        [&](test_engine& engine, int) {
                            test_model held{where, specs, 0};
                            held.add_to(engine.target().main());
                            receive_update(engine);
                            return first_difference(held, expected);
                        }),
                    "ring of " + std::to_string(ring));
        // both sides' rings, the receiver's tensors, and small messages
        BOOST_TEST(most <= 2 * ring * bucket + tensor_bytes + 4096);
    }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weightcast::test
