// SPDX-License-Identifier: Apache-2.0
#pragma once
// The only maker of proofs: it sends from where a tensor lies, or stages it on the communicator's device
// through a bounded number of slots; it receives into the caller's own buffer, or refuses.

#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <weightcast/align/concepts.hpp>
#include <weightcast/align/located.hpp>
#include <weightcast/align/proof.hpp>
#include <weightcast/align/proof_group.hpp>
#include <weightcast/align/source_order.hpp>
#include <weightcast/base/error.hpp>
#include <weightcast/base/expects.hpp>
#include <weightcast/comm/communicator_operations.hpp>
#include <weightcast/kernels/host_launch.hpp>
#include <weightcast/kernels/launch.hpp>
#include <weightcast/kernels/strided_region.hpp>
#include <weightcast/runtime/device_guard.hpp>
#include <weightcast/runtime/event.hpp>

namespace weightcast {

/// Bounds of a scope's staging.
struct scope_options {
    int slots = 2;  ///< from 1 to alignment_scope::max_slots
    std::size_t slot_bytes =
        0;  ///< size that a slot has from its first use; it grows to its largest tensor
};

/// Bytes [first, last) of a tensor's flattened elements, to lie at `offset` of a chunk.
template <class Space>
struct packed_member {
    const_tensor_view<Space> tensor;
    std::uint64_t first = 0;
    std::uint64_t last = 0;
    std::uint64_t offset = 0;
};

/// Makes proofs for one communicator. Of one thread; immovable; no proof may outlive it (std::terminate).
/// While it lives, the thread's current device is the communicator's; leaving restores the caller's.
/// Slots are taken lazily and given back in stream order when the scope ends, also by an exception: nothing
/// waits, and nothing is freed before the collectives that read it are done.
template <class C>
class [[nodiscard]] alignment_scope {
    static_assert(Communicator<C>,
                  "alignment_scope: the group is no Communicator; see explain_communicator<C>()");

  public:
    using runtime = typename C::runtime;
    using space = typename runtime::space;
    using stream_ref = typename runtime::stream_ref;
    static constexpr int max_slots = 8;

    /// @throws bad_argument  for a number of slots out of range
    explicit alignment_scope(C& communicator, scope_options options = {})
        : communicator_{communicator},
          options_{options},
          ambient_device_{runtime::current_device()},
          guard_{communicator.where()} {
        if (options.slots < 1 || options.slots > max_slots) {
            throw bad_argument{"an alignment_scope has from 1 to 8 slots, not " +
                               std::to_string(options.slots)};
        }
    }
    alignment_scope(alignment_scope const&) = delete;
    alignment_scope& operator=(alignment_scope const&) = delete;
    ~alignment_scope() {
        if (live_ != 0) std::terminate();  // a proof outlived its scope
        for (int i = 0; slots_ != nullptr && i < options_.slots; ++i)
            end(slots_[static_cast<std::size_t>(i)]);
    }

    /// Proof that the tensor may be sent. Its own address where it lies on the communicator's device and is
    /// contiguous; else a copy in a slot.
    /// @throws device_mismatch  for a device that the memory is not on, or of another kind; nothing was sent
    /// @throws lifecycle_error  when live proofs hold all slots; @throws timeout  when a source stays busy
    /// Cost: resident: no copy, no allocation. Staged: one copy on the communicator's copy stream.
    template <Broadcastable<C> T, class Order = produced_anywhere>
        requires SourceOrder<Order, runtime>
    resident<C> align(T const& tensor, Order order = {}, operation_label const& label = {}) & {
        auto const view = located(view_of(tensor), label);
        wait_for(view, order);
        if (view.where() == communicator_.where() && view.contiguous()) {
            order_after(order, communicator_.core().collective_stream());
            order_after(order,
                        communicator_.core().copy_stream());  // which `share` orders others after
            return resident<C>{*this, facts_of(view, -1, label)};
        }
        return resident<C>{*this, stage(view, order, label)};
    }
    template <class T, class... Rest>
        requires(!Broadcastable<T, C>)
    resident<C> align(T const&, Rest const&...) & {
        static_assert(explain_broadcastable<T, C>());
    }
    template <class T, class... Rest>
    resident<C> align(T const&, Rest const&...) && {
        static_assert(
            detail::always_false<T>,
            "a proof may not outlive its scope: name the alignment_scope before you align with it");
    }

