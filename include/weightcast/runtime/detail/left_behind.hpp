// SPDX-License-Identifier: Apache-2.0
#pragma once
// Resources that may never be freed because a stream may still use them: reachable, counted, not lost.

#include <cstddef>
#include <mutex>
#include <utility>

namespace weightcast::detail {

/// Anything with a destructor, in a list of such: the newest first, so that they go in reverse order.
struct kept {
    kept() = default;
    kept(kept const&) = delete;
    kept& operator=(kept const&) = delete;
    virtual ~kept() = default;
    kept* before = nullptr;
};
template <class T>
struct kept_as final : kept {
    explicit kept_as(T&& resource) : value{std::move(resource)} {}
    T value;
};

/// Owns what it keeps.
class kept_list {
  public:
    kept_list() = default;
    kept_list(kept_list const&) = delete;
    kept_list& operator=(kept_list const&) = delete;
    ~kept_list() { clear(); }

    std::size_t size() const noexcept { return size_; }
    template <class T>
    T& keep(T resource) {
        auto* const holder = new kept_as<T>{std::move(resource)};
        add(holder);
        return holder->value;
    }
    void clear() noexcept {
        while (size_ != 0) delete take();
    }
    /// Takes over all of another list.
    void add_all(kept_list& other) noexcept {
        while (other.size_ != 0) add(other.take());
    }

  private:
    void add(kept* one) noexcept {
        one->before = std::exchange(newest_, one);
        ++size_;
    }
    kept* take() noexcept {
        --size_;
        return std::exchange(newest_, newest_->before);
    }
    kept* newest_ = nullptr;
    std::size_t size_ = 0;
};

struct left_behind_list {
    std::mutex mutex;
    kept_list all;
};
inline left_behind_list& left_behind_in_process() {
    // never destroyed: that is what it is for
    static auto* const list = new left_behind_list;
    return *list;
}

inline void leave_behind(kept_list& resources) {
    auto& list = left_behind_in_process();
    std::lock_guard const lock{list.mutex};
    list.all.add_all(resources);
}
inline std::size_t count_left_behind() {
    auto& list = left_behind_in_process();
    std::lock_guard const lock{list.mutex};
    return list.all.size();
}

}  // namespace weightcast::detail
