// SPDX-License-Identifier: Apache-2.0
// What the laws of communicators need of a model: something that makes its ranks and runs a function on each.
#pragma once

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <weightcast/align/alignment_scope.hpp>
#include <weightcast/comm/concepts.hpp>
#include <weightcast/runtime/device_buffer.hpp>
#include <weightcast/runtime/event.hpp>
#include <weightcast/runtime/stream.hpp>

namespace weightcast::test {

/// The group that a law wants.
struct group_request {
    int size = 2;
    std::vector<device> where{};  ///< none: the model's default; one: of all ranks; else one a rank
    std::string name{};           ///< empty: a name that no other group has
    std::chrono::milliseconds grace{10'000};
};

/// Makes groups of one model. `run(request, body)` forms a group, calls `body(communicator)` for each rank on a
/// thread or in a process of its own, and returns what each rank's body returned (a sentence, empty when all is
/// well); an exception that leaves a body becomes `describe_exception`. Ranks end with their bodies.
/// `body` is the same for all ranks and shares nothing with other ranks but what it captured by value.
template <class M>
concept GroupMaker = Communicator<typename M::communicator> &&
                     requires(M& maker, group_request const& request,
                              std::string (*body)(typename M::communicator&)) {
                         { maker.run(request, body) } -> std::same_as<std::vector<std::string>>;
                     };

/// "timeout: ...": the type and the message of the exception in flight.
inline std::string describe_exception() {
    try {
        throw;
    } catch (timeout const& e) {
        return std::string{"timeout: "} + e.what();
    } catch (peer_error const& e) {
        return std::string{"peer_error: "} + e.what();
    } catch (group_aborted const& e) {
        return std::string{"group_aborted: "} + e.what();
    } catch (contract_violation const& e) {
        return std::string{"contract_violation: "} + e.what();
    } catch (bad_argument const& e) {
        return std::string{"bad_argument: "} + e.what();
    } catch (std::exception const& e) {
        return std::string{"exception: "} + e.what();
    }
}

/// Every rank is content; else the sentence of each that is not.
inline void check_ranks(std::vector<std::string> const& outcomes, std::string const& what) {
    BOOST_TEST_CONTEXT(what) {
        for (std::size_t rank = 0; rank < outcomes.size(); ++rank) {
            BOOST_TEST(outcomes[rank] == "", "rank " << rank << ": " << outcomes[rank]);
        }
    }
}

/// Limits of operations that are expected to succeed, on a machine under any load.
inline op_limits patient() {
    return {.stall = std::chrono::seconds{120}, .at = deadline::after(std::chrono::seconds{240})};
}
inline operation patiently(std::string_view tensor = "w", phase where = phase::payload) {
    return {operation_label{where, tensor}, patient()};
}

/// Waits for all operations of the communicator.
template <Communicator C>
void finish(C& c, operation const& op) {
    event<typename C::runtime> done{c.core().collective_stream()};
    c.wait(done.ref(), op.limits.at, op.label);
}

using contents = std::vector<std::byte>;

/// Bytes that another seed does not give (splitmix64: quick also where every access is instrumented).
inline contents pattern(std::size_t bytes, std::uint64_t seed) {
    contents made(bytes);
    std::uint64_t state = seed;
    for (std::size_t at = 0; at < bytes; at += 8) {
        state += 0x9e3779b97f4a7c15U;
        std::uint64_t word = (state ^ (state >> 30U)) * 0xbf58476d1ce4e5b9U;
        word = (word ^ (word >> 27U)) * 0x94d049bb133111ebU;
        word ^= word >> 31U;
        std::memcpy(made.data() + at, &word, std::min<std::size_t>(8, bytes - at));
    }
    return made;
}

/// A rank's memory on its communicator's device, between two guards that no operation may touch.
template <Communicator C>
class rank_memory {
    using runtime = typename C::runtime;
    static constexpr std::size_t guard = 64;

