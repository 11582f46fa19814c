// SPDX-License-Identifier: Apache-2.0
#pragma once
// Door: everything that needs the standard library and range-v3.

#include <weightcast/concepts.hpp>
#include <weightcast/core.hpp>
#include <weightcast/engine.hpp>
#include <weightcast/fwd.hpp>
#include <weightcast/model.hpp>
#include <weightcast/plan.hpp>
#include <weightcast/session.hpp>
