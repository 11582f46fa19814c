// SPDX-License-Identifier: Apache-2.0
#pragma once
#ifdef __CUDACC__
#error "weightcast/engine is host-only: include it from a .cpp file"
#endif
// A sender's tensors while they are sent: asked of the source once, checked against what was announced.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <weightcast/align/located.hpp>
#include <weightcast/base/deadline.hpp>
#include <weightcast/base/error.hpp>
#include <weightcast/kernels/model_digest.hpp>
#include <weightcast/model/concepts.hpp>
#include <weightcast/plan/announcement.hpp>
#include <weightcast/plan/packing_plan.hpp>
#include <weightcast/runtime/event.hpp>

namespace weightcast::detail {

template <class R, class Source>
class fetched_tensors {
    using space = typename R::space;
    using view = const_tensor_view<space>;

  public:
    static constexpr bool momentary = has_tensor_release<Source, R>;

    /// `ambient` is the caller's current device: that of tensors which name none; `until` bounds waits for
    /// the source's work.
    fetched_tensors(Source& source, typename R::stream_ref stream, announcement const& announced,
                    int ambient, deadline until)
        : source_{source},
          stream_{stream},
          announced_{announced},
          ambient_{ambient},
          until_{until},
          tensors_(announced.parameters.size()),
          left_(announced.parameters.size()),
          digests_(announced.verify ? announced.parameters.size() : 0) {
        for (std::size_t i = 0; i < left_.size(); ++i) left_[i] = announced.parameters[i].bytes();
    }

    fetched_tensors(fetched_tensors const&) = delete;
    fetched_tensors& operator=(fetched_tensors const&) = delete;
    /// Releases what an update that failed did not: sources must not keep memory of a stream that ends.
    ~fetched_tensors() {
        try {
            for (std::size_t i = 0; i < tensors_.size(); ++i) {
                release(i, stream_);
            }
        } catch (...) {  // the source's own affair: the update has its outcome already
        }
    }

    /// The stream on which the source makes its tensors.
    typename R::stream_ref source_stream() const noexcept { return stream_; }

    /// Asks for the tensors that were not asked for yet, up to and with that index: one after the other, so that
    /// every rank of the trainers asks in the same order. One without bytes in no transfer is released at once.
    /// @throws bad_input        when the source hands out another tensor than it announced
    /// @throws device_mismatch  when it is not on the device that it names; nothing of it was sent
    void fetch_up_to(std::size_t last) {
        for (; next_ < tensors_.size() && next_ <= last; ++next_) {
            fetch(next_);
            if (left_[next_] == 0 && announced_.options.layout == packing_layout::native)
                release(next_, stream_);
        }
    }
    void fetch_rest() {
        if (!tensors_.empty()) fetch_up_to(tensors_.size() - 1);
    }
    /// @pre  it was fetched, and not released
    view const& operator[](std::size_t index) const { return *tensors_[index]; }
    /// Its reader is on the stream: a tensor made for the moment may be reused after it.
    void release(std::size_t index, typename R::stream_ref stream) {
        if constexpr (momentary) {
            if (!tensors_[index]) return;
            source_.release(index, stream);
            tensors_[index].reset();
        }
    }
    /// Releases what ends in this chunk; a tensor that is cut is kept until its last piece.
    void release_complete(packed_chunk const& chunk, typename R::stream_ref stream) {
        for (auto const& m : chunk.members) {
            left_[m.tensor] -= m.bytes;
            if (left_[m.tensor] == 0) release(m.tensor, stream);
        }
    }
    /// Digests of all tensors in announced order.
    std::vector<std::uint64_t> digests() {
        if constexpr (!momentary) {
            if (!tensors_.empty()) wait_for_source(tensors_.size() - 1);
            for (std::size_t i = 0; i < tensors_.size(); ++i)
                digests_[i] = tensor_digest(*tensors_[i]);
        }
        return digests_;
    }

  private:
    void fetch(std::size_t index) {
        auto const given = source_.tensor(index, stream_);
        tensors_[index].emplace(checked(index, given.name, view_of(given.tensor)));
        if constexpr (momentary) {
            if (announced_.verify) digest_now(index);
        }
    }
    template <class Given>
    view checked(std::size_t index, std::string_view name, Given const& given) const {
        auto const& p = announced_.parameters[index];
        if (name != p.name || given.type() != p.type || given.shape() != p.shape) {
            fail<bad_input>("the source hands out another tensor than it announced",
                            {.where = phase::payload,
                             .tensor = p.name,
                             .expected = "'" + p.name + "' " + describe_type(p.type, p.shape),
                             .actual = "'" + std::string{name} + "' " +
                                       describe_type(given.type(), given.shape())});
        }
        return located<R>(given, ambient_, {phase::payload, p.name}, -1);
    }
    void digest_now(std::size_t index) {
        wait_for_source(index);
        digests_[index] = tensor_digest(*tensors_[index]);
    }
    // A digest reads on this thread what the source makes on its stream.
    void wait_for_source(std::size_t index) {
        event<R> const made{stream_};
        if (made.wait(until_)) return;
        fail<timeout>("the source did not make its tensor",
                      {.where = phase::payload, .tensor = announced_.parameters[index].name});
    }

    Source& source_;
    typename R::stream_ref stream_;
    announcement const& announced_;
    int ambient_;
    deadline until_;
    std::vector<std::optional<view>> tensors_;
    std::size_t next_ = 0;  // to be asked for
    std::vector<std::uint64_t> left_;
    std::vector<std::uint64_t> digests_;
};

}  // namespace weightcast::detail
