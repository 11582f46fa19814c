// SPDX-License-Identifier: Apache-2.0
#pragma once
// One check for the codes of foreign calls: `check(code, "call")` throws what the code's traits say.

#include <cerrno>
#include <concepts>
#include <source_location>
#include <string>
#include <system_error>

#include <weightcast/base/error.hpp>

namespace weightcast {

/// How codes of type Code read: `failed(code)`, `text(code)` and `error_type`. Specialise it for a foreign API.
template <class Code>
struct code_traits;

/// A result of a POSIX call that sets errno: -1 is failure.
struct posix_result {
    long value;
    int error_number = errno;
};

template <>
struct code_traits<posix_result> {
    using error_type = system_failure;
    static bool failed(posix_result r) noexcept { return r.value < 0; }
    static std::string text(posix_result r) {
        return std::generic_category().message(r.error_number);
    }
};

/// A code whose traits say what failure is.
template <class Code>
concept CheckedCode = requires(Code code) {
    typename code_traits<Code>::error_type;
    { code_traits<Code>::failed(code) } -> std::same_as<bool>;
    { code_traits<Code>::text(code) } -> std::convertible_to<std::string>;
};

/// Returns when the code is a success, else throws `code_traits<Code>::error_type` naming the call.
/// @throws code_traits<Code>::error_type  the state of the foreign API is as its own call left it
template <CheckedCode Code>
void check(Code code, char const* call, std::source_location at = std::source_location::current()) {
    using traits = code_traits<Code>;
    if (!traits::failed(code)) return;
    throw typename traits::error_type{std::string{call} + ": " + traits::text(code), {}, at};
}

}  // namespace weightcast
