// SPDX-License-Identifier: Apache-2.0

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <support/plain_engine.hpp>
#include <support/says.hpp>
#include <weightcast/engine/engine_registry.hpp>
#include <weightcast/session/weight_worker.hpp>

using namespace weightcast;
using test::plain_engine;
using test::says;

namespace {

struct numbered_engine : plain_engine {
    explicit numbered_engine(int n) : number{n} {}
    int number;
};

engine_registry known() {
    engine_registry registry;
    for (auto const* name : {"nccl", "sparse_nccl", "ipc", "dense"}) {
        registry.add(name, [] { return plain_engine{}; });
    }
    return registry;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(engine_registry_suite)

BOOST_AUTO_TEST_CASE(makes_a_new_engine_each_time) {
    engine_registry registry;
    registry.add("counting", [made = 0]() mutable { return numbered_engine{++made}; });
    auto first = make_engine(registry, "counting");
    auto second = make_engine(registry, "counting");
    BOOST_TEST(first.get_if<numbered_engine>()->number == 1);
    BOOST_TEST(second.get_if<numbered_engine>()->number == 2);
}

BOOST_AUTO_TEST_CASE(a_factory_may_return_an_any_engine) {
    engine_registry registry;
    registry.add("erased", [] { return any_engine{numbered_engine{5}}; });
    BOOST_TEST(registry.make("erased").get_if<numbered_engine>()->number == 5);
}

BOOST_AUTO_TEST_CASE(a_worker_takes_what_the_registry_makes) {
    auto const registry = known();
    weight_worker worker{make_engine(registry, "dense"), test::plain_init{}};
    auto update = worker.start(target_id::draft());
    update.receive(test::plain_update{});
    auto const report = std::move(update).finish();
    BOOST_TEST((report.status == update_status::updated));
    BOOST_TEST(to_string(report.target) == "draft");
}

BOOST_AUTO_TEST_CASE(lists_backends_by_name) {
    std::vector<std::string> const expected{"dense", "ipc", "nccl", "sparse_nccl"};
    BOOST_TEST(known().backends() == expected, boost::test_tools::per_element());
    BOOST_TEST(known().contains("ipc"));
    BOOST_TEST(!known().contains("IPC"));
    BOOST_TEST(engine_registry{}.backends().empty());
}

BOOST_AUTO_TEST_CASE(an_unknown_backend_lists_the_known_ones) {
    BOOST_CHECK_EXCEPTION(make_engine(known(), "rdma"), bad_argument, [](std::exception const& e) {
        BOOST_TEST(e.what() == "unknown backend 'rdma'; Registered: dense, ipc, nccl, sparse_nccl");
        return true;
    });
    BOOST_CHECK_EXCEPTION(make_engine(known(), ""), bad_argument,
                          (says{"unknown backend ''", "dense"}));
    BOOST_CHECK_EXCEPTION(make_engine({}, "nccl"), bad_argument,
                          (says{"unknown backend 'nccl'", "none is registered"}));
}

BOOST_AUTO_TEST_CASE(an_unknown_backend_that_is_like_a_known_one) {
    auto const registry = known();
    for (auto const* wrong : {"ncll", "NCCL", "nccl ", "ncc"}) {
        BOOST_CHECK_EXCEPTION(make_engine(registry, wrong), bad_argument,
                              says{"did you mean 'nccl'?"});
    }
    BOOST_TEST(*registry.nearest("sparse-nccl") == "sparse_nccl");
    BOOST_TEST(*registry.nearest("sparsenccl") == "sparse_nccl");
    BOOST_TEST(*registry.nearest("ipx") == "ipc");
    BOOST_TEST(*registry.nearest("dense") == "dense");
    BOOST_TEST(!registry.nearest("gloo").has_value());
    BOOST_TEST(!registry.nearest("").has_value());
    BOOST_TEST(!registry.nearest(std::string(1000, 'x')).has_value());
    BOOST_TEST(!engine_registry{}.nearest("nccl").has_value());
}

BOOST_AUTO_TEST_CASE(a_name_is_taken_once) {
    auto registry = known();
    BOOST_CHECK_EXCEPTION(registry.add("ipc", [] { return numbered_engine{1}; }), bad_argument,
                          (says{"'ipc'", "registered already"}));
    BOOST_CHECK_EXCEPTION(registry.add("", [] { return plain_engine{}; }), bad_argument,
                          says{"needs a name"});
    BOOST_TEST(registry.backends().size() == 4U);
    BOOST_TEST(registry.make("ipc").get_if<plain_engine>() != nullptr);
}

BOOST_AUTO_TEST_CASE(what_a_factory_throws_comes_through) {
    engine_registry registry;
    registry.add("broken", []() -> plain_engine { throw std::runtime_error{"no such device"}; });
    BOOST_CHECK_EXCEPTION(make_engine(registry, "broken"), std::runtime_error,
                          says{"no such device"});
}

BOOST_AUTO_TEST_CASE(edit_distances) {
    using detail::edit_distance;
    BOOST_TEST(edit_distance("", "") == 0U);
    BOOST_TEST(edit_distance("abc", "") == 3U);
    BOOST_TEST(edit_distance("", "abc") == 3U);
    BOOST_TEST(edit_distance("kitten", "sitting") == 3U);
    BOOST_TEST(edit_distance("nccl", "nccl") == 0U);
    BOOST_TEST(edit_distance("flaw", "lawn") == 2U);
}

BOOST_AUTO_TEST_SUITE_END()
