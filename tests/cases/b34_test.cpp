// SPDX-License-Identifier: Apache-2.0
// B34: tensors came in another order than was announced: a hang, or every later tensor under a wrong name.
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include <support/gloo_fleet.hpp>
#include <support/test_source.hpp>

namespace weightcast::test {
namespace {

struct scenario {
    std::string what;
    std::vector<tensor_spec> announced;
    std::vector<std::size_t> order;  ///< the indices in which the source hands them out
    std::size_t first_wrong;
};
std::vector<scenario> const scenarios{
    // regrouped by dtype; the bytes of the two agree
    {"regrouped",
     {{"a", dtype::bfloat16, {4}}, {"r", dtype::float32, {2}}, {"b", dtype::bfloat16, {4}}},
     {0, 2, 1},
     1},
    // nothing but the names differs
    {"alike",
     {{"a", dtype::float32, {100}}, {"b", dtype::float32, {100}}, {"c", dtype::float32, {100}}},
     {0, 2, 1},
     1},
    // the last but one comes twice
    {"twice",
     {{"a", dtype::uint8, {3000}}, {"b", dtype::uint8, {3000}}, {"c", dtype::uint8, {3000}}},
     {0, 1, 1},
     2}};

/// Each byte is that of one or of the other: the update may have ended anywhere.
bool is_made_of(contents const& bytes, contents const& one, contents const& other) {
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        if (bytes[i] != one[i] && bytes[i] != other[i]) return false;
    }
    return true;
}

template <class Ranks>
void run(scenario const& one, packing_options const& packing) {
    test_model const model{cpu_device, one.announced, 1};
    auto const sent = model.values();
    fleet_over<Ranks> const fleet{.size = 3, .settings = {.packing = packing}};
    auto const wrong = one.announced[one.first_wrong].name;
    check_ranks(fleet.run(
                    [&](auto& trainer) -> std::string {
                        recording_source source{model};
                        source.which = [&](std::size_t i) { return one.order[i]; };
                        auto const message = message_of([&] { send_update(trainer, source, 1); });
                        auto const given = one.announced[one.order[one.first_wrong]].name;
                        if (message.find("payload: tensor '" + wrong +
                                         "': the source hands out another") == std::string::npos ||
                            message.find("got '" + given + "'") == std::string::npos)
                            return "the sender says: " + message;
                        return unless(source.asked == each_once(one.first_wrong + 1), "it went on");
                    },
                    [&](auto& engine, int) -> std::string {
                        test_model held{cpu_device, one.announced, 0};
                        held.add_to(engine.target().main());
                        auto const untouched = held.values();
                        if (message_of([&] { receive_update(engine); }).empty()) return "it passed";
                        if (engine.target().version().is_set()) return "a version";
                        for (std::size_t i = 0; i < held.size(); ++i) {
                            auto const& own = i < one.first_wrong ? sent[i] : untouched[i];
                            if (!is_made_of(held.values()[i], untouched[i], own))
                                return "tensor '" + held.name(i) + "' was loaded with other bytes";
                        }
                        return "";
                    }),
                one.what);
}

BOOST_AUTO_TEST_SUITE(b34)

BOOST_AUTO_TEST_CASE(
    b34_the_first_tensor_out_of_order_ends_the_update_and_nothing_gets_a_wrong_name) {
    for (auto const& one : scenarios) {
        for (packing_options const& packing :
             {packing_options{}, packing_options{.chunk_bytes = 64, .direct_from = 1U << 20U},
              packing_options{.chunk_bytes = 64, .direct_from = 1}, vllm_packing(64)}) {
            run<local_ranks>(one, packing);
            run<gloo_ranks>(one, packing);
        }
    }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weightcast::test
