// SPDX-License-Identifier: Apache-2.0
#pragma once
// The operations over Gloo, as a stream's thread runs them: first all ranks agree, then bytes move.

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <weightcast/comm/detail/broadcast_route.hpp>
#include <weightcast/comm/detail/gloo_links.hpp>
#include <weightcast/comm/detail/gloo_watch.hpp>
#include <weightcast/comm/detail/gloo_window.hpp>
#include <weightcast/comm/detail/operation_header.hpp>
#include <weightcast/comm/detail/reduce.hpp>
#include <weightcast/comm/transfer_range.hpp>

namespace weightcast::detail {

/// Ranks that called different things. Thrown on the stream's thread only, and caught there.
struct ranks_disagree {
    int peer = -1;
    std::string why{};
};

/// Of the stream's thread. Each operation throws operation_stopped, wait_expired, connection_broken or
/// ranks_disagree; after that, buffers hold no memory and no later operation may run.
class gloo_transfer {
  public:
    gloo_transfer(gloo_links& links, gloo_watch& watch, int rank, int size,
                  window_settings settings)
        : links_{links},
          watch_{watch},
          rank_{rank},
          size_{size},
          settings_{settings},
          table_{static_cast<std::size_t>(settings.in_flight) *
                 static_cast<std::size_t>(links.contexts())} {}

    /// All ranks agree through a tree; the bytes follow from the root, or along a chain, while they do. The
    /// root's operation is over when every rank has them.
    /// Cost: 3 ceil(log2 W) short messages in a row; n bytes sent by each rank but the last, by the root twice for two
    void broadcast(operation_header const& header, std::span<transfer_range const> ranges) {
        auto const& tree = tree_from(header.root);
        auto const& pipeline = pipeline_from(header.root);
        bool const is_root = tree.source < 0;
        if (is_root) {
            write_message(header, ranges);
        } else {
            read_message(tree.source, header, ranges);
            pass_message_on(header);
        }
        for (int const child : tree.targets) post_header(child, header);
        piece_window window{links_, watch_, table_, settings_, pipeline, ranges};
        if (header.eager == 0) window.start();
        agree(tree);
        if (header.eager == 0) {
            window.finish();
            return confirm(tree);
        }
        if (!is_root) scatter(payload_of(links_.incoming()), ranges);
        watch_.add_bytes(header.bytes);
    }

    /// Sizes agree first: the receiver accepts before it opens its buffer.
    void send(operation_header const& header, std::span<transfer_range const> ranges) {
        route const way{.source = -1, .targets = {header.peer}};
        write_message(header, ranges);
        post_header(header.peer, header);
        piece_window window{links_, watch_, table_, settings_, way, ranges};
        if (header.eager == 0) window.start();
        await_word(header.peer, gloo_slot::accepted);
        finish_header(header.peer);
        if (header.eager == 0) {
            window.finish();
            return await_word(header.peer, gloo_slot::arrived);
        }
        watch_.add_bytes(header.bytes);
    }
    void receive(operation_header const& header, std::span<transfer_range const> ranges) {
        route const way{.source = header.root, .targets = {}};
        read_message(header.root, header, ranges);
        piece_window window{links_, watch_, table_, settings_, way, ranges};
        if (header.eager == 0) window.start();
        post_word(header.root, gloo_slot::accepted);
        if (header.eager == 0) {
            window.finish();
            return post_word(header.root, gloo_slot::arrived);
        }
        scatter(payload_of(links_.incoming()), ranges);
        watch_.add_bytes(header.bytes);
    }

    /// Up a tree to rank 0, each rank adding its own, and back down: the same bits on every rank.
    void all_reduce(operation_header const& header, transfer_range const& range) {
        auto const& tree = tree_from(0);
        std::span const ranges{&range, 1};
        for (int const child : tree.targets) {
            read_message(child, header, ranges);
            if (header.eager != 0) {
                reduce_into(range.data, payload_of(links_.incoming()), range.bytes, header.type,
                            header.how);
            } else {
                reduce_parts(child, header, range);
            }
        }
        if (tree.source >= 0) {
            write_message(header, ranges);
            post_header(tree.source, header);
            finish_header(tree.source);
            if (header.eager == 0) send_parts(tree.source, header, range);
            read_message(tree.source, header, ranges);
            if (header.eager != 0) scatter(payload_of(links_.incoming()), ranges);
        }
        write_message(header,
                      ranges);  // the result: goes down as a header, with it when it is short
        for (int const child : tree.targets) post_header(child, header);
        for (int const child : tree.targets) finish_header(child);
        if (header.eager == 0) {
            run_window(pipeline_from(0), ranges);
            return confirm(tree);
        }
        watch_.add_bytes(header.bytes);
    }

