// SPDX-License-Identifier: Apache-2.0
// What every test file includes, parsed once. Test files still include what they use.
#pragma once

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <ranges>
#include <span>
#include <string>
#include <thread>
#include <vector>
