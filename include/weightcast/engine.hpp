// SPDX-License-Identifier: Apache-2.0
#pragma once
// Door: engines, at compile time and by name.

#include <weightcast/engine/any_engine.hpp>
#include <weightcast/engine/concepts.hpp>
#include <weightcast/engine/dense_engine.hpp>
#include <weightcast/engine/dense_trainer.hpp>
#include <weightcast/engine/engine_group.hpp>
#include <weightcast/engine/engine_registry.hpp>
#include <weightcast/engine/erased_value.hpp>
#include <weightcast/engine/joining.hpp>
#include <weightcast/engine/transfer_settings.hpp>