  public:
    rank_memory(C& c, std::size_t bytes, std::uint64_t seed)
        : where_{c.where()},
          bytes_{bytes},
          stream_{where_},
          buffer_{bytes + 2 * guard, where_, stream_.ref()} {
        image_.resize(bytes + 2 * guard);
        auto const around = pattern(2 * guard, ~seed);
        std::copy_n(around.begin(), guard, image_.begin());
        std::copy_n(around.begin() + guard, guard, image_.end() - guard);
        write(pattern(bytes, seed));
    }
    rank_memory(rank_memory&&) = default;
    rank_memory& operator=(rank_memory&&) = default;

    void write(contents const& bytes) {
        std::copy(bytes.begin(), bytes.end(), image_.begin() + guard);
        runtime::copy(buffer_.data(), where_, image_.data(), cpu_device, image_.size(),
                      stream_.ref());
        sync();
    }
    contents read() { return contents(all().begin() + guard, all().end() - guard); }
    bool guards_hold() {
        auto const now = all();
        auto const same = [&](std::size_t at) {
            return std::equal(now.begin() + static_cast<long>(at),
                              now.begin() + static_cast<long>(at + guard),
                              image_.begin() + static_cast<long>(at));
        };
        return same(0) && same(guard + bytes_);
    }
    /// The bytes are these, and nothing around them changed.
    bool holds(contents const& expected) { return read() == expected && guards_hold(); }

    tensor_view<typename runtime::space> view(dtype type = dtype::uint8) const {
        auto* const data = static_cast<std::byte*>(buffer_.data()) + guard;
        auto const count = static_cast<std::int64_t>(bytes_ / item_size(type));
        return {data, type, extents{count}, where_};
    }

  private:
    contents const& all() {
        now_.resize(image_.size());
        runtime::copy(now_.data(), cpu_device, buffer_.data(), where_, now_.size(), stream_.ref());
        sync();
        return now_;
    }
    void sync() {
        event<runtime> done{stream_.ref()};
        if (!done.wait(patient().at)) throw timeout{"a copy of the test did not end"};
    }
    device where_;
    std::size_t bytes_;
    stream<runtime> stream_;
    device_buffer<runtime> buffer_;
    contents image_;  // what the memory held when it was last written
    contents now_;
};

/// Root sends, the others receive: one tensor, enqueued.
template <Communicator C>
void enqueue_broadcast(C& c, rank_memory<C>& memory, int root, operation const& op) {
    alignment_scope<C> scope{c};
    auto view = memory.view();
    if (c.rank() == root) {
        c.broadcast_from(scope.align(view, already_ready{}, op.label), op);
    } else {
        c.broadcast_into(scope.require(view, op.label), root, op);
    }
}
template <Communicator C>
void enqueue_send(C& c, rank_memory<C>& memory, int peer, operation const& op) {
    alignment_scope<C> scope{c};
    c.send_to(scope.align(memory.view(), already_ready{}, op.label), peer, op);
}
template <Communicator C>
void enqueue_receive(C& c, rank_memory<C>& memory, int peer, operation const& op) {
    alignment_scope<C> scope{c};
    auto view = memory.view();
    c.receive_from(scope.require(view, op.label), peer, op);
}
template <Communicator C>
void enqueue_all_reduce(C& c, rank_memory<C>& memory, dtype type, reduction how,
                        operation const& op) {
    alignment_scope<C> scope{c};
    auto view = memory.view(type);
    c.all_reduce(scope.require(view, op.label), how, op);
}

/// Many tensors as one operation.
template <Communicator C>
void broadcast_group(C& c, std::vector<rank_memory<C>>& memories, int root, operation const& op) {
    alignment_scope<C> scope{c};
    if (c.rank() == root) {
        auto group = scope.send_group(op);
        for (auto& memory : memories)
            group.add(scope.align(memory.view(), already_ready{}, op.label));
        group.submit();
    } else {
        auto group = scope.receive_group(root, op);
        for (auto& memory : memories) {
            auto view = memory.view();
            group.add(scope.require(view, op.label));
        }
        group.submit();
    }
}

/// Sleeps up to so long, by the seed.
inline void dawdle(std::mt19937& random, std::chrono::microseconds at_most) {
    auto const span = static_cast<std::uint32_t>(at_most.count()) + 1;
    std::this_thread::sleep_for(std::chrono::microseconds{random() % span});
}

}  // namespace weightcast::test
