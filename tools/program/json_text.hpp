// SPDX-License-Identifier: Apache-2.0
#pragma once
// JSON as people and programs both like to read it: indented, keys in the order in which they were put.

#include <string>

#include <boost/json/value.hpp>

namespace weightcast::program {

/// The document over several lines, with a line end behind it. Arrays of plain values stay on one line; a
/// floating-point number keeps its decimal point, so that its type does not depend on its value.
std::string json_text(boost::json::value const& document);

/// The value on one line, without a line end.
std::string json_line(boost::json::value const& value);

}  // namespace weightcast::program