    /// Proof that the caller's own buffer may be received into. Strided: through a slot, unpacked when the
    /// proof ends. The tensor must be on the communicator's device: receiving never aligns.
    /// @throws device_mismatch  otherwise; @throws bad_argument  for one whose elements overlap; nothing was written
    template <ReceivableInto<C> T>
    writable_resident<C> require(T& tensor, operation_label const& label = {}) & {
        return writable_resident<C>{*this, receiving(writable(tensor, label), label)};
    }
    template <ReceivableInto<C> T>
    writable_resident<C> require(T& tensor, readers_on<stream_ref> readers,
                                 operation_label const& label = {}) & {
        auto const view = writable(tensor, label);
        order_after(produced_on<stream_ref>{readers.stream},
                    communicator_.core().collective_stream());
        return writable_resident<C>{*this, receiving(view, label)};
    }
    template <class T, class... Rest>
        requires(!ReceivableInto<T, C>)
    writable_resident<C> require(T&, Rest const&...) & {
        static_assert(explain_receivable_into<T, C>());
    }
    template <class T, class... Rest>
    writable_resident<C> require(T&&, Rest const&...) && {
        static_assert(
            detail::always_false<T>,
            "a proof may not outlive its scope: name the alignment_scope before you require with it");
    }

    /// Proof of a chunk: the members, already aligned with their sources, are packed into one slot.
    resident<C> pack(std::span<packed_member<space> const> members, std::size_t bytes,
                     operation_label const& label) & {
        int const slot = take_slot(bytes, communicator_.core().copy_stream());
        fill(slot, [&](std::byte* to) {
            for (auto const& m : members) pack_bytes(m.tensor, m.first, m.last, to + m.offset);
        });
        return resident<C>{*this, chunk_facts(slot, bytes, label)};
    }

    /// A chunk to receive into. The caller unpacks from it on the unpack stream before the proof ends.
    writable_resident<C> chunk(std::size_t bytes, operation_label const& label) & {
        int const slot = take_slot(bytes, communicator_.core().collective_stream());
        return writable_resident<C>{*this, chunk_facts(slot, bytes, label)};
    }

    /// The same bytes for another group on the same device: staged once, sent many times. A slot is free again
    /// when all that share it are done; the scope that it came from must outlive the shared proof.
    /// @throws device_mismatch  when that group's device is another one
    resident<C> share(resident<C> const& original) & {
        WEIGHTCAST_EXPECTS(!original.facts_.in_group,
                           "share a proof before it is added to a group");
        auto& owner = original.facts_.lender == nullptr
                          ? *original.scope_
                          : *static_cast<alignment_scope*>(original.facts_.lender);
        if (owner.communicator_.where() != communicator_.where()) {
            throw device_mismatch{"a proof for " + to_string(owner.communicator_.where()) +
                                  " is no proof for " + to_string(communicator_.where())};
        }
        order_after(produced_on<stream_ref>{owner.communicator_.core().copy_stream()},
                    communicator_.core().collective_stream());
        auto facts = original.facts_;
        facts.lender = &owner;
        if (facts.slot >= 0) ++owner.slots_[static_cast<std::size_t>(facts.slot)].users;
        return resident<C>{*this, facts};
    }

    /// Gathers proofs to send in one operation.
    resident_group<C> send_group(operation const& op = {}) & {
        return resident_group<C>{*this, op};
    }
    /// Gathers proofs to receive in one operation, from that root.
    writable_group<C> receive_group(int root, operation const& op = {}) & {
        return writable_group<C>{*this, root, op};
    }

    C& communicator() const noexcept { return communicator_; }
    void const* identity() const noexcept { return communicator_.identity(); }

  private:
    friend class detail::proof<C>;
    friend class detail::proof_group<C>;
    friend class resident<C>;
    friend class writable_resident<C>;
    friend class resident_group<C>;
    friend class writable_group<C>;

    struct slot_state {
        void* data = nullptr;
        std::size_t capacity = 0;
        int users = 0;  // proofs and groups that have it, also those of other scopes
        std::optional<stream_ref> filler{};    // where its memory comes from and goes back to
        std::optional<event<runtime>> idle{};  // reached when its last user is done
        std::vector<event<runtime>>
            borrowers{};  // reached when other groups that share it are done
        std::optional<tensor_view<space>> target{};  // strided destination to unpack into
    };

