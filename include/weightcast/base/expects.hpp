// SPDX-License-Identifier: Apache-2.0
#pragma once
// Preconditions that no type can hold: checked always, with the sentence that the caller needs.

#include <atomic>
#include <cstdio>
#include <exception>
#include <source_location>
#include <string>

#include <weightcast/base/error.hpp>

namespace weightcast {

/// Hears of a contract that a destructor found broken, where nothing can be thrown.
using violation_handler = void (*)(char const* sentence) noexcept;

namespace detail {
inline void print_and_terminate(char const* sentence) noexcept {
    std::fprintf(stderr, "weightcast: contract violation: %s\n", sentence);
    std::terminate();
}
inline std::atomic<violation_handler> current_violation_handler{&print_and_terminate};
inline void report_violation(char const* sentence) noexcept {
    current_violation_handler.load()(sentence);
}
}  // namespace detail

/// Replaces the handler (default: print and std::terminate); returns the one before.
inline violation_handler set_violation_handler(violation_handler handler) noexcept {
    return detail::current_violation_handler.exchange(handler);
}

}  // namespace weightcast

namespace weightcast::detail {

[[noreturn]] inline void broken_contract(char const* sentence, std::source_location at) {
    throw contract_violation{std::string{at.function_name()} + ": " + sentence, {}, at};
}

}  // namespace weightcast::detail

/// Throws `contract_violation` with the sentence unless the condition holds.
#define WEIGHTCAST_EXPECTS(condition, sentence) \
    (static_cast<bool>(condition)               \
         ? static_cast<void>(0)                 \
         : ::weightcast::detail::broken_contract(sentence, std::source_location::current()))
