// SPDX-License-Identifier: Apache-2.0
#pragma once
// The connections of one generation of a group: Gloo contexts, and the small buffers that headers go through.

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gloo/rendezvous/context.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/unbound_buffer.h>

#include <weightcast/base/deadline.hpp>
#include <weightcast/base/error.hpp>
#include <weightcast/comm/detail/gloo_store.hpp>
#include <weightcast/comm/detail/operation_header.hpp>
#include <weightcast/comm/detail/quiet_thread.hpp>
#include <weightcast/comm/detail/socket.hpp>

namespace weightcast::detail {

/// What Gloo keeps apart on one pair of ranks: one number a use, never shared by two threads.
enum class gloo_slot : std::uint64_t {
    header = 1,
    accepted = 2,
    proceed = 3,
    arrived = 4,
    data = 5
};

/// A full mesh of `contexts` connections a pair. Of the stream's thread while operations run.
class gloo_links {
  public:
    using buffer = gloo::transport::UnboundBuffer;

    /// @throws timeout, peer_error  when the ranks do not connect by the deadline
    gloo_links(int rank, int size, int contexts, socket_address const& local,
               rendezvous_client& client, gloo_watch& watch, std::string const& prefix,
               deadline until)
        : peers_(static_cast<std::size_t>(size)) {
        for (int i = 0; i < contexts; ++i) {
            gloo_store store{client, watch, prefix + "context/" + std::to_string(i) + "/", until};
            contexts_.push_back(connect(rank, size, local, store, until));
        }
    }
    gloo_links(gloo_links const&) = delete;
    gloo_links& operator=(gloo_links const&) = delete;

    int contexts() const noexcept { return static_cast<int>(contexts_.size()); }
    std::unique_ptr<buffer> make_buffer(int context, void* data, std::size_t bytes) {
        return contexts_[static_cast<std::size_t>(context)]->createUnboundBuffer(data, bytes);
    }

    /// Message of this rank that goes out next.
    std::byte* outgoing() noexcept { return outgoing_.data(); }
    /// Message that came last.
    std::byte const* incoming() const noexcept { return incoming_.data(); }

    buffer& post_header(int to, std::size_t bytes) {
        auto& out = made(peer(to).header_out, outgoing_.data(), outgoing_.size());
        out.send(to, slot(gloo_slot::header), 0, bytes);
        return out;
    }
    /// The buffer of `post_header`, to wait on.
    buffer& header_to(int to) { return *peer(to).header_out; }
    buffer& await_header(int from) {
        auto& in = made(peer(from).header_in, incoming_.data(), incoming_.size());
        in.recv(from, slot(gloo_slot::header), 0, incoming_.size());
        return in;
    }
    /// A word without content, in a slot of its own.
    buffer& post_word(int to, gloo_slot kind) {
        auto& out = made(peer(to).word_out[index(kind)], word_out_.data(), word_out_.size());
        out.send(to, slot(kind), 0, word_out_.size());
        return out;
    }
    buffer& await_word(int from, gloo_slot kind) {
        auto& one = peer(from);
        auto& in = made(one.word_in[index(kind)], one.word.data(), one.word.size());
        in.recv(from, slot(kind), 0, one.word.size());
        return in;
    }
    static std::uint64_t slot(gloo_slot kind) noexcept { return static_cast<std::uint64_t>(kind); }

  private:
    /// Buffers are made on first use; each is gone before the memory that it names.
    struct peer_buffers {
        std::array<std::byte, 4> word{};
        std::unique_ptr<buffer> header_out{};
        std::unique_ptr<buffer> header_in{};
        std::array<std::unique_ptr<buffer>, 3> word_out{};
        std::array<std::unique_ptr<buffer>, 3> word_in{};
    };
    static std::size_t index(gloo_slot word) noexcept {
        return static_cast<std::size_t>(word) - static_cast<std::size_t>(gloo_slot::accepted);
    }
    peer_buffers& peer(int rank) {
        auto& one = peers_[static_cast<std::size_t>(rank)];
        if (!one) one = std::make_unique<peer_buffers>();
        return *one;
    }
    buffer& made(std::unique_ptr<buffer>& place, void* data, std::size_t bytes) {
        if (!place) place = make_buffer(0, data, bytes);
        return *place;
    }
    static std::shared_ptr<gloo::rendezvous::Context> connect(int rank, int size,
                                                              socket_address const& local,
                                                              gloo_store& store, deadline until) {
        gloo::transport::tcp::attr attributes;
        attributes.hostname = local.host();  // numeric: Gloo must not ask a name service
        attributes.ai_family = local.family();
        auto context = std::make_shared<gloo::rendezvous::Context>(rank, size);
        // Gloo waits five times as long as it is told
        auto const fifth = std::chrono::ceil<std::chrono::milliseconds>(until.remaining()) / 5;
        context->setTimeout(std::max(fifth, std::chrono::milliseconds{1}));
        try {
            auto device = [&] {
                signals_blocked const blocked;  // its thread writes to sockets: SIGPIPE is nobody's
                return gloo::transport::tcp::CreateDevice(attributes);
            }();
            context->connectFullMesh(store, device);
        } catch (gloo::Exception const& problem) {
            if (until.expired()) {
                throw timeout{
                    std::string{"connect: the ranks did not connect to each other in time: "} +
                    problem.what()};
            }
            throw peer_error{std::string{"connect: a rank could not be connected to: "} +
                             problem.what()};
        } catch (error const&) {
            throw;
        } catch (
            std::exception const& problem) {  // Gloo's own checks, and threads that cannot start
            throw system_failure{std::string{"connect: Gloo failed: "} + problem.what()};
        }
        return context;
    }

    std::vector<std::shared_ptr<gloo::rendezvous::Context>> contexts_;
    std::array<std::byte, most_control_bytes> outgoing_{};
    std::array<std::byte, most_control_bytes> incoming_{};
    std::array<std::byte, 4> word_out_{};
    std::vector<std::unique_ptr<peer_buffers>> peers_;
};

}  // namespace weightcast::detail
