// SPDX-License-Identifier: Apache-2.0
#pragma once
// What proves that two ranks hold the same model: one number over all names, types, shapes and
// bytes.

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <weightcast/base/error.hpp>
#include <weightcast/kernels/digest.hpp>
#include <weightcast/kernels/pack.hpp>
#include <weightcast/tensor/concepts.hpp>
#include <weightcast/tensor/dtype.hpp>
#include <weightcast/tensor/named_view.hpp>
#include <weightcast/tensor/tensor_view.hpp>

namespace weightcast {

namespace detail {

static_assert(std::endian::native == std::endian::little,
              "digests are defined over little-endian numbers");

inline void digest_number(digest_state& state, std::uint64_t number) {
    state.update(std::as_bytes(std::span{&number, 1}));
}
inline void digest_string(digest_state& state, std::string_view text) {
    digest_number(state, text.size());
    state.update(std::as_bytes(std::span{text.data(), text.size()}));
}
/// The bytes in row-major order, wherever they lie.
inline void digest_elements(digest_state& state, const_tensor_view<host_space> const& tensor) {
    auto const bytes = tensor.bytes();
    if (tensor.contiguous()) {
        return state.update(
            {static_cast<std::byte const*>(tensor.data()), static_cast<std::size_t>(bytes)});
    }
    std::array<std::byte, 16384> packed;  // NOLINT(*-member-init): written before it is read
    for (std::uint64_t first = 0; first < bytes; first += packed.size()) {
        auto const last = std::min<std::uint64_t>(bytes, first + packed.size());
        pack(tensor, first, last, packed.data());
        state.update(std::span{packed}.first(static_cast<std::size_t>(last - first)));
    }
}
inline void digest_metadata(digest_state& state, dtype type, extents const& shape) {
    digest_string(state, to_string(type));
    digest_number(state, shape.size());
    for (auto const extent : shape) digest_number(state, static_cast<std::uint64_t>(extent));
    digest_number(state, checked_multiply(element_count(shape), item_size(type)));
}
inline void digest_tensor(digest_state& state, const_tensor_view<host_space> const& tensor) {
    digest_metadata(state, tensor.type(), tensor.shape());
    digest_elements(state, tensor);
}
template <class View, class Tensors>
std::vector<View> sorted_by_name(Tensors&& tensors) {
    std::vector<View> sorted;
    for (auto const& t : tensors) sorted.push_back({t.name, view_of(t.tensor)});
    std::sort(sorted.begin(), sorted.end(),
              [](View const& a, View const& b) { return a.name < b.name; });
    return sorted;
}

}  // namespace detail

/// Digest of one tensor: xxh3-64 over its dtype, shape and bytes, not its name; strides do not
/// matter. Encoding, numbers as 8 little-endian bytes: length of the dtype's name, that name,
/// number of dimensions, each extent, number of bytes, the bytes in row-major order.
inline std::uint64_t tensor_digest(const_tensor_view<host_space> const& tensor) {
    digest_state state;
    detail::digest_tensor(state, tensor);
    return state.value();
}

/// The same of a tensor whose bytes come in pieces, in row-major order.
class tensor_digest_state {
  public:
    tensor_digest_state(dtype type, extents const& shape) {
        detail::digest_metadata(state_, type, shape);
    }
    void update(std::span<std::byte const> bytes) { state_.update(bytes); }
    /// The digest of a tensor that consists of the bytes so far.
    std::uint64_t value() const noexcept { return state_.value(); }

  private:
    digest_state state_{};
};

/// Digest of a model whose tensors come one by one, in the order of their names (byte by byte):
/// xxh3-64 over one record a tensor: length of its name, the name, then what tensor_digest covers.
/// Each part is preceded by its length, so that no two models have the same encoding.
class model_digest_state {
  public:
    /// @throws bad_argument  for a name that does not come after the one before; the state is as it
    ///                       was
    void add(std::string_view name, const_tensor_view<host_space> const& tensor) {
        if (any_ && name <= last_) {
            throw bad_argument{"a model's digest takes each name once and in order, got '" +
                               std::string{name} + "' after '" + last_ + "'"};
        }
        last_ = name;
        any_ = true;
        detail::digest_string(state_, name);
        detail::digest_tensor(state_, tensor);
    }
    /// The digest of all tensors so far.
    std::uint64_t value() const noexcept { return state_.value(); }

  private:
    digest_state state_{};
    std::string last_{};
    bool any_ = false;
};

/// Digest of a model, its tensors in any order.
/// @throws bad_argument  for a name that comes twice
template <std::ranges::input_range Tensors>
    requires NamedHostTensor<std::ranges::range_value_t<Tensors>>
std::uint64_t model_digest(Tensors&& tensors) {
    model_digest_state state;
    for (auto const& t : detail::sorted_by_name<named_view<host_space>>(tensors)) {
        state.add(t.name, t.tensor);
    }
    return state.value();
}

}  // namespace weightcast
