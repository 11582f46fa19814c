// SPDX-License-Identifier: Apache-2.0
#include <program/output.hpp>

#include <cerrno>
#include <cstdio>
#include <string>
#include <string_view>
#include <system_error>

#include <fmt/format.h>
#include <program/text_table.hpp>

namespace weightcast::program {

void print(std::string_view text) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
}

void print_failure(std::string_view message) {
    auto const line = fmt::format("weightcast: {}\n", printable(message));
    std::fwrite(line.data(), 1, line.size(), stderr);
}

bool finish_output() {
    errno = 0;
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return true;
    print_failure(fmt::format("cannot write to standard output{}",
                              errno == 0 ? "" : ": " + std::generic_category().message(errno)));
    return false;
}

}  // namespace weightcast::program
