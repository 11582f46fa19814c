// SPDX-License-Identifier: Apache-2.0
#include <program/trace_files.hpp>

#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <boost/json.hpp>

#include <weightcast/base/error.hpp>

namespace weightcast::program {

namespace json = boost::json;

namespace {

json::object read_trace(std::string const& file) {
    std::ifstream in{file};
    std::string const text{std::istreambuf_iterator<char>{in}, {}};
    try {
        return json::parse(text).as_object();
    } catch (std::exception const& e) {
        throw bad_input{"'" + file + "' is no trace: " + e.what()};
    }
}
template <class F>
void write_file(std::string const& file, F const& content) {
    std::ofstream out{file};
    content(out);
    out.close();
    if (!out) throw system_failure{"cannot write the trace '" + file + "'"};
}

}  // namespace

chrome_trace_settings trace_of_rank(int rank, bool wanted) {
    chrome_trace_settings settings{.process_id = rank};
    settings.process_name = fmt::format("rank {} ({})", rank, rank == 0 ? "trainer" : "worker");
    if (!wanted) settings.max_spans = 0;
    return settings;
}

void write_trace(chrome_trace const& trace, std::string const& file) {
    write_file(file, [&](std::ostream& out) { trace.write(out); });
}

void join_traces(std::vector<std::string> const& parts, std::string const& file) {
    auto all = read_trace(parts.front());
    auto& events = all.at("traceEvents").as_array();
    for (std::size_t i = 1; i < parts.size(); ++i) {
        auto part = read_trace(parts[i]);
        for (auto& event : part.at("traceEvents").as_array()) events.push_back(std::move(event));
    }
    write_file(file, [&](std::ostream& out) { out << json::serialize(all) << '\n'; });
    std::error_code ignored;  // what is left of a part does no harm
    for (auto const& part : parts) {
        if (part != file) std::filesystem::remove(part, ignored);
    }
}

}  // namespace weightcast::program
