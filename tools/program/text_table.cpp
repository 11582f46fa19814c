// SPDX-License-Identifier: Apache-2.0
#include <program/text_table.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace weightcast::program {

namespace {

// Bytes that begin a character, as names may be UTF-8.
std::size_t width_of(std::string_view text) {
    return static_cast<std::size_t>(std::ranges::count_if(
        text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

}  // namespace

std::string grouped(std::uint64_t number) {
    auto text = std::to_string(number);
    for (auto at = static_cast<std::ptrdiff_t>(text.size()) - 3; at > 0; at -= 3) {
        text.insert(static_cast<std::size_t>(at), 1, ',');
    }
    return text;
}

std::string counted(std::uint64_t number, std::string_view word) {
    return fmt::format("{} {}{}", grouped(number), word, number == 1 ? "" : "s");
}

std::string printable(std::string_view text) {
    std::string result{text};
    std::ranges::replace_if(
        result, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }, '?');
    return result;
}

text_table::text_table(std::vector<column> columns) : columns_{std::move(columns)} {
    for (auto& c : columns_) c.width = std::max(c.width, width_of(c.head));
}

std::string text_table::head() const {
    std::vector<std::string> heads;
    heads.reserve(columns_.size());
    for (auto const& c : columns_) heads.push_back(c.head);
    return row(heads);
}

std::string text_table::row(std::vector<std::string> const& cells) const {
    std::string line;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
        auto const& cell = i < cells.size() ? cells[i] : std::string{};
        auto const used = width_of(cell);
        std::string const pad(columns_[i].width > used ? columns_[i].width - used : 0, ' ');
        if (i > 0) line += "  ";
        line += columns_[i].left ? cell + pad : pad + cell;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    return line + '\n';
}

std::string whole_table(std::vector<column> columns,
                        std::vector<std::vector<std::string>> const& rows) {
    for (auto const& row : rows) {
        for (std::size_t i = 0; i < columns.size() && i < row.size(); ++i) {
            columns[i].width = std::max(columns[i].width, width_of(row[i]));
        }
    }
    text_table const table{std::move(columns)};
    std::string text = table.head();
    for (auto const& row : rows) text += table.row(row);
    return text;
}

}  // namespace weightcast::program
