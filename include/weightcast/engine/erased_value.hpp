// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/engine is host-only: include it from a .cpp file"
#endif
// What a request carries to an engine whose type is known at run time only.

#include <concepts>
#include <memory>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <utility>

#include <weightcast/base/error.hpp>
#include <weightcast/engine/detail/type_name.hpp>
#include <weightcast/model/target_id.hpp>

namespace weightcast {

/// One immutable value of any type; copies share it. Made of nothing it holds nothing.
class erased_value {
  public:
    erased_value() = default;
    template <class T>
        requires(!std::derived_from<std::remove_cvref_t<T>, erased_value> &&
                 std::constructible_from<std::remove_cvref_t<T>, T>)
    explicit erased_value(T&& value)
        : type_{&typeid(std::remove_cvref_t<T>)},
          value_{std::make_shared<std::remove_cvref_t<T> const>(std::forward<T>(value))} {}

    /// The value when its type is exactly T, else null.
    template <class T>
    T const* get_if() const noexcept {
        return *type_ == typeid(T) ? static_cast<T const*>(value_.get()) : nullptr;
    }
    /// The value. @throws bad_argument  naming both types and `what` wants it; nothing was done with it
    template <class T>
    T const& get(std::string const& what) const {
        if (auto const* value = get_if<T>()) return *value;
        throw bad_argument{what + " takes " + detail::readable_name(typeid(T)) + ", got " +
                           type_name()};
    }
    bool has_value() const noexcept { return value_ != nullptr; }
    /// The type of the value; "nothing" without one.
    std::string type_name() const {
        return has_value() ? detail::readable_name(*type_) : "nothing";
    }

  private:
    std::type_info const* type_ = &typeid(void);
    std::shared_ptr<void const> value_;
};

/// An argument of an erased engine's init.
class any_init : public erased_value {
  public:
    any_init() = default;
    template <class T>
        requires(!std::derived_from<std::remove_cvref_t<T>, erased_value>)
    any_init(T&& init) : erased_value{std::forward<T>(init)} {}
};

/// An update for an erased engine; knows the target of one that names it, else `main`.
class any_update : public erased_value {
  public:
    any_update() = default;
    template <class T>
        requires(!std::derived_from<std::remove_cvref_t<T>, erased_value>)
    any_update(T&& update) : any_update{target_of(update), std::forward<T>(update)} {}

    target_id const& target() const noexcept { return target_; }

  private:
    template <class T>
    any_update(target_id target, T&& update)
        : erased_value{std::forward<T>(update)}, target_{std::move(target)} {}
    template <class T>
    static target_id target_of(T const& update) {
        if constexpr (requires {
                          { update.target() } -> std::convertible_to<target_id>;
                      }) {
            return update.target();
        } else {
            return {};
        }
    }
    target_id target_{};
};

}  // namespace weightcast
