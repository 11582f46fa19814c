// SPDX-License-Identifier: Apache-2.0
#include <program/json_text.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <boost/json.hpp>

namespace weightcast::program {

namespace {

namespace json = boost::json;

void append(std::string& out, json::value const& value, std::size_t depth);

void append_double(std::string& out, double number) {
    if (!std::isfinite(number)) number = 0;  // JSON has no word for it
    auto const digits = fmt::format("{}", number);
    out += digits;
    if (digits.find_first_of(".e") == std::string::npos) out += ".0";
}

void new_line(std::string& out, std::size_t depth) {
    out += '\n';
    out.append(2 * depth, ' ');
}

template <class Range, class F>
void append_list(std::string& out, Range const& range, std::size_t depth, F const& one) {
    bool first = true;
    for (auto const& item : range) {
        if (!first) out += ',';
        first = false;
        new_line(out, depth + 1);
        one(item);
    }
    if (!first) new_line(out, depth);
}

// Objects that hold plain values only, one line each: a row of a table reads as a row.
bool is_flat(json::value const& value) {
    auto const plain = [](json::value const& v) { return !v.is_structured(); };
    if (auto const* object = value.if_object()) {
        return std::ranges::all_of(*object, [&](auto const& pair) { return plain(pair.value()); });
    }
    if (auto const* array = value.if_array()) return std::ranges::all_of(*array, plain);
    return true;
}

void append_flat(std::string& out, json::value const& value) {
    if (auto const* object = value.if_object()) {
        std::string_view separator;
        out += '{';
        for (auto const& pair : *object) {
            out.append(separator).append(json::serialize(pair.key())).append(": ");
            append_flat(out, pair.value());
            separator = ", ";
        }
        out += '}';
    } else if (auto const* array = value.if_array()) {
        std::string_view separator;
        out += '[';
        for (auto const& item : *array) {
            out.append(separator);
            append_flat(out, item);
            separator = ", ";
        }
        out += ']';
    } else if (auto const* number = value.if_double()) {
        append_double(out, *number);
    } else {
        out += json::serialize(value);
    }
}

void append(std::string& out, json::value const& value, std::size_t depth) {
    if (depth > 0 && is_flat(value)) return append_flat(out, value);
    if (auto const* object = value.if_object()) {
        out += '{';
        append_list(out, *object, depth, [&](auto const& pair) {
            out.append(json::serialize(pair.key())).append(": ");
            append(out, pair.value(), depth + 1);
        });
        out += '}';
    } else if (auto const* array = value.if_array()) {
        out += '[';
        append_list(out, *array, depth, [&](auto const& item) { append(out, item, depth + 1); });
        out += ']';
    } else {
        append_flat(out, value);
    }
}

}  // namespace

std::string json_text(json::value const& document) {
    std::string out;
    append(out, document, 0);
    out += '\n';
    return out;
}

std::string json_line(json::value const& value) {
    std::string out;
    append_flat(out, value);
    return out;
}

}  // namespace weightcast::program
