// SPDX-License-Identifier: Apache-2.0
#pragma once
// Resources that may never be freed because a stream may still use them: reachable, counted, not lost.

#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace weightcast::detail {

/// Anything with a destructor.
struct kept {
    kept() = default;
    kept(kept const&) = delete;
    kept& operator=(kept const&) = delete;
    virtual ~kept() = default;
};
template <class T>
struct kept_as final : kept {
    explicit kept_as(T&& resource) : value{std::move(resource)} {}
    T value;
};

struct left_behind_list {
    std::mutex mutex;
    std::vector<std::unique_ptr<kept>> all;
};
inline left_behind_list& left_behind_in_process() {
    // never destroyed: that is what it is for
    static auto* const list = new left_behind_list;
    return *list;
}

inline void leave_behind(std::unique_ptr<kept> resource) {
    auto& list = left_behind_in_process();
    std::lock_guard const lock{list.mutex};
    list.all.push_back(std::move(resource));
}
inline std::size_t count_left_behind() {
    auto& list = left_behind_in_process();
    std::lock_guard const lock{list.mutex};
    return list.all.size();
}

}  // namespace weightcast::detail
