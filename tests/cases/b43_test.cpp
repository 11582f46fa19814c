// SPDX-License-Identifier: Apache-2.0
// B43: a zero-dimensional scalar broke packing and unpacking, and took the whole chunk down with it.
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <support/gloo_fleet.hpp>

namespace weightcast::test {
namespace {

std::vector<tensor_spec> const specs{{"scale", dtype::float32, {}},
                                     {"w", dtype::bfloat16, {3}},
                                     {"step", dtype::int64, {}},
                                     {"mask", dtype::uint8, {5}}};

template <class Fleet>
void check_scalars(std::uint64_t direct_from) {
    Fleet fleet;
    fleet.size = 3;
    fleet.settings.packing.chunk_bytes = 4096;
    fleet.settings.packing.direct_from = direct_from;
    fleet.settings.verify = true;
    check_ranks(fleet.exchange(specs, cpu_device),
                "scalars, direct from " + std::to_string(direct_from));
}

BOOST_AUTO_TEST_SUITE(b43)

BOOST_AUTO_TEST_CASE(b43_scalars_arrive_in_one_buffer_with_others) {
    check_scalars<test_fleet>(std::uint64_t{1} << 40U);
    check_scalars<test_fleet>(1);
    check_scalars<gloo_fleet>(std::uint64_t{1} << 40U);
    check_scalars<gloo_fleet>(1);
}

BOOST_AUTO_TEST_CASE(b43_shapes_stay_what_they_are) {
    test_model const model{cpu_device, specs, 1};
    test_fleet const fleet{};
    check_ranks(fleet.run(
                    [&](test_trainer& trainer) {
                        auto source = model.source();
                        send_update(trainer, source, 1);
                        return failure_of(trainer);
                    },
                    [&](test_engine& engine, int) -> std::string {
                        test_model held{cpu_device, specs, 0};
                        held.add_to(engine.target().main());
                        auto const update = engine.next();
                        for (std::size_t i = 0; i < specs.size(); ++i) {
                            if (update.announced.parameters[i].shape != specs[i].shape)
                                return "another shape";
                        }
                        engine.start({});
                        engine.receive(update);
                        engine.prepare();
                        engine.commit();
                        return "";
                    }),
                "shapes");
}

BOOST_AUTO_TEST_CASE(b43_a_scalar_is_no_vector_of_one) {
    auto vector_of_one = specs;
    vector_of_one[0].shape = {1};
    test_model const model{cpu_device, specs, 1};
    test_fleet const fleet{};
    auto const heard = [](std::string const& message) {
        return unless(message.find("'scale' is announced as float32[], held as float32[1]") !=
                          std::string::npos,
                      message);
    };
    check_ranks(fleet.run(
                    [&](test_trainer& trainer) {
                        auto source = model.source();
                        send_update(trainer, source, 1);
                        return heard(failure_of(trainer));
                    },
                    [&](test_engine& engine, int) {
                        test_model held{cpu_device, vector_of_one, 0};
                        held.add_to(engine.target().main());
                        return heard(message_of([&] { receive_update(engine); }));
                    }),
                "() is not (1,)");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weightcast::test
