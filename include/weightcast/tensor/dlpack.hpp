// SPDX-License-Identifier: Apache-2.0
#pragma once
// Tensors of other frameworks, taken over and handed out through DLPack without a copy.

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include <weightcast/base/error.hpp>
#include <weightcast/tensor/concepts.hpp>
#include <weightcast/tensor/detail/dlpack_mapping.hpp>
#include <weightcast/tensor/dlpack_abi.hpp>
#include <weightcast/tensor/tensor_traits.hpp>

namespace weightcast {

/// Owns a tensor that another framework handed over: its deleter is called exactly once.
/// The struct belongs to this object from the constructor's call on, also when the constructor
/// throws, as DLPack demands of consumers. Moved-from: an empty tensor of shape [0] that owns
/// nothing. The deleter runs on the thread that drops the object; pinned host memory (kDLCUDAHost)
/// reads as device `cpu`.
class managed_dlpack {
  public:
    /// Takes a tensor of the form before 1.0 (capsule name "dltensor").
    /// @throws bad_argument  for a null pointer
    /// @throws bad_input     for a device, dtype or layout that weightcast does not have
    explicit managed_dlpack(dlpack::managed_tensor* tensor) : owner_{adopt(tensor)} {
        view_ = detail::view_of_dlpack(tensor->dl_tensor);
    }
    /// Takes a tensor of the versioned form (capsule name "dltensor_versioned").
    /// @throws bad_argument  for a null pointer
    /// @throws bad_input     for another major version, and as above
    explicit managed_dlpack(dlpack::managed_tensor_versioned* tensor) : owner_{adopt(tensor)} {
        refuse_other_version(tensor->version);  // behind `flags` its layout is unknown
        if ((tensor->flags & dlpack::flag_subbyte_padded) != 0) {
            throw bad_input{"DLPack: a tensor has padded sub-byte elements; expected packed ones"};
        }
        read_only_ = (tensor->flags & dlpack::flag_read_only) != 0;
        view_ = detail::view_of_dlpack(tensor->dl_tensor);
    }
    managed_dlpack(managed_dlpack&& other) noexcept
        : owner_{std::move(other.owner_)},
          view_{std::exchange(other.view_, {})},
          read_only_{std::exchange(other.read_only_, false)} {}
    managed_dlpack& operator=(managed_dlpack&& other) noexcept {
        managed_dlpack taken{std::move(other)};
        std::swap(owner_, taken.owner_);
        std::swap(view_, taken.view_);
        std::swap(read_only_, taken.read_only_);
        return *this;
    }
    ~managed_dlpack() = default;

    /// The tensor, to be read.
    const_tensor_view<dynamic_space> view() const noexcept { return view_; }
    /// The tensor, to be written. @throws bad_argument  for one that its producer marked read-only
    tensor_view<dynamic_space> writable_view() {
        if (read_only_)
            throw bad_argument{"DLPack: the tensor is read-only; it may be sent, not written"};
        return view_;
    }
    bool read_only() const noexcept { return read_only_; }
    /// Whether this object owns a tensor: true until it is moved from.
    explicit operator bool() const noexcept { return owner_ != nullptr; }

  private:
    using owner = std::unique_ptr<void, void (*)(void*)>;

    template <class Managed>
    static owner adopt(Managed* tensor) {
        if (tensor == nullptr) throw bad_argument{"DLPack: expected a tensor, got a null pointer"};
        return owner{tensor, [](void* adopted) {
                         auto* const self = static_cast<Managed*>(adopted);
                         if (self->deleter != nullptr) self->deleter(self);
                     }};
    }
    static void refuse_other_version(dlpack::pack_version version) {
        if (version.major == dlpack::major_version) return;
        throw bad_input{"DLPack: expected major version " + std::to_string(dlpack::major_version) +
                        ", got " + std::to_string(version.major) + "." +
                        std::to_string(version.minor)};
    }

    owner owner_;
    tensor_view<dynamic_space> view_{};
    bool read_only_ = false;
};

template <>
struct tensor_traits<managed_dlpack> {
    using space = dynamic_space;
    static void const* data(managed_dlpack const& t) noexcept { return t.view().data(); }
    /// @throws bad_argument  for a tensor that its producer marked read-only
    static void* mutable_data(managed_dlpack& t) { return t.writable_view().data(); }
    static dtype element_type(managed_dlpack const& t) noexcept { return t.view().type(); }
    static device where(managed_dlpack const& t) noexcept { return t.view().where(); }
    static extents shape(managed_dlpack const& t) noexcept { return t.view().shape(); }
    static extents strides(managed_dlpack const& t) noexcept { return t.view().strides(); }
};
static_assert(WritableDeviceTensor<managed_dlpack>);

/// Calls the deleter of a tensor that no consumer has taken.
struct dlpack_deleter {
    void operator()(dlpack::managed_tensor_versioned* tensor) const noexcept {
        tensor->deleter(tensor);
    }
};
/// A tensor to hand out: give `release()` to the consumer, who calls the deleter.
using exported_dlpack = std::unique_ptr<dlpack::managed_tensor_versioned, dlpack_deleter>;

namespace detail {

template <class Owner>
struct dlpack_export {
    dlpack::managed_tensor_versioned managed{};
    std::array<std::int64_t, extents::max_rank> shape{};
    std::array<std::int64_t, extents::max_rank> strides{};
    Owner owner;

    explicit dlpack_export(Owner&& given) : owner{std::move(given)} {}
};

}  // namespace detail

/// Hands a tensor out; `owner` keeps its memory alive and is dropped by the deleter, on the
/// consumer's thread. A view of const elements is marked read-only.
/// @throws bad_argument  for a device that DLPack cannot name; owner is dropped
template <MemorySpace Space, class Byte, std::movable Owner>
    requires std::is_nothrow_destructible_v<Owner>
exported_dlpack to_dlpack(basic_tensor_view<Space, Byte> const& view, Owner owner) {
    using exported = detail::dlpack_export<Owner>;
    auto const where = detail::to_dlpack_device(view.where());
    auto made = std::make_unique<exported>(std::move(owner));
    std::copy(view.shape().begin(), view.shape().end(), made->shape.begin());
    std::copy(view.strides().begin(), view.strides().end(), made->strides.begin());
    void* const data =
        view.bytes() == 0 ? nullptr : const_cast<void*>(static_cast<void const*>(view.data()));
    made->managed.version = {dlpack::major_version, dlpack::minor_version};
    made->managed.flags = std::is_const_v<Byte> ? dlpack::flag_read_only : 0;
    made->managed.dl_tensor = {data,
                               where,
                               static_cast<std::int32_t>(view.shape().size()),
                               detail::to_dlpack_type(view.type()),
                               made->shape.data(),
                               made->strides.data(),
                               0};
    made->managed.manager_ctx = made.get();
    made->managed.deleter = [](dlpack::managed_tensor_versioned* self) {
        delete static_cast<exported*>(self->manager_ctx);
    };
    return exported_dlpack{&made.release()->managed};
}

}  // namespace weightcast
