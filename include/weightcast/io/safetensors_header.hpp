// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/io is host-only: include it from a .cpp file"
#endif
// The header of a safetensors file, as a pure function of its text.

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <weightcast/base/error.hpp>
#include <weightcast/io/detail/header_grammar.hpp>
#include <weightcast/io/detail/in_quotes.hpp>
#include <weightcast/io/detail/json_events.hpp>

namespace weightcast {

/// `__metadata__` of a safetensors file.
using safetensors_metadata = std::map<std::string, std::string>;

/// The longest header that is read or written, as in the format's reference implementation.
inline constexpr std::uint64_t safetensors_header_limit = 100'000'000;

namespace detail {

struct safetensors_header {
    std::vector<header_entry> entries{};  ///< in the order of their data
    safetensors_metadata metadata{};
};

// The tensors lie one after the other and fill the data: no gap, no overlap, nothing behind them.
inline void check_coverage(std::vector<header_entry> const& entries, std::uint64_t data_bytes,
                           std::string const& file) {
    std::uint64_t reached = 0;
    for (auto const& e : entries) {
        auto const refuse = [&](std::string const& why) {
            throw bad_input{"file " + file + ": tensor " + in_quotes(e.name) + ": " + why,
                            {.tensor = e.name}};
        };
        if (e.end > data_bytes) {
            refuse("it ends at byte " + std::to_string(e.end) + " of the data, which has " +
                   std::to_string(data_bytes) + ": the file is cut short, or its header is wrong");
        }
        if (e.begin < reached) {
            refuse("it begins at byte " + std::to_string(e.begin) +
                   ", inside the tensor before it, which ends at " + std::to_string(reached));
        }
        if (e.begin > reached) {
            refuse("it begins at byte " + std::to_string(e.begin) +
                   ", behind a gap that begins at " + std::to_string(reached));
        }
        reached = e.end;
    }
    if (reached != data_bytes) {
        throw bad_input{"file " + file + ": its tensors end at byte " + std::to_string(reached) +
                        " of the data, which has " + std::to_string(data_bytes)};
    }
}

/// Reads and checks a header whose data has that many bytes; `file` names the file in messages.
/// @throws bad_input  for everything that the format does not allow: one line, naming file and
///                    tensor
inline safetensors_header read_safetensors_header(std::string_view text, std::uint64_t data_bytes,
                                                  std::string const& file) {
    if (!text.starts_with('{')) {
        throw bad_input{"file " + file + ": its header does not begin with '{'"};
    }
    header_grammar grammar{file};
    read_json(text, grammar, "file " + file + ": its header");
    safetensors_header header{grammar.take_entries(), grammar.take_metadata()};
    std::ranges::stable_sort(header.entries, [](auto const& a, auto const& b) {
        return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
    });
    check_coverage(header.entries, data_bytes, file);
    return header;
}

}  // namespace detail

}  // namespace weightcast
