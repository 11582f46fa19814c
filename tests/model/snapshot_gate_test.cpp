// SPDX-License-Identifier: Apache-2.0
// Readers and an update of one target: who waits for whom, and for how long.
#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include <boost/test/unit_test.hpp>

#include <support/says.hpp>
#include <weightcast/model/snapshot_gate.hpp>

namespace weightcast::test {
namespace {

using namespace std::chrono_literals;
deadline at_once() { return deadline::after(0ms); }
deadline patiently() { return deadline::after(30s); }

BOOST_AUTO_TEST_SUITE(snapshot_gate_suite)

BOOST_AUTO_TEST_CASE(readers_do_not_wait_for_each_other) {
    snapshot_gate gate{1, "main"};
    auto const a = gate.enter(at_once());
    auto const b = gate.enter(at_once());
    BOOST_TEST(a.set == 0U);
    BOOST_TEST(!a.version.is_set());
    BOOST_TEST(gate.readers() == 2U);
    gate.leave(a.set);
    gate.leave(b.set);
    BOOST_TEST(gate.readers() == 0U);
}

BOOST_AUTO_TEST_CASE(in_place_an_update_and_readers_exclude_each_other) {
    snapshot_gate gate{1, "main"};
    auto const reader = gate.enter(at_once());
    BOOST_CHECK_EXCEPTION(gate.open_update(at_once()), timeout,
                          says("would write what 1 snapshots still read"));
    gate.leave(gate.enter(at_once()).set);  // nothing has changed
    gate.leave(reader.set);
    gate.open_update(at_once());
    BOOST_CHECK_EXCEPTION(gate.enter(at_once()), timeout, says("'main': an update is open"));
    BOOST_CHECK_THROW(gate.open_update(at_once()), lifecycle_error);
    gate.publish({1, {}});
    BOOST_CHECK_THROW(gate.enter(at_once()), timeout);  // caches are not invalidated yet
    gate.end_update();
    auto const after = gate.enter(at_once());
    BOOST_TEST(after.version.number == 1U);
    gate.leave(after.set);
}

BOOST_AUTO_TEST_CASE(a_waiting_reader_gets_in_when_the_update_ends) {
    snapshot_gate gate{1, "main"};
    gate.open_update(at_once());
    std::uint64_t seen = 0;
    {
        std::jthread const reader{[&] {
            auto const in = gate.enter(patiently());
            seen = in.version.number;
            gate.leave(in.set);
        }};
        std::this_thread::sleep_for(20ms);
        gate.publish({3, {}});
        gate.end_update();
    }
    BOOST_TEST(seen == 3U);
}

BOOST_AUTO_TEST_CASE(in_place_a_spoilt_update_leaves_the_target_mixed_until_the_next) {
    snapshot_gate gate{1, "main"};
    gate.open_update(at_once());
    BOOST_TEST(gate.spoil());
    gate.end_update();
    BOOST_TEST(gate.mixed());
    BOOST_CHECK_EXCEPTION(gate.enter(at_once()), timeout, says("it is mixed"));
    gate.open_update(at_once());
    gate.publish({2, {}});
    gate.end_update();
    BOOST_TEST(!gate.mixed());
    gate.leave(gate.enter(at_once()).set);
}

BOOST_AUTO_TEST_CASE(with_two_sets_readers_keep_the_old_version_and_sets_alternate) {
    snapshot_gate gate{2, "main"};
    gate.open_update(at_once());
    BOOST_TEST(gate.written_set() == 1U);
    auto const old = gate.enter(at_once());
    BOOST_TEST(old.set == 0U);
    gate.publish({1, {}});
    gate.end_update();
    auto const young = gate.enter(at_once());
    BOOST_TEST(young.set == 1U);
    BOOST_TEST(young.version.number == 1U);

    // the old memory is free for the next update after its last reader
    BOOST_CHECK_EXCEPTION(gate.open_update(at_once()), timeout, says("1 snapshots"));
    gate.leave(old.set);
    gate.open_update(at_once());
    BOOST_TEST(gate.written_set() == 0U);
    BOOST_TEST(!gate.spoil());  // never mixed
    gate.end_update();
    BOOST_TEST(gate.enter(at_once()).version.number == 1U);
    gate.leave(1);
    gate.leave(young.set);
}

BOOST_AUTO_TEST_CASE(stale_caches_keep_readers_out_until_the_next_update) {
    for (std::size_t const sets : {1U, 2U}) {
        snapshot_gate gate{sets, "main"};
        gate.open_update(at_once());
        gate.publish({1, {}});
        gate.end_update(true);
        BOOST_CHECK_EXCEPTION(gate.enter(at_once()), timeout,
                              says("caches could not be invalidated"));
        gate.open_update(at_once());
        gate.end_update();  // one that was rolled back makes nothing fresh
        BOOST_CHECK_THROW(gate.enter(at_once()), timeout);
        BOOST_TEST(!gate.readable());
        gate.open_update(at_once());
        gate.publish({2, {}});
        gate.end_update();
        gate.end_update(true);  // none is open
        BOOST_TEST(gate.readable());
        BOOST_TEST(gate.enter(at_once()).version.number == 2U);
    }
}

BOOST_AUTO_TEST_CASE(a_label_names_the_version_anew) {
    snapshot_gate gate{1, "main"};
    gate.relabel("default");
    BOOST_TEST(!gate.version().is_set());  // a label is no version: never set stays never set
    gate.publish({4, {}});
    gate.relabel("step-4");
    BOOST_TEST(to_string(gate.version()) == "step-4");
    BOOST_TEST(gate.version().number == 4U);
}

BOOST_AUTO_TEST_CASE(falling_asleep_waits_for_readers_and_for_the_update) {
    snapshot_gate gate{1, "main"};
    auto const reader = gate.enter(at_once());
    BOOST_CHECK_EXCEPTION(gate.fall_asleep(at_once()), timeout, says("1 snapshots are held"));
    BOOST_TEST(!gate.asleep());
    gate.leave(reader.set);

    gate.open_update(at_once());
    std::atomic<bool> asleep{false};
    std::jthread const sleeper{[&] {
        gate.fall_asleep(patiently());
        asleep = true;
    }};
    while (!gate.stop_requested()) std::this_thread::sleep_for(1ms);
    BOOST_TEST(!asleep);
    gate.end_update();
    while (!asleep) std::this_thread::sleep_for(1ms);
    BOOST_TEST(!gate.stop_requested());
    BOOST_CHECK_EXCEPTION(gate.enter(at_once()), lifecycle_error, says("asleep"));
    BOOST_CHECK_EXCEPTION(gate.open_update(at_once()), lifecycle_error, says("asleep"));
    gate.wake();
    gate.leave(gate.enter(at_once()).set);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weightcast::test
