// SPDX-License-Identifier: Apache-2.0
#pragma once
// Declarations of the proofs that a communicator takes in place of raw tensors; align/ defines them.

namespace weightcast {

/// The only maker of proofs for communicator C.
template <class C>
class alignment_scope;
/// Proof that a tensor may be read on C's device, in the order of C's streams.
template <class C>
class resident;
/// Proof that a tensor may be written on C's device: the caller's own buffer.
template <class C>
class writable_resident;
/// Several `resident` proofs gathered for one operation.
template <class C>
class resident_group;
/// Several `writable_resident` proofs gathered for one operation.
template <class C>
class writable_group;

}  // namespace weightcast
