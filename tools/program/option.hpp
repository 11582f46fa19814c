// SPDX-License-Identifier: Apache-2.0
#pragma once
// Options with a range or a list of values: what is wrong with a value is said in one sentence.

#include <charconv>
#include <concepts>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

namespace weightcast::program {

/// The number that the whole text is, in [low, high].
/// @throws CLI::ValidationError  naming the option, what was expected and what came
template <class Number>
    requires std::integral<Number> || std::floating_point<Number>
Number parse_number(std::string const& option, std::string_view text, Number low, Number high) {
    Number value{};
    auto const [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    bool const whole = code == std::errc{} && end == text.data() + text.size();
    // written so that no comparison holds for what is not a number
    if (whole && value >= low && value <= high) return value;
    constexpr auto kind = std::integral<Number> ? "a whole number" : "a number";
    throw CLI::ValidationError{
        option, fmt::format("expected {} from {} to {}, got '{}'", kind, low, high, text)};
}

/// `--name NUMBER` in [low, high]; `target` holds the default.
template <class Number>
CLI::Option* add_number(CLI::App& command, std::string const& name, Number& target, Number low,
                        Number high, std::string const& type, std::string const& help) {
    return command
        .add_option_function<std::string>(
            name,
            [&target, name, low, high](std::string const& text) {
                target = parse_number<Number>(name, text, low, high);
            },
            help)
        ->take_last()
        ->type_name(type)
        ->default_str(fmt::format("{}", target));
}

/// One of these values. @throws CLI::ValidationError  listing what is there
inline std::string parse_choice(std::string const& option, std::string const& text,
                                std::span<std::string_view const> choices) {
    for (auto const choice : choices) {
        if (choice == text) return text;
    }
    throw CLI::ValidationError{
        option, fmt::format("'{}' is not there; there is: {}", text, fmt::join(choices, " "))};
}

/// `--name VALUE`, one of `choices`, which must outlive the command; `target` holds the default.
inline CLI::Option* add_choice(CLI::App& command, std::string const& name, std::string& target,
                               std::span<std::string_view const> choices, std::string const& help) {
    return command
        .add_option_function<std::string>(
            name,
            [&target, name, choices](std::string const& text) {
                target = parse_choice(name, text, choices);
            },
            help)
        ->take_last()
        ->type_name(fmt::format("{}", fmt::join(choices, "|")))
        ->default_str(target);
}

/// `--name TEXT`, or the argument of that name; the last one counts.
inline CLI::Option* add_text(CLI::App& command, std::string const& name, std::string& target,
                             std::string const& type, std::string const& help) {
    return command.add_option(name, target, help)->take_last()->type_name(type);
}

}  // namespace weightcast::program
