// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/model is host-only: include it from a .cpp file"
#endif
// The commit policy that leaves readers the old version until an update is committed.

#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <weightcast/base/deadline.hpp>
#include <weightcast/base/error.hpp>
#include <weightcast/model/commit_policy.hpp>
#include <weightcast/model/shadow_memory.hpp>
#include <weightcast/runtime/concepts.hpp>
#include <weightcast/tensor/tensor_view.hpp>

namespace weightcast {

/// Bytes go into a second set of memory, which is served from the commit on: readers keep the old version meanwhile, and
/// nothing is ever mixed. Addresses alternate between the two sets. Costs the memory of the target once more, and a
/// copy of what a partial update does not bring.
struct shadow {
    static constexpr std::string_view name = "shadow";
    template <DeviceRuntime R>
    class memory {
        using view = tensor_view<typename R::space>;

      public:
        static constexpr std::size_t sets = 2;
        /// Both sets are equal at first: what belongs to nobody, padding for instance, has to be in both.
        /// @throws out_of_memory, timeout  nothing has changed
        /// @throws lifecycle_error  for tensors that were added after the first update began
        void build(std::vector<view> const& tensors, deadline until) {
            if (second_ && tensors.size() == built_for_) return;
            if (second_) {
                throw lifecycle_error{
                    "shadow: a tensor was added to a table after its first update had begun"};
            }
            shadow_memory<R> second{tensors};
            for (auto const& own : tensors) second.copy_from_first(own);
            if (!second.wait(until)) throw timeout{"shadow: tensors were not copied in time"};
            second_.emplace(std::move(second));
            built_for_ = tensors.size();
        }
        /// @pre  built, or set 0
        view in_set(view const& own, std::size_t set) const {
            return set == 0 ? own : second_->counterpart(own);
        }
        /// @throws timeout  at the deadline
        void carry(std::vector<view> const& tensors, std::size_t from, std::size_t to,
                   deadline until) {
            if (from == to || tensors.empty()) return;
            for (auto const& own : tensors) {
                if (to == 1)
                    second_->copy_from_first(own);
                else
                    second_->copy_to_first(own);
            }
            if (!second_->wait(until)) throw timeout{"shadow: tensors were not copied in time"};
        }

      private:
        std::optional<shadow_memory<R>> second_;
        std::size_t built_for_ = 0;
    };
};

}  // namespace weightcast