    // --- what a tensor says of itself, against what the runtime knows ---
    template <class Space, class Byte>
    basic_tensor_view<space, Byte> located(basic_tensor_view<Space, Byte> const& view,
                                           operation_label const& label) const {
        check_thread();
        return weightcast::located<runtime>(view, ambient_device_, label, communicator_.rank());
    }
    template <class T>
    tensor_view<space> writable(T& tensor, operation_label const& label) {
        auto const view = located(writable_view_of(tensor), label);
        if (view.where() != communicator_.where()) {
            fail_device_mismatch(label, communicator_.rank(),
                                 "a buffer on " + to_string(communicator_.where()) +
                                     ", the communicator's device (receiving never stages)",
                                 to_string(view.where()));
        }
        return view;
    }
    void check_thread() const {
        WEIGHTCAST_EXPECTS(std::this_thread::get_id() == thread_,
                           "an alignment_scope belongs to one thread");
    }

    // --- order ---
    template <class Order>
    void wait_for(const_tensor_view<space> const& view, Order const& order) {
        if constexpr (std::same_as<Order, produced_anywhere>) {
            if (!view.where().is_accelerator()) return;
            source_devices devices;
            devices.add(view.where());
            devices.template wait<runtime>(order.until);
        }
    }
    template <class Order>
    void order_after(Order const& order, stream_ref waiter) {
        if constexpr (std::same_as<Order, produced_on<stream_ref>>) {
            auto mark = communicator_.core().take_event();
            runtime::record(mark.ref(), order.stream);
            runtime::stream_wait(waiter, mark.ref());
            communicator_.core().give_event(std::move(mark));
        }
    }

    // --- facts ---
    template <class View>
    static detail::proof_facts facts_of(View const& view, int slot, operation_label const& label) {
        return {.data = const_cast<void*>(static_cast<void const*>(view.data())),
                .bytes = static_cast<std::size_t>(view.bytes()),
                .type = view.type(),
                .slot = slot,
                .lender = nullptr,
                .label = label};
    }
    detail::proof_facts chunk_facts(int slot, std::size_t bytes, operation_label const& label) {
        return {.data = slots_[static_cast<std::size_t>(slot)].data,
                .bytes = bytes,
                .type = dtype::uint8,
                .slot = slot,
                .lender = nullptr,
                .label = label};
    }
    template <class Order>
    detail::proof_facts stage(const_tensor_view<space> const& view, Order const& order,
                              operation_label const& label) {
        auto const copy_stream = communicator_.core().copy_stream();
        auto facts = facts_of(view, -1, label);
        if (facts.bytes == 0) return facts;
        facts.slot = take_slot(facts.bytes, copy_stream);
        facts.data = slots_[static_cast<std::size_t>(facts.slot)].data;
        fill(facts.slot, [&](std::byte* to) {
            order_after(order, copy_stream);
            pack_bytes(view, 0, facts.bytes, to);
        });
        return facts;
    }
    // Runs what fills a slot on the copy stream; collectives come after it. A slot whose filling fails is given
    // back behind what was enqueued so far.
    template <class F>
    void fill(int index, F const& enqueue) {
        auto const collectives = communicator_.core().collective_stream();
        produced_on<stream_ref> const filled{communicator_.core().copy_stream()};
        auto& slot = slots_[static_cast<std::size_t>(index)];
        try {
            enqueue(static_cast<std::byte*>(slot.data));
        } catch (...) {
            order_after(filled, collectives);
            mark_idle(slot, collectives);
            throw;
        }
        order_after(filled, collectives);
    }
    void pack_bytes(const_tensor_view<space> const& view, std::uint64_t first, std::uint64_t last,
                    void* to) {
        auto const stream = communicator_.core().copy_stream();
        if (view.contiguous()) {
            runtime::copy(to, communicator_.where(),
                          static_cast<std::byte const*>(view.data()) + first, view.where(),
                          static_cast<std::size_t>(last - first), stream);
        } else {
            kernel_launcher<runtime>::pack_async(view, first, last, to, stream);
        }
    }
    detail::proof_facts receiving(tensor_view<space> const& view, operation_label const& label) {
        auto facts = facts_of(view, -1, label);
        if (view.contiguous() || facts.bytes == 0) return facts;
        detail::check_destination(view.layout());
        facts.slot = take_slot(facts.bytes, communicator_.core().collective_stream());
        auto& slot = slots_[static_cast<std::size_t>(facts.slot)];
        slot.target = view;
        facts.data = slot.data;
        return facts;
    }