  private:
    using direction = gloo_watch::direction;

    // --- agreeing ---
    void write_message(operation_header const& header,
                       std::span<transfer_range const> ranges) noexcept {
        auto* const payload = write_header(links_.outgoing(), header, ranges);
        if (header.eager != 0) gather(payload, ranges);
    }
    void pass_message_on(operation_header const& header) noexcept {
        std::memcpy(links_.outgoing(), links_.incoming(), control_bytes(header));
    }
    void read_message(int from, operation_header const& expected,
                      std::span<transfer_range const> ranges) {
        auto& in = with_peer(from, [&]() -> auto& { return links_.await_header(from); });
        watch_.wait(in, direction::receive, from);
        if (auto why = disagreement(links_.incoming(), from, expected, rank_, ranges)) {
            throw ranks_disagree{from, std::move(*why)};
        }
    }
    void post_header(int to, operation_header const& header) {
        with_peer(to, [&] { links_.post_header(to, control_bytes(header)); });
    }
    void finish_header(int to) { watch_.wait(links_.header_to(to), direction::send, to); }
    void post_word(int to, gloo_slot kind) {
        auto& out = with_peer(to, [&]() -> auto& { return links_.post_word(to, kind); });
        watch_.wait(out, direction::send, to);
    }
    void await_word(int from, gloo_slot kind) {
        auto& in = with_peer(from, [&]() -> auto& { return links_.await_word(from, kind); });
        watch_.wait(in, direction::receive, from);
    }
    /// Returns once every rank is known to have called the same: acceptances come up the tree, and the word
    /// to proceed goes down. Two ranks need no second word.
    void agree(route const& tree) {
        for (int const child : tree.targets) await_word(child, gloo_slot::accepted);
        for (int const child : tree.targets) finish_header(child);
        if (tree.source >= 0) post_word(tree.source, gloo_slot::accepted);
        if (size_ <= 2) return;
        if (tree.source >= 0) await_word(tree.source, gloo_slot::proceed);
        for (int const child : tree.targets) post_word(child, gloo_slot::proceed);
    }

    /// Returns once every rank below has all bytes: what a socket took is not what a peer has.
    void confirm(route const& tree) {
        for (int const child : tree.targets) await_word(child, gloo_slot::arrived);
        if (tree.source >= 0) post_word(tree.source, gloo_slot::arrived);
    }

    // --- moving ---
    void run_window(route const& way, std::span<transfer_range const> ranges, bool counted = true) {
        auto settings = settings_;
        settings.counted = counted;
        piece_window window{links_, watch_, table_, settings, way, ranges};
        window.finish();
    }
    /// Part by part, of whole elements: cut alike on both sides.
    template <class Part>
    void for_each_part(operation_header const& header, transfer_range const& range, Part part) {
        std::size_t const item = item_size(header.type);
        std::size_t const most = std::max(settings_.piece / item, std::size_t{1}) * item;
        for (std::size_t at = 0; at < range.bytes; at += most) {
            part(static_cast<std::byte*>(range.data) + at, std::min(most, range.bytes - at));
        }
    }
    void send_parts(int parent, operation_header const& header, transfer_range const& range) {
        route const way{.source = -1, .targets = {parent}};
        for_each_part(header, range, [&](std::byte* mine, std::size_t bytes) {
            transfer_range const part{mine, bytes, range.label};
            run_window(way, {&part, 1}, false);
        });
    }
    void reduce_parts(int child, operation_header const& header, transfer_range const& range) {
        route const way{.source = child, .targets = {}};
        for_each_part(header, range, [&](std::byte* mine, std::size_t bytes) {
            scratch_.resize(std::max(scratch_.size(), bytes));
            transfer_range const part{scratch_.data(), bytes, range.label};
            run_window(way, {&part, 1}, false);
            reduce_into(mine, scratch_.data(), bytes, header.type, header.how);
        });
    }

    route const& tree_from(int root) {
        return cached(trees_, root, [&] { return tree_route(rank_, root, size_); });
    }
    route const& pipeline_from(int root) {
        return cached(pipelines_, root, [&] { return pipeline_route(rank_, root, size_); });
    }
    template <class Make>
    static route const& cached(std::map<int, route>& routes, int root, Make make) {
        auto const found = routes.find(root);
        return found != routes.end() ? found->second : routes.emplace(root, make()).first->second;
    }

    gloo_links& links_;
    gloo_watch& watch_;
    int rank_;
    int size_;
    window_settings settings_;
    piece_table table_;
    std::map<int, route> trees_;
    std::map<int, route> pipelines_;
    std::vector<std::byte> scratch_;
};

}  // namespace weightcast::detail
