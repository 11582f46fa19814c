// SPDX-License-Identifier: Apache-2.0
#pragma once
// Bytes on their way: ranges cut into pieces, striped over the contexts, a window of them in flight across
// all ranges, and handed on piece by piece where the route goes further.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <gloo/common/error.h>
#include <gloo/transport/unbound_buffer.h>

#include <weightcast/comm/detail/broadcast_route.hpp>
#include <weightcast/comm/detail/gloo_links.hpp>
#include <weightcast/comm/detail/gloo_watch.hpp>
#include <weightcast/comm/transfer_range.hpp>

namespace weightcast::detail {

/// How ranges are cut and how much of them is under way; the same on all ranks.
struct window_settings {
    std::size_t piece = std::size_t{4} << 20U;
    int in_flight = 32;   ///< pieces a context
    bool counted = true;  ///< they count as bytes of the operation
};

/// Runs a Gloo call that is not a wait, and says whose connection it was if that is broken.
template <class Call>
decltype(auto) with_peer(int peer, Call call) {
    try {
        return call();
    } catch (gloo::Exception const& problem) {
        throw connection_broken{peer, problem.what()};
    }
}

/// Buffers of the pieces in flight; kept between operations so that a window allocates no table of its own.
class piece_table {
  public:
    static constexpr std::size_t most_targets = most_fanned_out;
    struct piece {
        std::unique_ptr<gloo::transport::UnboundBuffer> in{};
        std::array<std::unique_ptr<gloo::transport::UnboundBuffer>, most_targets> out{};
        std::size_t bytes = 0;
        operation_label const* tensor = nullptr;
    };

    explicit piece_table(std::size_t pieces) : pieces_(pieces) {}
    std::size_t size() const noexcept { return pieces_.size(); }
    piece& operator[](std::uint64_t number) noexcept { return pieces_[number % pieces_.size()]; }
    /// Destroying a buffer is what keeps Gloo from touching its memory any more.
    void clear() noexcept {
        for (auto& one : pieces_) one = {};
    }

  private:
    std::vector<piece> pieces_;
};

/// One run of a window. On leaving, by an exception too, no piece refers to any memory.
class piece_window {
  public:
    piece_window(gloo_links& links, gloo_watch& watch, piece_table& table, window_settings settings,
                 route const& way, std::span<transfer_range const> ranges)
        : links_{links},
          watch_{watch},
          table_{table},
          settings_{settings},
          way_{way},
          ranges_{ranges} {}
    piece_window(piece_window const&) = delete;
    piece_window& operator=(piece_window const&) = delete;
    ~piece_window() { table_.clear(); }

    /// Posts what fits; waits for nothing.
    void start() {
        while (posted_ - flushed_ < table_.size() && post()) {}
    }
    /// Returns when every piece has come, and has gone where it had to.
    void finish() {
        bool const receives = way_.source >= 0;
        bool const sends = !way_.targets.empty();
        for (start(); flushed_ < posted_; start()) {
            // a rank that hands on keeps half a window between what came and what is known to have gone
            bool const behind = received_ - flushed_ > table_.size() / 2 || received_ == posted_;
            if (receives && !(sends && behind)) receive();
            if (!receives || !sends || behind) flush();
        }
    }

  private:
    /// False when all pieces are posted.
    bool post() {
        while (range_ < ranges_.size() && offset_ == ranges_[range_].bytes) {
            ++range_;
            offset_ = 0;
        }
        if (range_ == ranges_.size()) return false;
        auto const& range = ranges_[range_];
        auto& piece = table_[posted_];
        piece.bytes = std::min(settings_.piece, range.bytes - offset_);
        piece.tensor = &range.label;
        auto* const data = static_cast<std::byte*>(range.data) + offset_;
        int const context = context_of(posted_);
        if (way_.source >= 0) {
            piece.in = links_.make_buffer(context, data, piece.bytes);
            with_peer(way_.source, [&] { piece.in->recv(way_.source, data_slot, 0, piece.bytes); });
        } else {
            send(piece, context, data);
        }
        offset_ += piece.bytes;
        ++posted_;
        return true;
    }
    void send(piece_table::piece& piece, int context, void* data) {
        for (std::size_t i = 0; i < way_.targets.size(); ++i) {
            piece.out[i] = links_.make_buffer(context, data, piece.bytes);
            with_peer(way_.targets[i],
                      [&] { piece.out[i]->send(way_.targets[i], data_slot, 0, piece.bytes); });
        }
    }
    void receive() {
        auto& piece = table_[received_];
        watch_.at_tensor(*piece.tensor);
        watch_.wait(*piece.in, gloo_watch::direction::receive, way_.source);
        if (settings_.counted) watch_.add_bytes(piece.bytes);
        if (!way_.targets.empty()) send(piece, context_of(received_), piece.in->ptr);
        ++received_;
    }
    void flush() {
        auto& piece = table_[flushed_];
        watch_.at_tensor(*piece.tensor);
        for (std::size_t i = 0; i < way_.targets.size(); ++i) {
            watch_.wait(*piece.out[i], gloo_watch::direction::send, way_.targets[i]);
        }
        if (way_.source < 0 && settings_.counted) watch_.add_bytes(piece.bytes);
        piece = {};
        ++flushed_;
    }
    int context_of(std::uint64_t number) const noexcept {
        return static_cast<int>(number % static_cast<std::uint64_t>(links_.contexts()));
    }

    static constexpr std::uint64_t data_slot = static_cast<std::uint64_t>(gloo_slot::data);

    gloo_links& links_;
    gloo_watch& watch_;
    piece_table& table_;
    window_settings settings_;
    route const& way_;
    std::span<transfer_range const> ranges_;
    std::size_t range_ = 0;
    std::size_t offset_ = 0;
    std::uint64_t posted_ = 0;
    std::uint64_t received_ = 0;
    std::uint64_t flushed_ = 0;
};

}  // namespace weightcast::detail
