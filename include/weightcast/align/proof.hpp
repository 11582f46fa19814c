// SPDX-License-Identifier: Apache-2.0
#pragma once
// Proofs: that a tensor may be read, or written, on a communicator's device. Only alignment_scope makes them.

#include <cstddef>
#include <utility>

#include <weightcast/base/operation.hpp>
#include <weightcast/comm/proofs.hpp>
#include <weightcast/tensor/dtype.hpp>

namespace weightcast {

namespace detail {

template <class C>
class proof_group;

/// What a proof says; filled by the scope.
struct proof_facts {
    void* data = nullptr;
    std::size_t bytes = 0;
    dtype type = dtype::uint8;
    int slot = -1;           ///< staging slot that holds the bytes, -1: the tensor's own memory
    void* lender = nullptr;  ///< the scope that owns the slot, when it is another one
    bool in_group = false;   ///< a group gives the slot back
    operation_label label{};
};

/// Common part: neither copied nor moved (made in place by guaranteed elision), gives its slot back.
template <class C>
class proof {
  public:
    proof(proof const&) = delete;
    proof& operator=(proof const&) = delete;

    std::size_t bytes() const noexcept { return facts_.bytes; }
    dtype type() const noexcept { return facts_.type; }
    operation_label const& label() const noexcept { return facts_.label; }
    bool staged() const noexcept { return facts_.slot >= 0; }
    /// One compare: was this proof made for that communicator?
    bool belongs_to(void const* communicator) const noexcept {
        return scope_->identity() == communicator;
    }
    /// Told by the communicator when it takes the bytes into an operation.
    void mark_used() const noexcept { used_ = true; }

  protected:
    proof(alignment_scope<C>& scope, proof_facts const& facts) noexcept
        : scope_{&scope}, facts_{facts} {
        scope_->hold();
    }
    ~proof() = default;

    friend class alignment_scope<C>;
    friend class proof_group<C>;
    alignment_scope<C>* scope_;
    mutable proof_facts facts_;
    mutable bool used_ = false;
};

}  // namespace detail

/// May be read on C's device. Lifetime: within its scope, on the scope's thread.
template <class C>
class [[nodiscard]] resident : public detail::proof<C> {
  public:
    ~resident() { this->scope_->release_sent(this->facts_, this->used_); }
    void const* data() const noexcept { return this->facts_.data; }

  private:
    friend class alignment_scope<C>;
    using detail::proof<C>::proof;
};

/// May be written on C's device: the caller's own buffer, or a slot that is unpacked into it.
/// After a failed receive the content of the buffer is unspecified.
template <class C>
class [[nodiscard]] writable_resident : public detail::proof<C> {
  public:
    ~writable_resident() { this->scope_->release_received(this->facts_, this->used_); }
    void* data() const noexcept { return this->facts_.data; }

  private:
    friend class alignment_scope<C>;
    using detail::proof<C>::proof;
};

}  // namespace weightcast
