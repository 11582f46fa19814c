// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/observe is host-only: include it from a .cpp file"
#endif
// What transfers took, as text that Prometheus scrapes.

#include <array>
#include <charconv>
#include <cstddef>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <weightcast/base/error.hpp>
#include <weightcast/base/phase.hpp>
#include <weightcast/observe/phase_metrics.hpp>

namespace weightcast {

/// One label of a sample: rank="3".
struct metric_label {
    std::string name{};
    std::string value{};
};

/// The metrics of one rank, model or target, and the labels that tell it from others.
struct labelled_metrics {
    phase_metrics const* metrics = nullptr;
    std::vector<metric_label> labels{};
};

namespace detail {

/// Letters, digits and underscores, no digit first; two underscores first are Prometheus's own.
inline bool is_label_name(std::string_view name) {
    auto const is_letter = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    };
    if (name.empty() || !is_letter(name.front()) || name.starts_with("__")) return false;
    for (char const c : name) {
        if (!is_letter(c) && (c < '0' || c > '9')) return false;
    }
    return true;
}

/// @throws bad_argument  for a name that is none, twice, or "phase"
inline void check_labels(std::vector<metric_label> const& labels) {
    for (std::size_t i = 0; i < labels.size(); ++i) {
        auto const& name = labels[i].name;
        bool right = is_label_name(name) && name != "phase";
        for (std::size_t j = 0; j < i; ++j) right = right && labels[j].name != name;
        if (right) continue;
        throw bad_argument{
            "label '" + name +
            "' of metrics: expected letters, digits and underscores, without a digit or two "
            "underscores first; each name once, and none is 'phase'"};
    }
}

/// The value between quotes: the three characters that the format escapes.
inline std::string label_value(std::string_view value) {
    std::string escaped;
    for (char const c : value) {
        if (c == '\n') {
            escaped += "\\n";
        } else {
            if (c == '\\' || c == '"') escaped += '\\';
            escaped += c;
        }
    }
    return escaped;
}

/// The shortest decimal that reads back as the same number, whatever the locale is.
inline std::string shortest(double value) {
    std::array<char, 32> text{};
    auto const end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
    return {text.data(), end};
}

/// One counter of a phase: its name, its help, its value.
struct phase_family {
    std::string_view name;
    std::string_view help;
    std::string (*value)(phase_metric const&);
};
inline constexpr std::array<phase_family, 4> phase_families{{
    {"weightcast_phase_seconds_total",
     "Seconds in a phase of weight updates, failed ones included.",
     [](phase_metric const& m) { return shortest(m.seconds); }},
    {"weightcast_phase_bytes_total", "Bytes moved in a phase of weight updates.",
     [](phase_metric const& m) { return std::to_string(m.bytes); }},
    {"weightcast_phase_runs_total",
     "Times that a phase of weight updates ran, failed ones included.",
     [](phase_metric const& m) { return std::to_string(m.count); }},
    {"weightcast_phase_failures_total",
     "Times that a phase of weight updates did not come to its end.",
     [](phase_metric const& m) { return std::to_string(m.failed); }},
}};

inline std::string samples_of(phase_family const& family, labelled_metrics const& of) {
    std::string labels;
    for (auto const& label : of.labels)
        labels += "," + label.name + "=\"" + label_value(label.value) + "\"";
    std::string text;
    for (std::size_t i = 0; i < phase_names.size(); ++i) {
        text.append(family.name)
            .append("{phase=\"")
            .append(phase_names[i])
            .append("\"" + labels + "} ");
        text += family.value(of.metrics->of(static_cast<phase>(i))) + "\n";
    }
    return text;
}

}  // namespace detail

/// Writes the metrics in Prometheus's text format 0.0.4 (`text/plain; version=0.0.4`): four counters with HELP and TYPE
/// once each, for each of the metrics a sample a phase, also of those that never ran. In the order given; label values
/// should be UTF-8. What is in an open phase is not in it yet. Whether it was written, the stream says.
/// @throws bad_argument  for a label name that the format does not allow, one that is there twice, "phase", or metrics
///                       that are null; nothing is written
inline void write_prometheus(std::ostream& out, std::span<labelled_metrics const> all) {
    for (auto const& one : all) {
        if (one.metrics == nullptr) throw bad_argument{"write_prometheus: metrics are null"};
        detail::check_labels(one.labels);
    }
    for (auto const& family : detail::phase_families) {
        std::string text{"# HELP "};
        text.append(family.name).append(" ").append(family.help).append("\n# TYPE ");
        text.append(family.name).append(" counter\n");
        for (auto const& one : all) text += detail::samples_of(family, one);
        out.write(text.data(), static_cast<std::streamsize>(text.size()));
    }
}
/// The same for the metrics of one.
inline void write_prometheus(std::ostream& out, phase_metrics const& metrics,
                             std::vector<metric_label> labels = {}) {
    labelled_metrics const one{&metrics, std::move(labels)};
    write_prometheus(out, std::span{&one, 1});
}

}  // namespace weightcast
