// SPDX-License-Identifier: Apache-2.0
#pragma once
// Door: packing plans, announcements, and the mailbox that carries them over a group.

#include <weightcast/plan/announcement.hpp>
#include <weightcast/plan/group_mailbox.hpp>
#include <weightcast/plan/packed_chunk.hpp>
#include <weightcast/plan/packing_options.hpp>
#include <weightcast/plan/packing_plan.hpp>
#include <weightcast/plan/planned_tensor.hpp>
#include <weightcast/plan/vllm_order.hpp>
