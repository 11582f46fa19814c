// SPDX-License-Identifier: Apache-2.0
#pragma once
// Door: metadata, what is sent, and what an engine holds.

#include <weightcast/model/attention_layout.hpp>
#include <weightcast/model/bundle_layout.hpp>
#include <weightcast/model/commit_policy.hpp>
#include <weightcast/model/concepts.hpp>
#include <weightcast/model/coverage.hpp>
#include <weightcast/model/expert_layout.hpp>
#include <weightcast/model/fused_layout.hpp>
#include <weightcast/model/interleaved_layout.hpp>
#include <weightcast/model/layer_group.hpp>
#include <weightcast/model/layer_step.hpp>
#include <weightcast/model/layout.hpp>
#include <weightcast/model/layout_table.hpp>
#include <weightcast/model/name_index.hpp>
#include <weightcast/model/name_map.hpp>
#include <weightcast/model/parameter.hpp>
#include <weightcast/model/parameter_index.hpp>
#include <weightcast/model/parameter_table.hpp>
#include <weightcast/model/parameter_tables.hpp>
#include <weightcast/model/serving_hooks.hpp>
#include <weightcast/model/shadow.hpp>
#include <weightcast/model/shadow_memory.hpp>
#include <weightcast/model/sliced_layout.hpp>
#include <weightcast/model/snapshot_gate.hpp>
#include <weightcast/model/stored_layout.hpp>
#include <weightcast/model/table_source.hpp>
#include <weightcast/model/target_id.hpp>
#include <weightcast/model/tensor_region.hpp>
#include <weightcast/model/transformed_source.hpp>
#include <weightcast/model/update_check.hpp>
#include <weightcast/model/update_coverage.hpp>
#include <weightcast/model/version_spans.hpp>
#include <weightcast/model/weight_snapshot.hpp>
#include <weightcast/model/weight_version.hpp>
