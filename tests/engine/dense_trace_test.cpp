// SPDX-License-Identifier: Apache-2.0
// The trace of an update: what streams did, by track, at both ends.
#include <algorithm>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <boost/json.hpp>
#include <boost/test/unit_test.hpp>

#include <support/test_model.hpp>
#include <weightcast/observe/traced_progress.hpp>

namespace weightcast::test {
namespace {

/// Spans by track; "" where one is wrong.
std::map<std::string, std::size_t> spans_of(chrome_trace const& trace, std::string& wrong) {
    std::ostringstream out;
    trace.write(out);
    auto const json = boost::json::parse(out.str());
    std::map<std::int64_t, std::string> names;
    std::map<std::string, std::size_t> counts;
    for (auto const& e : json.at("traceEvents").as_array()) {
        if (e.at("ph") == "M" && e.at("name") == "thread_name")
            names[e.at("tid").as_int64()] = e.at("args").at("name").as_string().c_str();
        if (e.at("ph") != "X") continue;
        ++counts[names.at(e.at("tid").as_int64())];
        if (e.at("dur").to_number<double>() < 0) wrong = "a span ends before it begins";
    }
    return counts;
}

BOOST_AUTO_TEST_SUITE(dense_trace)

BOOST_AUTO_TEST_CASE(both_ends_tell_what_their_streams_did) {
    using sending = dense_trainer<local_communicator, traced_progress<>>;
    using receiving = dense_engine<local_communicator, parameter_tables<>, traced_progress<>>;
    auto const specs = tensors_of_bytes({200, 200, 5000, 200});
    transfer_settings const settings{.packing = {.chunk_bytes = 512, .direct_from = 1000}};
    local_group const group{2};
    chrome_trace sent;
    chrome_trace received;
    check_ranks(
        run_threads({[&]() -> std::string {
                         sending trainer{joins(group), settings, patient_limits(),
                                         traced_progress<>{sent}};
                         trainer.init({place(0, 2)});
                         test_model const model{cpu_device, specs, 1};
                         auto source = model.source();
                         send_update(trainer, source, 1);
                         return failure_of(trainer);
                     },
                     [&]() -> std::string {
                         parameter_tables<> tables;
                         test_model held{cpu_device, specs, 0};
                         held.add_to(tables.main());
                         tables.main().add_layer(
                             {.name = "repack", .after = {"t0"}, .run = [](auto const&, auto) {}});
                         receiving engine{joins(group), tables, patient_limits(),
                                          traced_progress<>{received}};
                         engine.init(place(1, 2));
                         receive_update(engine);
                         return "";
                     }}),
        "trace");
    std::string wrong;
    auto const at_sender = spans_of(sent, wrong);
    auto const at_receiver = spans_of(received, wrong);
    BOOST_TEST(wrong == "");
    using counts = std::map<std::string, std::size_t>;
    // two chunks, one of which goes straight into its only tensor, and one window of direct tensors
    BOOST_TEST((at_sender == counts{{"broadcast", 3}, {"pack", 2}, {"phases", 1}}));
    BOOST_TEST(
        (at_receiver == counts{{"broadcast", 3}, {"layer step", 1}, {"phases", 1}, {"unpack", 1}}));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace weightcast::test