    // --- slots ---
    int take_slot(std::size_t bytes, stream_ref filler) {
        check_thread();
        if (slots_ == nullptr)
            slots_ = std::make_unique<slot_state[]>(static_cast<std::size_t>(options_.slots));
        int found = find_free_slot();
        if (found < 0 && open_group_ != nullptr) {
            open_group_->submit();
            found = find_free_slot();
        }
        if (found < 0) {
            throw lifecycle_error{
                "live proofs hold all " + std::to_string(options_.slots) +
                " slots of this scope; end one first, or give the scope more slots"};
        }
        auto& slot = slots_[static_cast<std::size_t>(found)];
        wait_for_users(slot, filler);
        slot.filler = filler;
        if (slot.capacity < bytes) give_back(slot);
        if (slot.data == nullptr) {
            std::size_t const size = bytes < options_.slot_bytes ? options_.slot_bytes : bytes;
            slot.data = runtime::allocate(size, communicator_.where(), filler);
            slot.capacity = size;
        }
        slot.users = 1;
        return found;
    }
    void end(slot_state& slot) noexcept {
        if (slot.users != 0) std::terminate();  // a proof of another scope still has it
        if (slot.data == nullptr) return;
        wait_for_users(slot, *slot.filler);
        give_back(slot);
    }
    // In turn, so that one slot is filled while another is still read.
    int find_free_slot() noexcept {
        for (int i = 1; i <= options_.slots; ++i) {
            int const next = (last_slot_ + i) % options_.slots;
            if (slots_[static_cast<std::size_t>(next)].users != 0) continue;
            return last_slot_ = next;
        }
        return -1;
    }
    void wait_for_users(slot_state& slot, stream_ref waiter) {
        if (slot.idle) {
            runtime::stream_wait(waiter, slot.idle->ref());
            communicator_.core().give_event(std::move(*slot.idle));
            slot.idle.reset();
        }
        for (auto& done : slot.borrowers) runtime::stream_wait(waiter, done.ref());
        slot.borrowers.clear();
    }
    // On the stream that fills it: the next slot that this stream asks for is the same memory, without a wait.
    // Pre: the stream waits for its users.
    void give_back(slot_state& slot) noexcept {
        runtime::deallocate(slot.data, *slot.filler);
        slot.data = nullptr;
        slot.capacity = 0;
    }
    void mark_idle(slot_state& slot, stream_ref last_user) noexcept {
        if (!slot.idle) slot.idle = communicator_.core().take_event();
        runtime::record(slot.idle->ref(), last_user);
        --slot.users;
    }
    void lend_until_done(int index, stream_ref borrower) noexcept {
        auto& slot = slots_[static_cast<std::size_t>(index)];
        runtime::record(slot.borrowers.emplace_back().ref(), borrower);
        --slot.users;
    }

    // --- called by proofs ---
    void hold() noexcept { ++live_; }
    void release_sent(detail::proof_facts const& facts, bool) noexcept {
        --live_;
        if (facts.slot >= 0) return_sent_slot(facts);
    }
    void return_sent_slot(detail::proof_facts const& facts) noexcept {
        auto const stream = communicator_.core().collective_stream();
        if (facts.lender != nullptr) {
            static_cast<alignment_scope*>(facts.lender)->lend_until_done(facts.slot, stream);
        } else {
            mark_idle(slots_[static_cast<std::size_t>(facts.slot)], stream);
        }
    }
    void release_received(detail::proof_facts const& facts, bool used) noexcept {
        --live_;
        if (facts.slot >= 0) return_received_slot(facts, used);
    }
    void return_received_slot(detail::proof_facts const& facts, bool used) noexcept {
        auto& slot = slots_[static_cast<std::size_t>(facts.slot)];
        auto const unpack_stream = communicator_.core().unpack_stream();
        order_after(produced_on<stream_ref>{communicator_.core().collective_stream()},
                    unpack_stream);
        if (slot.target && used) {
            kernel_launcher<runtime>::unpack_async(slot.data, *slot.target, 0, facts.bytes,
                                                   unpack_stream);
        }
        slot.target.reset();
        mark_idle(slot, unpack_stream);
    }

    C& communicator_;
    scope_options options_;
    int ambient_device_;
    device_guard<runtime> guard_;
    std::thread::id thread_ = std::this_thread::get_id();
    std::unique_ptr<slot_state[]> slots_{};  // made when the first tensor is staged
    detail::proof_group<C>* open_group_ = nullptr;
    int last_slot_ = -1;
    int live_ = 0;
};

}  // namespace weightcast
