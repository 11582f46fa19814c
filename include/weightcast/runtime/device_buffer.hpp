// SPDX-License-Identifier: Apache-2.0
#pragma once
// Memory of a device that someone owns, in the order of a stream.

#include <cstddef>
#include <optional>
#include <utility>

#include <weightcast/base/error.hpp>
#include <weightcast/runtime/concepts.hpp>
#include <weightcast/tensor/tensor_view.hpp>

namespace weightcast {

/// Owns bytes of a device of R: usable in the order of the stream it was made with, given back in the order
/// of the same stream (or of the one that `give_back_on` names) at its end, without waiting.
/// The stream must outlive it. Moved from it is empty: no memory, 0 bytes, and destruction does nothing.
template <DeviceRuntime R>
class [[nodiscard]] device_buffer {
  public:
    using runtime = R;
    using stream_ref = typename R::stream_ref;
    using view_type = tensor_view<typename R::space>;

    /// Holds nothing.
    device_buffer() noexcept = default;
    /// @throws out_of_memory  with the numbers
    /// @throws bad_argument   for a device that R does not have
    device_buffer(std::size_t bytes, device where, stream_ref on)
        : data_{R::allocate(bytes, where, on)}, bytes_{bytes}, where_{where}, stream_{on} {}
    device_buffer(device_buffer&& other) noexcept { swap(other); }
    device_buffer& operator=(device_buffer&& other) noexcept {
        device_buffer taken{std::move(other)};
        swap(taken);
        return *this;
    }
    ~device_buffer() {
        if (data_ != nullptr) R::deallocate(data_, *stream_);
    }

    void* data() const noexcept { return data_; }
    std::size_t bytes() const noexcept { return bytes_; }
    device where() const noexcept { return where_; }
    bool empty() const noexcept { return data_ == nullptr; }

    /// A contiguous tensor over its first bytes. @throws bad_argument  when it is too small for that
    view_type view(dtype type, extents const& shape) const {
        auto const needed = checked_multiply(element_count(shape), item_size(type));
        if (needed > bytes_) {
            throw bad_argument{"device_buffer::view: a tensor of shape " + to_string(shape) +
                               " and dtype " + std::string{to_string(type)} + " needs " +
                               std::to_string(needed) + " bytes, the buffer has " +
                               std::to_string(bytes_)};
        }
        return {data_, type, shape, where_};
    }

    /// From now on the buffer is given back in the order of that stream: for one that used it last.
    /// @pre  that stream already waits for what others do with the buffer
    void give_back_on(stream_ref last) noexcept { stream_ = last; }
    /// Gives the memory away: the caller deallocates it. Empty afterwards.
    void* release() noexcept {
        device_buffer taken{std::move(*this)};
        return std::exchange(taken.data_, nullptr);
    }

  private:
    void swap(device_buffer& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(bytes_, other.bytes_);
        std::swap(where_, other.where_);
        std::swap(stream_, other.stream_);
    }
    void* data_ = nullptr;
    std::size_t bytes_ = 0;
    device where_{};
    std::optional<stream_ref> stream_;
};

}  // namespace weightcast
