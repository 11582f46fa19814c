// SPDX-License-Identifier: Apache-2.0
#pragma once
// Door: metadata, what is sent, and what an engine holds.

#include <weightcast/model/concepts.hpp>
#include <weightcast/model/parameter.hpp>
#include <weightcast/model/parameter_table.hpp>
#include <weightcast/model/parameter_tables.hpp>
#include <weightcast/model/table_source.hpp>
#include <weightcast/model/target_id.hpp>
#include <weightcast/model/transformed_source.hpp>
#include <weightcast/model/weight_version.hpp>
