// SPDX-License-Identifier: Apache-2.0
#pragma once
// Door: proofs, the scope that makes them, and the aligned broadcast.

#include <weightcast/align/alignment_scope.hpp>
#include <weightcast/align/broadcast_aligned.hpp>
#include <weightcast/align/concepts.hpp>
#include <weightcast/align/located.hpp>
#include <weightcast/align/pending.hpp>
#include <weightcast/align/proof.hpp>
#include <weightcast/align/proof_group.hpp>
#include <weightcast/align/source_order.hpp>
