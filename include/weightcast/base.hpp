// SPDX-License-Identifier: Apache-2.0
#pragma once
// Door: errors, checks, deadlines, sizes and sinks.

#include <weightcast/base/byte_count.hpp>
#include <weightcast/base/check.hpp>
#include <weightcast/base/concepts.hpp>
#include <weightcast/base/deadline.hpp>
#include <weightcast/base/error.hpp>
#include <weightcast/base/expects.hpp>
#include <weightcast/base/operation.hpp>
#include <weightcast/base/phase.hpp>
#include <weightcast/base/sinks.hpp>
