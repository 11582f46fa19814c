// SPDX-License-Identifier: Apache-2.0
#pragma once
// Tables and numbers for people: exact bytes in groups of three, columns as wide as what they hold.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weightcast::program {

/// "90,868,376".
std::string grouped(std::uint64_t number);

/// "1 tensor", "2 tensors": the count in groups of three, and the word.
std::string counted(std::uint64_t number, std::string_view word);

/// `text` without control characters (they become '?'): names from files may hold anything.
std::string printable(std::string_view text);

/// One column: its head, and the width that is wide enough for every cell that will come.
struct column {
    std::string head;
    std::size_t width = 0;  ///< in characters; the head's where that is longer
    bool left = false;      ///< text is set left, numbers right
};

/// A table whose rows may come one at a time, as each is known.
class text_table {
  public:
    explicit text_table(std::vector<column> columns);

    /// The line with the columns' heads, with a line end.
    std::string head() const;
    /// A line; a cell wider than its column pushes the rest to the right.
    std::string row(std::vector<std::string> const& cells) const;

  private:
    std::vector<column> columns_;
};

/// Head and rows of a table that is known as a whole: widths are those of the cells.
std::string whole_table(std::vector<column> columns,
                        std::vector<std::vector<std::string>> const& rows);

}  // namespace weightcast::program
