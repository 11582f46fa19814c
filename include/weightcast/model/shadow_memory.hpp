// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/model is host-only: include it from a .cpp file"
#endif
// A second set of memory for a set of tensors: readers keep one set while an update is written into the other.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <weightcast/base/deadline.hpp>
#include <weightcast/base/error.hpp>
#include <weightcast/model/detail/address_range.hpp>
#include <weightcast/model/parameter.hpp>
#include <weightcast/runtime/concepts.hpp>
#include <weightcast/runtime/device_buffer.hpp>
#include <weightcast/runtime/device_guard.hpp>
#include <weightcast/runtime/event.hpp>
#include <weightcast/runtime/stream.hpp>
#include <weightcast/tensor/device.hpp>
#include <weightcast/tensor/tensor_view.hpp>

namespace weightcast {

namespace detail {

/// In order, those that overlap as one; those that only touch stay apart. Cost: n log n.
inline std::vector<address_range> merge_overlaps(std::vector<address_range> ranges) {
    std::sort(ranges.begin(), ranges.end());
    std::vector<address_range> merged;
    for (auto const& range : ranges) {
        if (range.bytes() == 0) continue;
        if (!merged.empty() && merged.back().where == range.where &&
            range.first < merged.back().last) {
            merged.back().last = std::max(merged.back().last, range.last);
        } else {
            merged.push_back(range);
        }
    }
    return merged;
}

}  // namespace detail

/// A second set of memory for tensors that someone else owns, the first set: each tensor has its counterpart at a fixed
/// address, with its dtype, shape and strides. Tensors that share bytes share them in the second set too, and
/// addresses are equal modulo 64, so that what is aligned stays aligned.
/// Copies run on streams of its own, one a device. At its end the memory is given back in the order of those streams,
/// without waiting: the first set must live until copies are waited for, and whoever else uses the second set must
/// be done by then. Moved from it holds nothing. Belongs to one thread at a time.
template <DeviceRuntime R>
class [[nodiscard]] shadow_memory {
  public:
    using runtime = R;
    using stream_ref = typename R::stream_ref;
    using view = tensor_view<typename R::space>;

    /// Allocates; the contents are undefined. The second set may be used in the order of `stream_of` its device; after
    /// a `wait` that said yes, by anyone.
    /// @throws out_of_memory  with the numbers; nothing stays allocated
    /// @throws bad_argument   for a device that R does not have
    /// Cost: n log n; an allocation for each range of addresses that does not overlap another, of up to 63 bytes
    ///       more than the range.
    explicit shadow_memory(std::vector<view> const& tensors) {
        std::vector<detail::address_range> ranges;
        for (auto const& tensor : tensors) ranges.push_back(detail::range_of(tensor));
        for (auto const& range : detail::merge_overlaps(std::move(ranges))) add(range);
    }
    shadow_memory(shadow_memory&&) noexcept = default;
    // Memory must go before the streams that it is given back on, which a member by member one would not do.
    shadow_memory& operator=(shadow_memory&&) = delete;
    ~shadow_memory() = default;

    /// The same tensor in the second set. One without elements is its own counterpart.
    /// @throws bad_argument  for a tensor that is not wholly in one range of the first set
    /// Cost: logarithmic in the number of ranges.
    view counterpart(view const& own) const {
        auto const range = detail::range_of(own);
        if (range.bytes() == 0) return own;
        return {place_of(own, range), own.type(), own.shape(), own.strides(), own.where()};
    }

    /// Enqueues a copy of the tensor from the first set into the second, from its first byte to its last: also the
    /// bytes between that strides leave out.
    /// Ordering: after what was copied here before on that device, and what `stream_of` it was made to wait for.
    /// @throws bad_argument     for a tensor that is not wholly in one range of the first set
    /// @throws device_mismatch  for one that does not lie on the device that it says
    void copy_from_first(view const& own) {
        auto const range = detail::range_of(own);
        if (range.bytes() == 0) return;
        copy(place_of(own, range), own.data(), range);
    }
    /// The same from the second set into the first.
    void copy_to_first(view const& own) {
        auto const range = detail::range_of(own);
        if (range.bytes() == 0) return;
        copy(own.data(), place_of(own, range), range);
    }

    /// Waits until all copies so far are done; false when the deadline passes first, and then it may be called again.
    bool wait(deadline until) {
        std::vector<event<R>> ends;
        for (auto const& [where, on] : streams_) {
            // An event belongs to the device that is current when it is made.
            device_guard<R> const current{where};
            ends.emplace_back(on.ref());
        }
        return std::all_of(ends.begin(), ends.end(),
                           [&](event<R> const& end) { return end.wait(until); });
    }

    /// The stream of the copies on that device, and of its part of the second set.
    /// @throws bad_argument  for a device that none of the tensors is on
    stream_ref stream_of(device where) const {
        auto const found = streams_.find(where);
        if (found == streams_.end()) {
            throw bad_argument{"no tensor with a second set of memory is on " + to_string(where)};
        }
        return found->second.ref();
    }
    /// Bytes of the second set, each range of addresses once; padding is not counted.
    std::uint64_t bytes() const noexcept {
        std::uint64_t total = 0;
        for (auto const& held : held_) total += held.first_set.bytes();
        return total;
    }

  private:
    static constexpr std::uintptr_t alignment = 64;
    struct held_range {
        detail::address_range first_set;
        device_buffer<R> memory;
        std::byte* begin;  // in the memory, congruent with the first set's first byte
    };

    void add(detail::address_range const& range) {
        auto const on = streams_.try_emplace(range.where, range.where).first->second.ref();
        device_buffer<R> memory{range.bytes() + (alignment - 1), range.where, on};
        auto const base = reinterpret_cast<std::uintptr_t>(memory.data());
        auto* const begin =
            static_cast<std::byte*>(memory.data()) + (range.first - base) % alignment;
        held_.push_back({range, std::move(memory), begin});
    }
    std::byte* place_of(view const& own, detail::address_range const& range) const {
        auto const after = std::upper_bound(
            held_.begin(), held_.end(), range,
            [](auto const& r, held_range const& held) { return r < held.first_set; });
        if (after == held_.begin()) refuse(own);
        auto const& held = *std::prev(after);
        if (held.first_set.where != range.where || range.last > held.first_set.last) refuse(own);
        return held.begin + (range.first - held.first_set.first);
    }
    [[noreturn]] void refuse(view const& own) const {
        throw bad_argument{"tensor " + describe_type(own.type(), own.shape()) + " with strides " +
                           to_string(own.strides()) + " on " + to_string(own.where()) +
                           " is not in the memory of which there is a second set (" +
                           std::to_string(held_.size()) + " ranges, " + std::to_string(bytes()) +
                           " bytes)"};
    }
    void copy(void* to, void const* from, detail::address_range const& range) {
        R::copy(to, range.where, from, range.where, range.bytes(), stream_of(range.where));
    }

    std::map<device, stream<R>> streams_;
    std::vector<held_range> held_;  // in order of addresses; goes before the streams
};

}  // namespace weightcast
