// SPDX-License-Identifier: Apache-2.0
#include <program/worker_messages.hpp>

#include <charconv>
#include <chrono>
#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <boost/json.hpp>

#include <weightcast/base/error.hpp>
#include <weightcast/kernels/digest.hpp>
#include <weightcast/tensor/dtype.hpp>

namespace weightcast::program {

namespace {

namespace json = boost::json;
using std::chrono::milliseconds;

std::string text_of(json::value const& value) { return json::value_to<std::string>(value); }

std::uint64_t digest_of(json::value const& value) {
    auto const& text = value.as_string();
    std::uint64_t digest = 0;
    auto const* const last = text.data() + text.size();
    auto const [end, code] = std::from_chars(text.data(), last, digest, 16);
    if (code != std::errc{} || end != last)
        throw bad_input{"'" + text_of(value) + "' is no digest"};
    return digest;
}

json::value to_json(parameter const& p) {
    return json::array{p.name, to_string(p.type), json::array(p.shape.begin(), p.shape.end())};
}
parameter parameter_of_json(json::value const& value) {
    auto const& row = value.as_array();
    parameter p{text_of(row.at(0)), parse_dtype(text_of(row.at(1))), {}};
    for (auto const& extent : row.at(2).as_array())
        p.shape.push_back(extent.to_number<std::int64_t>());
    return p;
}

json::value to_json(transfer_limits const& limits) {
    return {{"announcement_ms", limits.announcement.count()},
            {"stall_ms", limits.stall.count()},
            {"update_ms", limits.update.count()}};
}
milliseconds span_of(json::value const& value) {
    return milliseconds{value.to_number<std::int64_t>()};
}

// One place for all the ways in which a document is not what was expected.
template <class F>
auto read(json::value const& message, std::string_view what, F const& f) {
    try {
        return f(message.as_object());
    } catch (std::exception const& e) {
        throw bad_input{"a control message is no " + std::string{what} + ": " + e.what()};
    }
}

template <class... F>
struct overloaded : F... {
    using F::operator()...;
};
template <class... F>
overloaded(F...) -> overloaded<F...>;  // clang 16 needs it

}  // namespace

json::value to_json(worker_setup const& setup) {
    json::array parameters;
    for (auto const& p : setup.parameters) parameters.push_back(to_json(p));
    return {{"rank", setup.rank},
            {"size", setup.size},
            {"at", setup.at},
            {"connect_ms", setup.connect.count()},
            {"limits", to_json(setup.limits)},
            {"policy", setup.policy},
            {"traced", setup.traced},
            {"shard", json::array{setup.shard.rank, setup.shard.ranks}},
            {"parameters", std::move(parameters)}};
}

worker_setup setup_of(json::value const& message) {
    return read(message, "set-up", [](json::object const& m) {
        worker_setup setup{.rank = m.at("rank").to_number<int>(),
                           .size = m.at("size").to_number<int>(),
                           .at = text_of(m.at("at")),
                           .connect = span_of(m.at("connect_ms"))};
        auto const& limits = m.at("limits").as_object();
        setup.limits.announcement = span_of(limits.at("announcement_ms"));
        setup.limits.stall = span_of(limits.at("stall_ms"));
        setup.limits.update = span_of(limits.at("update_ms"));
        setup.policy = text_of(m.at("policy"));
        setup.traced = m.at("traced").as_bool();
        setup.shard.rank = m.at("shard").at(0).to_number<std::int64_t>();
        setup.shard.ranks = m.at("shard").at(1).to_number<std::int64_t>();
        for (auto const& p : m.at("parameters").as_array()) {
            setup.parameters.push_back(parameter_of_json(p));
        }
        return setup;
    });
}

json::value to_json(worker_order const& order) {
    return std::visit(
        overloaded{
            [](join_order o) -> json::value { return {{"order", "join"}, {"dies", o.dies}}; },
            [](receive_order o) -> json::value {
                return {{"order", "receive"},
                        {"corrupt", o.corrupt},
                        {"dies_in", std::string{o.dies_in ? to_string(*o.dies_in) : ""}}};
            },
            [](dump_order const& o) -> json::value {
                return {{"order", "dump"}, {"file", o.file}};
            },
            [](trace_order const& o) -> json::value {
                return {{"order", "trace"}, {"file", o.file}};
            }},
        order);
}

worker_order order_of(json::value const& message) {
    return read(message, "order", [](json::object const& m) -> worker_order {
        auto const order = text_of(m.at("order"));
        if (order == "join") return join_order{m.at("dies").as_bool()};
        if (order == "receive")
            return receive_order{m.at("corrupt").as_bool(), parse_phase(text_of(m.at("dies_in")))};
        if (order == "dump") return dump_order{text_of(m.at("file"))};
        if (order == "trace") return trace_order{text_of(m.at("file"))};
        throw bad_input{"unknown order '" + order + "'"};
    });
}

json::value to_json(worker_report const& report) {
    return std::visit(overloaded{[](done_report) -> json::value { return {{"report", "done"}}; },
                                 [](received_report const& r) -> json::value {
                                     json::array tensors;
                                     for (auto const d : r.digests.tensors)
                                         tensors.push_back(digest_text(d).c_str());
                                     return {{"report", "received"},
                                             {"version", r.version},
                                             {"digest", digest_text(r.digests.model)},
                                             {"snapshots", r.snapshots},
                                             {"tensors", std::move(tensors)}};
                                 },
                                 [](failed_report const& r) -> json::value {
                                     return {{"report", "failed"}, {"message", r.message}};
                                 }},
                      report);
}

worker_report report_of(json::value const& message) {
    return read(message, "report", [](json::object const& m) -> worker_report {
        auto const report = text_of(m.at("report"));
        if (report == "done") return done_report{};
        if (report == "failed") return failed_report{text_of(m.at("message"))};
        if (report != "received") throw bad_input{"unknown report '" + report + "'"};
        received_report r{.version = m.at("version").to_number<std::uint64_t>()};
        r.digests.model = digest_of(m.at("digest"));
        r.snapshots = m.at("snapshots").to_number<std::uint64_t>();
        for (auto const& d : m.at("tensors").as_array()) r.digests.tensors.push_back(digest_of(d));
        return r;
    });
}

}  // namespace weightcast::program
