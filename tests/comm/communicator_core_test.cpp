// SPDX-License-Identifier: Apache-2.0
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <chrono>
#include <exception>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <weightcast/comm/communicator_core.hpp>
#include <weightcast/runtime/device_guard.hpp>
#include <weightcast/runtime/host_runtime.hpp>

#include <support/allocation_count.hpp>

namespace {

using namespace weightcast;
using core_type = weightcast::communicator_core<host_runtime>;

device host(int index) { return {device_kind::host, index}; }
std::exception_ptr failure_saying(char const* text) {
    return std::make_exception_ptr(std::runtime_error{text});
}
std::string thrown_by(core_type const& core) {
    try {
        core.rethrow_if_failed();
    } catch (std::exception const& e) {
        return e.what();
    }
    return "nothing";
}

BOOST_AUTO_TEST_SUITE(communicator_core)

BOOST_AUTO_TEST_CASE(it_knows_its_place) {
    core_type const core{"actor", {2, 5}, host(1)};
    BOOST_TEST(core.name() == "actor");
    BOOST_TEST(core.rank() == 2);
    BOOST_TEST(core.size() == 5);
    BOOST_TEST(core.where() == host(1));
}

BOOST_AUTO_TEST_CASE(its_streams_are_three_of_its_device) {
    for (auto const where : {cpu_device, host(0), host(3)}) {
        core_type const core{"", {}, where};
        std::vector const streams{core.collective_stream(), core.copy_stream(),
                                  core.unpack_stream()};
        for (auto const stream : streams) BOOST_TEST(host_runtime::device_of(stream) == where);
        BOOST_TEST(
            (streams[0] != streams[1] && streams[1] != streams[2] && streams[0] != streams[2]));
    }
}

BOOST_AUTO_TEST_CASE(b02_a_device_without_an_index_becomes_the_current_one) {
    device_guard<host_runtime> const current{host(2)};
    core_type const core{"", {}, {device_kind::host, device::unresolved}};
    BOOST_TEST(core.where() == host(2));
    BOOST_TEST(host_runtime::device_of(core.collective_stream()) == host(2));
}

BOOST_AUTO_TEST_CASE(a_device_that_is_not_there_is_refused) {
    BOOST_CHECK_THROW((core_type{"", {}, host(99)}), bad_argument);
    BOOST_CHECK_THROW((core_type{"", {}, {device_kind::cuda, 0}}), bad_argument);
}

BOOST_AUTO_TEST_CASE(a_device_wide_wait_leaves_its_streams_out) {
    // Otherwise a sender would wait for the collective that waits for it.
    core_type const core{"", {}, host(1)};
    static std::atomic<bool> go{false};
    auto const hold = []() noexcept {
        while (!go.load()) std::this_thread::yield();
    };
    for (auto const stream : {core.collective_stream(), core.copy_stream(), core.unpack_stream()}) {
        host_runtime::enqueue(stream, hold);
    }
    BOOST_TEST(host_runtime::wait_device(1, deadline::after(std::chrono::seconds{60})));
    BOOST_TEST(!host_runtime::query(core.collective_stream()));
    go.store(true);
    for (auto const stream : {core.collective_stream(), core.copy_stream(), core.unpack_stream()}) {
        BOOST_TEST(host_runtime::wait(stream, deadline::after(std::chrono::seconds{60})));
    }
}

BOOST_AUTO_TEST_CASE(events_are_used_again) {
    core_type core{"", {}, cpu_device};
    auto const cycle = [&] {
        auto first = core.take_event();
        auto second = core.take_event();
        bool const differ = first.ref() != second.ref();
        core.give_event(std::move(first));
        core.give_event(std::move(second));
        return differ;
    };
    BOOST_TEST(cycle());
    auto const before = test::allocation_count();
    bool differ = true;
    for (int i = 0; i < 100; ++i) differ = cycle() && differ;
    BOOST_TEST(differ);
    BOOST_TEST(test::allocation_count() - before == 0U);
}

BOOST_AUTO_TEST_CASE(an_event_that_was_used_again_stands_for_its_new_record) {
    core_type core{"", {}, cpu_device};
    static std::atomic<bool> go{false};
    {
        auto used = core.take_event();
        used.record(core.copy_stream());
        BOOST_TEST(used.wait(deadline::after(std::chrono::seconds{60})));
        core.give_event(std::move(used));
    }
    host_runtime::enqueue(core.collective_stream(), []() noexcept {
        while (!go.load()) std::this_thread::yield();
    });
    auto again = core.take_event();
    again.record(core.collective_stream());
    BOOST_TEST(!again.query());
    go.store(true);
    BOOST_TEST(again.wait(deadline::after(std::chrono::seconds{60})));
}

BOOST_AUTO_TEST_CASE(a_new_one_has_not_failed) {
    core_type const core{"", {}, cpu_device};
    BOOST_TEST(!core.failed());
    BOOST_CHECK_NO_THROW(core.rethrow_if_failed());
}

BOOST_AUTO_TEST_CASE(the_first_failure_is_kept_and_thrown_each_time) {
    core_type core{"", {}, cpu_device};
    core.record_failure(failure_saying("first"));
    core.record_failure(failure_saying("second"));
    BOOST_TEST(core.failed());
    for (int i = 0; i < 3; ++i) BOOST_TEST(thrown_by(core) == "first");
}

BOOST_AUTO_TEST_CASE(failures_come_from_any_thread) {
    for (int round = 0; round < 50; ++round) {
        core_type core{"", {}, cpu_device};
        std::vector<std::thread> threads;
        for (auto const* text : {"a", "b", "c"}) {
            threads.emplace_back([&core, text] { core.record_failure(failure_saying(text)); });
        }
        while (!core.failed()) std::this_thread::yield();
        auto const seen = thrown_by(core);
        for (auto& thread : threads) thread.join();
        BOOST_TEST(seen != "nothing");
        BOOST_TEST(thrown_by(core) == seen);
    }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
