// SPDX-License-Identifier: Apache-2.0
// B53: a temporary contiguous copy made for an asynchronous send was freed before the send had happened.
#include <chrono>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <support/local_ranks.hpp>
#include <weightcast/align/broadcast_aligned.hpp>

namespace weightcast::test {
namespace {

constexpr std::size_t tensors = 1000;
constexpr std::int64_t columns = 40;

/// Tensor i: every other column of a matrix, transposed.
tensor_view<> strided(placed_bytes const& memory) {
    return memory.view(dtype::float32, {columns / 2, 10}, {2, columns});
}

BOOST_AUTO_TEST_SUITE(b53)

BOOST_AUTO_TEST_CASE(b53_a_thousand_strided_tensors_while_the_allocator_is_used_again) {
    settings_scope const strict{{.poison_freed = true,
                                 .max_delay = std::chrono::microseconds{is_sanitized() ? 20 : 60},
                                 .delay_seed = 53}};
    std::deque<placed_bytes> sources;
    std::vector<contents> expected;
    for (std::size_t i = 0; i < 20; ++i) {
        sources.emplace_back(host1, 10 * columns * 4, i + 1);
        expected.push_back(gathered(strided(sources.back())));
    }
    auto const said = run_ranks(2, host1, [&](local_communicator& c) -> std::string {
        weightcast::stream<runtime> const other{host1};
        if (c.rank() == 1) {
            placed_bytes target{host1, contents(columns / 2 * 10 * 4)};
            auto view = target.view();
            for (std::size_t i = 0; i < tensors; ++i) {
                receive_into(c, view, 0, patiently());
                if (target.read() != expected[i % 20])
                    return "tensor " + std::to_string(i) + " is wrong";
            }
            return "";
        }
        std::deque<pending<local_communicator>> under_way;
        for (std::size_t i = 0; i < tensors; ++i) {
            under_way.push_back(
                broadcast_aligned(c, strided(sources[i % 20]), already_ready{}, patiently()));
            // what the send has given back by now is handed out anew, and written, on another stream
            device_buffer<runtime> const noise{800, host1, other.ref()};
            auto* const bytes = static_cast<std::uint8_t*>(noise.data());
            runtime::enqueue(other, [bytes]() noexcept {
                for (int b = 0; b < 800; ++b) bytes[b] = 0xAB;
            });
            if (under_way.size() > 50) {
                under_way.front().wait(soon());
                under_way.pop_front();
            }
        }
        for (auto& sent : under_way) sent.wait(soon());
        settle(other);
        return "";
    });
    check_ranks(said, "1000 strided tensors");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weightcast::test
