// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/observe is host-only: include it from a .cpp file"
#endif
// Door: listeners to a transfer's progress.

#include <weightcast/observe/chrome_trace.hpp>
#include <weightcast/observe/metrics_text.hpp>
#include <weightcast/observe/phase_metrics.hpp>
#include <weightcast/observe/progress_tee.hpp>
#include <weightcast/observe/terminal_progress.hpp>
#include <weightcast/observe/traced_progress.hpp>
