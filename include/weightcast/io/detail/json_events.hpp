// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/io is host-only: include it from a .cpp file"
#endif
// JSON from outside, as events to a small grammar: the document is never built, and nothing is kept
// silently.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/parse_options.hpp>

#include <weightcast/base/error.hpp>
#include <weightcast/io/detail/in_quotes.hpp>

namespace weightcast::detail {

/// Boost.JSON's handler: puts strings together and passes events on to a Grammar, which throws on
/// what it does not expect. Numbers that are no whole ones in 64 bits come as `other("a
/// fraction")`.
template <class Grammar>
class json_events {
  public:
    static constexpr std::size_t max_object_size = static_cast<std::size_t>(-1);
    static constexpr std::size_t max_array_size = static_cast<std::size_t>(-1);
    static constexpr std::size_t max_key_size = static_cast<std::size_t>(-1);
    static constexpr std::size_t max_string_size = static_cast<std::size_t>(-1);
    using error_code = boost::json::error_code;
    using view = boost::json::string_view;

    explicit json_events(Grammar& grammar) noexcept : grammar_{grammar} {}

    bool on_document_begin(error_code&) { return true; }
    bool on_document_end(error_code&) { return true; }
    bool on_object_begin(error_code&) { return grammar_.begin_object(), true; }
    bool on_object_end(std::size_t, error_code&) { return grammar_.end_object(), true; }
    bool on_array_begin(error_code&) { return grammar_.begin_array(), true; }
    bool on_array_end(std::size_t, error_code&) { return grammar_.end_array(), true; }
    bool on_key_part(view part, std::size_t, error_code&) { return collect(part); }
    bool on_key(view part, std::size_t, error_code&) {
        collect(part);
        grammar_.key(std::exchange(text_, {}));
        return true;
    }
    bool on_string_part(view part, std::size_t, error_code&) { return collect(part); }
    bool on_string(view part, std::size_t, error_code&) {
        collect(part);
        grammar_.text(std::exchange(text_, {}));
        return true;
    }
    bool on_number_part(view, error_code&) { return true; }
    bool on_int64(std::int64_t number, view, error_code&) {
        if (number < 0) return grammar_.other("a negative number"), true;
        return grammar_.number(static_cast<std::uint64_t>(number)), true;
    }
    bool on_uint64(std::uint64_t number, view, error_code&) {
        return grammar_.number(number), true;
    }
    bool on_double(double, view, error_code&) { return grammar_.other("a fraction"), true; }
    bool on_bool(bool, error_code&) { return grammar_.other("a boolean"), true; }
    bool on_null(error_code&) { return grammar_.other("null"), true; }
    bool on_comment_part(view, error_code&) { return true; }
    bool on_comment(view, error_code&) { return true; }

  private:
    bool collect(view part) {
        text_.append(part.data(), part.size());
        return true;
    }
    Grammar& grammar_;
    std::string text_{};
};

/// Reads one document and nothing behind it but blanks. `what` names the text in messages.
/// @throws bad_input  for text that is no JSON; whatever the grammar throws passes through
template <class Grammar>
void read_json(std::string_view text, Grammar& grammar, std::string const& what) {
    boost::json::basic_parser<json_events<Grammar>> parser{boost::json::parse_options{}, grammar};
    boost::json::error_code code;
    auto consumed = parser.write_some(false, text.data(), text.size(), code);
    if (code) {
        throw bad_input{what + " is no JSON at byte " + std::to_string(consumed) + ": " +
                        code.message()};
    }
    consumed = text.find_first_not_of(" \t\r\n", consumed);
    if (consumed != std::string_view::npos) {
        throw bad_input{what + " has more text behind its JSON, at byte " +
                        std::to_string(consumed)};
    }
}

}  // namespace weightcast::detail
