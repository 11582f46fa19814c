// SPDX-License-Identifier: Apache-2.0
#pragma once
// Door: devices, streams, events and memory, and the runtime that needs no GPU.

#include <weightcast/runtime/concepts.hpp>
#include <weightcast/runtime/device_buffer.hpp>
#include <weightcast/runtime/device_guard.hpp>
#include <weightcast/runtime/event.hpp>
#include <weightcast/runtime/host_handles.hpp>
#include <weightcast/runtime/host_runtime.hpp>
#include <weightcast/runtime/host_runtime_settings.hpp>
#include <weightcast/runtime/stream.hpp>
#include <weightcast/runtime/stream_sync_scope.hpp>
