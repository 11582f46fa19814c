// SPDX-License-Identifier: Apache-2.0
#pragma once
// Several proofs for one operation: a transport may then run one window across all of them.

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include <weightcast/align/proof.hpp>
#include <weightcast/base/expects.hpp>
#include <weightcast/base/operation.hpp>
#include <weightcast/comm/transfer_range.hpp>

namespace weightcast {

namespace detail {

/// Ranges of added proofs, and their slots, until `submit`. Of one thread, within its scope.
template <class C>
class proof_group {
  public:
    proof_group(proof_group const&) = delete;
    proof_group& operator=(proof_group const&) = delete;

    std::span<transfer_range const> ranges() const noexcept { return ranges_; }
    bool belongs_to(void const* communicator) const noexcept {
        return scope_.identity() == communicator;
    }
    void mark_used() const noexcept {}
    /// Sends or receives what was added since the last submit, as one operation; nothing: does nothing.
    virtual void
    submit() = 0;  // not on the data path: called once an operation, from the scope too

  protected:
    proof_group(alignment_scope<C>& scope, operation const& op) : scope_{scope}, op_{op} {
        WEIGHTCAST_EXPECTS(scope.open_group_ == nullptr, "a scope has one open group at a time");
        scope.open_group_ = this;
    }
    ~proof_group() { scope_.open_group_ = nullptr; }

    template <class Proof>
    void take(Proof const& proof) {
        WEIGHTCAST_EXPECTS(proof.belongs_to(scope_.identity()),
                           "the proof is of another communicator");
        ranges_.push_back({const_cast<void*>(static_cast<void const*>(proof.data())), proof.bytes(),
                           proof.label()});
        if (proof.facts_.slot < 0) return;
        slots_.push_back(proof.facts_);
        proof.facts_.slot = -1;
        proof.facts_.in_group = true;
    }

    alignment_scope<C>& scope_;
    operation op_;
    std::vector<transfer_range> ranges_;
    std::vector<proof_facts> slots_;
};

}  // namespace detail

/// Proofs to send in one operation. `submit` is explicit; leaving without it sends nothing.
template <class C>
class [[nodiscard]] resident_group final : public detail::proof_group<C> {
  public:
    ~resident_group() { release(); }
    void add(resident<C> const& proof) & { this->take(proof); }
    void submit() override {
        if (!this->ranges_.empty()) this->scope_.communicator().broadcast_from(*this, this->op_);
        release();
    }

  private:
    friend class alignment_scope<C>;
    resident_group(alignment_scope<C>& scope, operation const& op)
        : detail::proof_group<C>{scope, op} {}
    void release() noexcept {
        for (auto const& facts : this->slots_) this->scope_.return_sent_slot(facts);
        this->slots_.clear();
        this->ranges_.clear();
    }
};

/// Proofs to receive in one operation from one root. `submit` is explicit; leaving without it receives nothing.
template <class C>
class [[nodiscard]] writable_group final : public detail::proof_group<C> {
  public:
    ~writable_group() { release(false); }
    void add(writable_resident<C> const& proof) & { this->take(proof); }
    void submit() override {
        bool const any = !this->ranges_.empty();
        if (any) this->scope_.communicator().broadcast_into(*this, root_, this->op_);
        release(any);
    }

  private:
    friend class alignment_scope<C>;
    writable_group(alignment_scope<C>& scope, int root, operation const& op)
        : detail::proof_group<C>{scope, op}, root_{root} {}
    void release(bool used) noexcept {
        for (auto const& facts : this->slots_) this->scope_.return_received_slot(facts, used);
        this->slots_.clear();
        this->ranges_.clear();
    }
    int root_;
};

}  // namespace weightcast
